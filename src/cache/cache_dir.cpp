#include "cache/cache_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>
#include <tuple>

#include "support/file.h"

namespace litz {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLeftoverSeconds = 3600;

int64_t modified_ns(const struct stat& info) {
  return info.st_mtim.tv_sec * int64_t{1'000'000'000} + info.st_mtim.tv_nsec;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    names.push_back(it->path().filename().string());
  }
  return names;
}

bool is_folder(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// 0 where the folder is there afterwards, else an errno.
int make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || is_folder(path)) return 0;
  return errno;
}

uint64_t folder_bytes(const std::string& folder) {
  uint64_t bytes = 0;
  for (const std::string& name : names_in(folder)) {
    struct stat info;
    if (::lstat((folder + "/" + name).c_str(), &info) == 0) {
      bytes += static_cast<uint64_t>(info.st_size);
    }
  }
  return bytes;
}

// The lock of the usage file, or nothing where another process holds on to it.
UniqueFd lock_usage(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  constexpr int kTries = 10;
  for (int i = 0; fd && i < kTries; ++i) {
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return UniqueFd();
}

std::optional<uint64_t> read_usage(int fd) {
  char text[32];
  ssize_t count = ::pread(fd, text, sizeof text, 0);
  uint64_t bytes = 0;
  if (count <= 0) return std::nullopt;
  auto [end, error] = std::from_chars(text, text + count, bytes);
  if (error != std::errc() || end != text + count - 1 || *end != '\n') return std::nullopt;
  return bytes;
}

// A usage file that cannot be written is emptied if possible; the next reader then counts anew.
void write_usage(int fd, uint64_t bytes) {
  std::string text = std::to_string(bytes) + "\n";
  if (::ftruncate(fd, 0) == 0 && ::lseek(fd, 0, SEEK_SET) == 0) write_all(fd, text);
}

uint64_t evict_down_to(const CachePaths& paths, uint64_t max_bytes, const std::string& keep) {
  std::vector<EntryUsage> entries = scan_entries(paths);
  uint64_t total = 0;
  for (const EntryUsage& entry : entries) total += entry.bytes;
  for (const EntryUsage& entry : entries) {
    if (total <= max_bytes) break;
    if (entry.digest != keep && remove_entry(paths, entry.digest)) total -= entry.bytes;
  }
  return total;
}

}  // namespace

CacheDir open_cache_dir(const std::string& given) {
  // With a slash at its end a link would be followed.
  std::string dir = given.substr(0, std::max<size_t>(given.find_last_not_of('/') + 1, 1));
  auto off = [&](const std::string& why) {
    return CacheDir{CacheMode::kOff, "the cache folder " + dir + " " + why, {}};
  };
  std::error_code ignored;
  fs::path parent = fs::path(dir).parent_path();
  if (!parent.empty()) fs::create_directories(parent, ignored);
  if (::mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) {
    return off("cannot be made: " + errno_text(errno));
  }
  UniqueFd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return off("cannot be used: " + errno_text(errno));
  if (std::string why = distrust(fd.get()); !why.empty()) return off(why);

  std::string root = dir + "/v1";
  CacheDir cache{
      CacheMode::kReadWrite, "", {root + "/entries", root + "/staging", root + "/usage"}};
  int error = make_folder(root);
  if (!error) error = make_folder(cache.paths.entries);
  if (!error) error = make_folder(cache.paths.staging);
  if (!error && ::access(cache.paths.entries.c_str(), W_OK) != 0) error = errno;
  if (!error && ::access(cache.paths.staging.c_str(), W_OK) != 0) error = errno;
  if (!error) {
    sweep_staging(cache.paths, kLeftoverSeconds);
    return cache;
  }
  if (!is_folder(cache.paths.entries)) return off("cannot be written: " + errno_text(error));
  cache.mode = CacheMode::kReadOnly;
  cache.reason = "the cache folder " + dir + " cannot be written: " + errno_text(error);
  return cache;
}

std::string distrust(const struct stat& info, uid_t user) {
  if (info.st_uid != user && info.st_uid != 0) {
    return "belongs to another user (" + std::to_string(info.st_uid) + ")";
  }
  if (info.st_mode & (S_IWGRP | S_IWOTH)) return "can be written by other users";
  return "";
}

std::string distrust(int fd) {
  struct stat info;
  if (::fstat(fd, &info) != 0) return "cannot be examined: " + errno_text(errno);
  return distrust(info, ::geteuid());
}

bool remove_entry(const CachePaths& paths, const std::string& digest) {
  // Moving needs no room, unlike making a folder: this must work on a full disk.
  auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  std::string grave = paths.staging + "/old-" + digest + "-" + std::to_string(::getpid()) + "-" +
                      std::to_string(now);
  if (::rename((paths.entries + "/" + digest).c_str(), grave.c_str()) != 0) return false;
  std::error_code ignored;
  fs::remove_all(grave, ignored);
  return true;
}

void sweep_staging(const CachePaths& paths, int64_t older_than_seconds) {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  int64_t oldest_kept =
      std::chrono::nanoseconds(now - std::chrono::seconds(older_than_seconds)).count();
  for (const std::string& name : names_in(paths.staging)) {
    std::string path = paths.staging + "/" + name;
    struct stat info;
    if (::lstat(path.c_str(), &info) != 0 || modified_ns(info) >= oldest_kept) continue;
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
}

std::vector<EntryUsage> scan_entries(const CachePaths& paths) {
  std::vector<EntryUsage> entries;
  for (const std::string& name : names_in(paths.entries)) {
    std::string folder = paths.entries + "/" + name;
    struct stat info;
    if (::lstat(folder.c_str(), &info) != 0) continue;
    entries.push_back({name, folder_bytes(folder), modified_ns(info)});
  }
  std::sort(entries.begin(), entries.end(), [](const EntryUsage& a, const EntryUsage& b) {
    return std::tie(a.last_used_ns, a.digest) < std::tie(b.last_used_ns, b.digest);
  });
  return entries;
}

void mark_used(const CachePaths& paths, const std::string& digest) {
  ::utimensat(AT_FDCWD, (paths.entries + "/" + digest).c_str(), nullptr, 0);
}

void account_and_evict(const CachePaths& paths, uint64_t added_bytes, uint64_t max_bytes,
                       const std::string& keep) {
  UniqueFd lock = lock_usage(paths.usage);
  if (!lock) return;
  std::optional<uint64_t> before = read_usage(lock.get());
  uint64_t total = before.value_or(0) + added_bytes;
  if (!before || total > max_bytes) {
    bool over = before.has_value();
    total = evict_down_to(paths, over ? max_bytes - max_bytes / 10 : max_bytes, keep);
  }
  write_usage(lock.get(), total);
}

}  // namespace litz
