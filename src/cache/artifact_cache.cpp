#include "cache/artifact_cache.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <set>
#include <system_error>

#include "cache/checksum.h"
#include "support/file.h"

namespace litz {
namespace {

bool is_file_name(std::string_view name) {
  auto allowed = [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '_' || c == '-';
  };
  return !name.empty() && name[0] != '.' && std::all_of(name.begin(), name.end(), allowed);
}

void check_inputs(std::span<const CacheInput> files) {
  std::set<std::string_view> seen = {kManifestName};
  for (const CacheInput& file : files) {
    LITZ_CHECK(is_file_name(file.name), "'" + file.name + "' is no name for a file of an entry");
    LITZ_CHECK(seen.insert(file.name).second, "'" + file.name + "' is already taken in the entry");
  }
}

// Opens a file of an entry for reading; `problem` says why not.
UniqueFd open_trusted(int folder, const std::string& name, std::string& problem) {
  UniqueFd fd(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    problem = name + ": " + errno_text(errno);
    return fd;
  }
  struct stat info;
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    problem = name + " is not a file";
  } else if (std::string why = distrust(fd.get()); !why.empty()) {
    problem = name + " " + why;
  }
  return problem.empty() ? std::move(fd) : UniqueFd();
}

std::optional<Manifest> read_manifest(int folder, std::string& problem) {
  UniqueFd fd = open_trusted(folder, kManifestName, problem);
  if (!fd) return std::nullopt;
  std::optional<std::string> text = read_all(fd.get());
  std::optional<Manifest> manifest;
  if (text) manifest = parse_manifest(*text);
  if (!manifest) problem = std::string(kManifestName) + " is damaged";
  return manifest;
}

UniqueFd open_folder(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// The manifest of an entry whose files are all as it says; else `problem` is set.
std::optional<Manifest> verify_entry(int folder, const std::string& digest, std::string& problem) {
  problem = distrust(folder);
  if (!problem.empty()) {
    problem = "its folder " + problem;
    return std::nullopt;
  }
  std::optional<Manifest> manifest = read_manifest(folder, problem);
  if (!manifest) return std::nullopt;
  if (manifest->key.digest != digest) {
    problem = "it was made for another key";
    return std::nullopt;
  }
  for (const ManifestFile& file : manifest->files) {
    UniqueFd fd = open_trusted(folder, file.name, problem);
    if (!fd) return std::nullopt;
    FileChecksum found;
    if (checksum_stream(fd.get(), -1, found) != 0 || found.bytes != file.bytes ||
        found.digest != file.checksum) {
      problem = file.name + " is damaged";
      return std::nullopt;
    }
  }
  return manifest;
}

// Writes one file of an entry. Returns 0 or an errno.
int stage_file(const std::string& folder, const CacheInput& input, ManifestFile& staged) {
  std::string path = folder + "/" + input.name;
  if (input.path.empty()) {
    staged = {input.name, input.bytes.size(), checksum_bytes(input.bytes)};
    return write_new_file(path, input.bytes, 0600);
  }
  UniqueFd from(::open(input.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!from) return errno;
  UniqueFd to(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!to) return errno;
  FileChecksum written;
  int error = checksum_stream(from.get(), to.get(), written);
  staged = {input.name, written.bytes, written.digest};
  return error;
}

// An entry in the making. Whatever becomes of it, nothing stays behind in the staging folder.
class StagedEntry {
 public:
  explicit StagedEntry(const CachePaths& paths)
      : paths_(paths), folder_(paths.staging + "/new-XXXXXX") {
    if (::mkdtemp(folder_.data())) return;
    error_ = errno;
    folder_.clear();
  }
  StagedEntry(const StagedEntry&) = delete;
  StagedEntry& operator=(const StagedEntry&) = delete;
  ~StagedEntry() {
    if (folder_.empty()) return;
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  // Each of these returns 0 or an errno.
  int write(const CacheKey& key, std::span<const CacheInput> files) {
    if (error_) return error_;
    manifest_.key = key;
    for (const CacheInput& input : files) {
      ManifestFile& staged = manifest_.files.emplace_back();
      if (int error = stage_file(folder_, input, staged)) return error;
    }
    std::string text = print_manifest(manifest_);
    bytes_ = text.size();
    for (const ManifestFile& file : manifest_.files) bytes_ += file.bytes;
    return write_new_file(folder_ + "/" + kManifestName, text, 0600);
  }
  int move_into_place() {
    std::string target = paths_.entries + "/" + manifest_.key.digest;
    if (::rename(folder_.c_str(), target.c_str()) != 0) return errno;
    folder_.clear();
    return 0;
  }

  const std::vector<ManifestFile>& files() const { return manifest_.files; }
  uint64_t bytes() const { return bytes_; }

 private:
  const CachePaths& paths_;
  std::string folder_;
  int error_ = 0;
  Manifest manifest_;
  uint64_t bytes_ = 0;
};

std::vector<FieldDifference> differences_between(const std::vector<KeyField>& wanted,
                                                 const std::vector<KeyField>& stored) {
  auto value_in = [](const std::vector<KeyField>& fields, const std::string& name) {
    auto found = std::find_if(fields.begin(), fields.end(),
                              [&](const KeyField& field) { return field.name == name; });
    return found == fields.end() ? nullptr : &found->value;
  };
  std::vector<FieldDifference> differences;
  for (const KeyField& field : wanted) {
    const std::string* other = value_in(stored, field.name);
    if (!other || *other != field.value) {
      differences.push_back({field.name, field.value, other ? *other : ""});
    }
  }
  for (const KeyField& field : stored) {
    if (!value_in(wanted, field.name)) differences.push_back({field.name, "", field.value});
  }
  return differences;
}

}  // namespace

CacheInput CacheInput::from_bytes(std::string name, std::string bytes) {
  return {std::move(name), std::move(bytes), ""};
}

CacheInput CacheInput::from_file(std::string name, std::string path) {
  return {std::move(name), "", std::move(path)};
}

bool CacheEntry::contains(std::string_view name) const {
  return std::any_of(files.begin(), files.end(),
                     [&](const ManifestFile& file) { return file.name == name; });
}

std::string CacheEntry::path_of(std::string_view name) const {
  LITZ_CHECK(contains(name), "the cache entry has no file " + std::string(name));
  return folder + "/" + std::string(name);
}

std::string MissExplanation::text() const {
  if (nearest.empty()) return "the cache is empty\n";
  if (differences.empty()) return "entry " + nearest + " has the same key\n";
  std::string text = "the nearest entry is " + nearest + "; it differs in\n";
  auto shown = [](const std::string& value) { return value.empty() ? "nothing" : value; };
  for (const FieldDifference& difference : differences) {
    text += "  " + difference.name + ": wanted " + shown(difference.wanted) + ", stored " +
            shown(difference.stored) + "\n";
  }
  return text;
}

ArtifactCache ArtifactCache::open(const std::string& dir, uint64_t max_bytes) {
  return ArtifactCache(open_cache_dir(dir), max_bytes);
}

LookupResult ArtifactCache::lookup(const CacheKey& key) const {
  if (dir_.mode == CacheMode::kOff) return {};
  std::string path = dir_.paths.entries + "/" + key.digest;
  UniqueFd folder = open_folder(path);
  if (!folder && errno == ENOENT) return {};
  std::string problem = "it is not a folder";
  std::optional<Manifest> manifest;
  if (folder) manifest = verify_entry(folder.get(), key.digest, problem);
  if (manifest) {
    mark_used(dir_.paths, key.digest);
    return {CacheEntry{key.digest, path, std::move(manifest->files)}, ""};
  }
  // An entry that has gone was evicted while we read it, and is not damaged.
  if (::access(path.c_str(), F_OK) != 0) return {};
  remove_entry(dir_.paths, key.digest);
  return {std::nullopt, "cache entry " + key.digest + " is not used: " + problem};
}

Result<CacheEntry> ArtifactCache::publish(const CacheKey& key,
                                          std::span<const CacheInput> files) const {
  check_inputs(files);
  if (dir_.mode != CacheMode::kReadWrite) return Unsupported{dir_.reason};
  StagedEntry staged(dir_.paths);
  int error = staged.write(key, files);
  if (!error && staged.bytes() > max_bytes_) {
    return Unsupported{"the entry has " + std::to_string(staged.bytes()) +
                       " bytes, and the cache is limited to " + std::to_string(max_bytes_)};
  }
  if (!error) error = staged.move_into_place();
  if (error == EEXIST || error == ENOTEMPTY || error == ENOTDIR) {
    // What is there may be damaged; looking it up removes it then, and makes room for ours.
    if (std::optional<CacheEntry> theirs = lookup(key).entry) return *theirs;
    error = staged.move_into_place();
  }
  if (error) {
    return Unsupported{"cannot write to the cache folder " + dir_.paths.entries + ": " +
                       errno_text(error)};
  }
  account_and_evict(dir_.paths, staged.bytes(), max_bytes_, key.digest);
  return CacheEntry{key.digest, dir_.paths.entries + "/" + key.digest, staged.files()};
}

MissExplanation ArtifactCache::explain_miss(const CacheKey& key) const {
  MissExplanation best;
  for (const CacheListing& listing : list()) {
    std::vector<FieldDifference> differences = differences_between(key.fields, listing.fields);
    if (best.nearest.empty() || differences.size() <= best.differences.size()) {
      best = {listing.usage.digest, std::move(differences)};
    }
  }
  return best;
}

std::vector<CacheListing> ArtifactCache::list() const {
  std::vector<CacheListing> listings;
  if (dir_.mode == CacheMode::kOff) return listings;
  for (EntryUsage& usage : scan_entries(dir_.paths)) {
    UniqueFd folder = open_folder(dir_.paths.entries + "/" + usage.digest);
    std::string problem;
    std::optional<Manifest> manifest;
    if (folder) manifest = read_manifest(folder.get(), problem);
    if (manifest) listings.push_back({std::move(usage), std::move(manifest->key.fields)});
  }
  return listings;
}

size_t ArtifactCache::clear() const {
  if (dir_.mode != CacheMode::kReadWrite) return 0;
  size_t removed = 0;
  for (const EntryUsage& entry : scan_entries(dir_.paths)) {
    removed += remove_entry(dir_.paths, entry.digest);
  }
  ::unlink(dir_.paths.usage.c_str());
  return removed;
}

size_t ArtifactCache::clear(const std::function<bool(const CacheListing&)>& which) const {
  if (dir_.mode != CacheMode::kReadWrite) return 0;
  size_t removed = 0;
  for (const CacheListing& listing : list()) {
    if (which(listing)) removed += remove_entry(dir_.paths, listing.usage.digest);
  }
  if (removed > 0) ::unlink(dir_.paths.usage.c_str());
  return removed;
}

std::string ArtifactCache::work_folder() const {
  return dir_.mode == CacheMode::kReadWrite ? dir_.paths.staging : "";
}

}  // namespace litz
