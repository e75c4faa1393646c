#include "cache/artifact_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "support/file.h"

namespace litz {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kPlenty = 1 << 30;

class ArtifactCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "litz-cache-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    scratch_ = name;
    ::chmod(name.c_str(), 0755);
    dir_ = name + "/cache";
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(scratch_, ignored);
  }

  ArtifactCache open(uint64_t max_bytes = kPlenty) const {
    return ArtifactCache::open(dir_, max_bytes);
  }
  std::string entry_path(const CacheKey& key, const std::string& file = "") const {
    return dir_ + "/v1/entries/" + key.digest + (file.empty() ? "" : "/" + file);
  }
  std::string staging() const { return dir_ + "/v1/staging"; }

  std::string scratch_;
  std::string dir_;
};

CacheKey key_of(const std::string& graph, const std::string& target = "avx2") {
  return KeyBuilder().field("graph", graph).field("target", target).finish();
}

std::vector<CacheInput> library(const std::string& bytes) {
  return {CacheInput::from_bytes("model.so", bytes),
          CacheInput::from_bytes("description.json", "{}")};
}

void age(const std::string& path, int64_t seconds) {
  timespec then{::time(nullptr) - seconds, 0};
  timespec times[2] = {then, then};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

// Runs `body` in a process of its own, as an ordinary user where we are root. True where it
// returned true.
bool in_other_process(const std::function<bool()>& body, bool as_ordinary_user = false) {
  pid_t pid = ::fork();
  if (pid == 0) {
    if (as_ordinary_user && ::getuid() == 0 && ::setuid(65534) != 0) ::_exit(2);
    ::_exit(body() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(ArtifactCacheTest, FindsWhatWasPublished) {
  ArtifactCache cache = open();
  ASSERT_EQ(cache.mode(), CacheMode::kReadWrite) << cache.reason();
  EXPECT_FALSE(cache.lookup(key_of("g")).entry);
  Result<CacheEntry> published = cache.publish(key_of("g"), library("machine code"));
  ASSERT_TRUE(published) << published.reason();

  LookupResult found = open().lookup(key_of("g"));
  ASSERT_TRUE(found.entry) << found.warning;
  EXPECT_EQ(found.entry->path_of("model.so"), published->path_of("model.so"));
  EXPECT_EQ(*read_file(found.entry->path_of("model.so")), "machine code");
  EXPECT_EQ(*read_file(found.entry->path_of("description.json")), "{}");
  EXPECT_FALSE(found.entry->contains("other"));
  EXPECT_THROW(found.entry->path_of("other"), InternalError);
  EXPECT_FALSE(cache.lookup(key_of("other graph")).entry);
  EXPECT_TRUE(fs::is_empty(staging()));
}

TEST_F(ArtifactCacheTest, CopiesFilesAndLeavesTheOriginal) {
  std::string bytes(1'000'000, 'x');
  std::string original = scratch_ + "/library.so";
  ASSERT_EQ(write_new_file(original, bytes, 0700), 0);
  std::vector<CacheInput> files = {CacheInput::from_file("model.so", original)};
  ASSERT_TRUE(open().publish(key_of("g"), files));
  ASSERT_EQ(::truncate(original.c_str(), 1), 0);
  LookupResult found = open().lookup(key_of("g"));
  ASSERT_TRUE(found.entry) << found.warning;
  EXPECT_TRUE(*read_file(found.entry->path_of("model.so")) == bytes);
}

TEST_F(ArtifactCacheTest, EverythingIsForThisUserAlone) {
  mode_t previous = ::umask(0);
  open().publish(key_of("g"), library("code"));
  ::umask(previous);
  int seen = 0;
  for (const auto& item : fs::recursive_directory_iterator(dir_)) {
    struct stat info;
    ASSERT_EQ(::lstat(item.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 077, 0u) << item.path();
    ++seen;
  }
  EXPECT_EQ(seen, 8);
  struct stat info;
  ASSERT_EQ(::lstat(dir_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
}

TEST_F(ArtifactCacheTest, AFlippedBitAnywhereIsAMiss) {
  CacheKey key = key_of("g");
  for (const char* name : {"model.so", "description.json", "manifest.json"}) {
    ASSERT_TRUE(open().publish(key, library("machine code")));
    std::string good = *read_file(entry_path(key, name));
    for (size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << i % 8));
      std::ofstream(entry_path(key, name), std::ios::binary) << bad;
      LookupResult result = open().lookup(key);
      EXPECT_FALSE(result.entry) << name << " " << i;
      EXPECT_NE(result.warning.find(std::string(name) + " is damaged"), std::string::npos)
          << result.warning;
      EXPECT_FALSE(fs::exists(entry_path(key)));
      EXPECT_EQ(open().lookup(key).warning, "");
      ASSERT_TRUE(open().publish(key, library("machine code")));
    }
  }
}

TEST_F(ArtifactCacheTest, MissingAndShortFilesAreMisses) {
  CacheKey key = key_of("g");
  auto miss_after = [&](const std::function<void()>& damage) {
    EXPECT_TRUE(open().publish(key, library("machine code")));
    damage();
    LookupResult result = open().lookup(key);
    return !result.entry && !result.warning.empty() && !fs::exists(entry_path(key));
  };
  EXPECT_TRUE(miss_after([&] { fs::remove(entry_path(key, "model.so")); }));
  EXPECT_TRUE(miss_after([&] { fs::remove(entry_path(key, "manifest.json")); }));
  EXPECT_TRUE(miss_after([&] { fs::resize_file(entry_path(key, "model.so"), 3); }));
  EXPECT_TRUE(miss_after([&] { fs::resize_file(entry_path(key, "model.so"), 0); }));
  EXPECT_TRUE(miss_after([&] {
    fs::remove_all(entry_path(key));
    std::ofstream(entry_path(key)) << "a file in the place of the entry";
  }));
}

TEST_F(ArtifactCacheTest, AnEntryUnderAnotherKeyIsAMiss) {
  ASSERT_TRUE(open().publish(key_of("a"), library("code of a")));
  fs::rename(entry_path(key_of("a")), entry_path(key_of("b")));
  LookupResult result = open().lookup(key_of("b"));
  EXPECT_FALSE(result.entry);
  EXPECT_NE(result.warning.find("another key"), std::string::npos);
}

TEST_F(ArtifactCacheTest, FilesThatOthersCouldChangeAreNotUsed) {
  CacheKey key = key_of("g");
  auto warning_after = [&](const std::function<void()>& change) {
    EXPECT_TRUE(open().publish(key, library("machine code")));
    change();
    LookupResult result = open().lookup(key);
    EXPECT_FALSE(result.entry);
    return result.warning;
  };
  std::string file = entry_path(key, "model.so");
  EXPECT_NE(warning_after([&] { ::chmod(file.c_str(), 0666); }).find("model.so can be written by"),
            std::string::npos);
  EXPECT_NE(
      warning_after([&] { ::chmod(entry_path(key).c_str(), 0770); }).find("its folder can be"),
      std::string::npos);
  EXPECT_NE(warning_after([&] {
              fs::rename(file, scratch_ + "/elsewhere");
              fs::create_symlink(scratch_ + "/elsewhere", file);
            }).find("model.so: "),
            std::string::npos);
  EXPECT_NE(warning_after([&] {
              fs::remove(file);
              ::mkfifo(file.c_str(), 0600);
            }).find("model.so is not a file"),
            std::string::npos);
}

TEST_F(ArtifactCacheTest, TrustIsForTheUserAndRoot) {
  struct stat info = {};
  info.st_mode = S_IFDIR | 0755;
  info.st_uid = 1000;
  EXPECT_EQ(distrust(info, 1000), "");
  EXPECT_EQ(distrust(info, 1001), "belongs to another user (1000)");
  info.st_uid = 0;
  EXPECT_EQ(distrust(info, 1000), "");
  info.st_mode = S_IFDIR | 0775;
  EXPECT_EQ(distrust(info, 1000), "can be written by other users");
  info.st_mode = S_IFDIR | 01777;
  EXPECT_EQ(distrust(info, 0), "can be written by other users");
}

TEST_F(ArtifactCacheTest, AFolderThatOthersCanWriteIsNotUsed) {
  ASSERT_EQ(::mkdir(dir_.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(dir_.c_str(), 0777), 0);
  ArtifactCache cache = open();
  EXPECT_EQ(cache.mode(), CacheMode::kOff);
  EXPECT_NE(cache.reason().find("can be written by other users"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(dir_));
  Result<CacheEntry> published = cache.publish(key_of("g"), library("code"));
  ASSERT_FALSE(published);
  EXPECT_EQ(published.reason(), cache.reason());
  EXPECT_FALSE(cache.lookup(key_of("g")).entry);
  EXPECT_TRUE(cache.list().empty());
  EXPECT_EQ(cache.clear(), 0u);
  EXPECT_EQ(cache.work_folder(), "");
}

TEST_F(ArtifactCacheTest, WhatIsNoFolderIsNotUsed) {
  std::ofstream(dir_) << "a file";
  EXPECT_EQ(open().mode(), CacheMode::kOff);
  EXPECT_NE(open().reason().find("Not a directory"), std::string::npos) << open().reason();

  fs::remove(dir_);
  fs::create_directory(scratch_ + "/real");
  fs::create_symlink(scratch_ + "/real", dir_);
  EXPECT_EQ(open().mode(), CacheMode::kOff);
  EXPECT_EQ(ArtifactCache::open(dir_ + "/", kPlenty).mode(), CacheMode::kOff);
  EXPECT_TRUE(fs::is_empty(scratch_ + "/real"));

  EXPECT_EQ(ArtifactCache::open("", kPlenty).mode(), CacheMode::kOff);
  EXPECT_EQ(ArtifactCache::open("/proc/no-such-folder/cache", kPlenty).mode(), CacheMode::kOff);
}

TEST_F(ArtifactCacheTest, AReadOnlyFolderServesWhatItHas) {
  CacheKey key = key_of("g");
  ASSERT_TRUE(open().publish(key, library("machine code")));
  // Readable by all and writable by none, for a user who is not root.
  for (const auto& item : fs::recursive_directory_iterator(dir_)) {
    ::chmod(item.path().c_str(), item.is_directory() ? 0555 : 0444);
  }
  ::chmod(dir_.c_str(), 0555);
  auto check = [&] {
    ArtifactCache cache = open();
    bool serves =
        cache.mode() == CacheMode::kReadOnly && cache.lookup(key).entry && cache.list().size() == 1;
    Result<CacheEntry> published = cache.publish(key_of("h"), library("code"));
    return serves && !published &&
           published.reason().find("cannot be written: Permission denied") != std::string::npos;
  };
  EXPECT_TRUE(in_other_process(check, true));
  for (const auto& item : fs::recursive_directory_iterator(dir_)) {
    ::chmod(item.path().c_str(), 0700);
  }
  ::chmod(dir_.c_str(), 0700);
}

TEST_F(ArtifactCacheTest, AFolderThatCannotBeMadeIsAReason) {
  ::chmod(scratch_.c_str(), 0555);
  auto check = [&] {
    ArtifactCache cache = open();
    return cache.mode() == CacheMode::kOff &&
           cache.reason().find("cannot be made: Permission denied") != std::string::npos;
  };
  EXPECT_TRUE(in_other_process(check, true));
  ::chmod(scratch_.c_str(), 0755);
}

TEST_F(ArtifactCacheTest, AFullDiskIsAReasonAndLeavesNothing) {
  // A limit on the size of files stands in for the disk's.
  auto check = [&] {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit small{100, 100};
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) return false;
    Result<CacheEntry> published = open().publish(key_of("g"), library(std::string(1000, 'x')));
    return !published && published.reason().find("File too large") != std::string::npos &&
           fs::is_empty(staging());
  };
  EXPECT_TRUE(in_other_process(check));
  EXPECT_FALSE(open().lookup(key_of("g")).entry);
}

TEST_F(ArtifactCacheTest, AMissingInputIsAReason) {
  std::vector<CacheInput> files = {CacheInput::from_file("model.so", scratch_ + "/nothing")};
  Result<CacheEntry> published = open().publish(key_of("g"), files);
  ASSERT_FALSE(published);
  EXPECT_NE(published.reason().find("No such file"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(staging()));
}

TEST_F(ArtifactCacheTest, NamesStayInsideTheEntry) {
  ArtifactCache cache = open();
  for (const char* name : {"", ".", "..", "../x", "/x", "a/b", ".hidden", "manifest.json"}) {
    std::vector<CacheInput> files = {CacheInput::from_bytes(name, "x")};
    EXPECT_THROW(cache.publish(key_of("g"), files), InternalError) << name;
  }
  std::vector<CacheInput> twice = {CacheInput::from_bytes("a", "1"),
                                   CacheInput::from_bytes("a", "2")};
  EXPECT_THROW(cache.publish(key_of("g"), twice), InternalError);
}

TEST_F(ArtifactCacheTest, TheFirstPublisherWins) {
  ASSERT_TRUE(open().publish(key_of("g"), library("first")));
  Result<CacheEntry> second = open().publish(key_of("g"), library("second"));
  ASSERT_TRUE(second) << second.reason();
  EXPECT_EQ(*read_file(second->path_of("model.so")), "first");
  EXPECT_TRUE(fs::is_empty(staging()));
}

TEST_F(ArtifactCacheTest, APublisherReplacesADamagedEntry) {
  ASSERT_TRUE(open().publish(key_of("g"), library("first")));
  std::ofstream(entry_path(key_of("g"), "model.so")) << "f1rst";
  Result<CacheEntry> second = open().publish(key_of("g"), library("second"));
  ASSERT_TRUE(second) << second.reason();
  EXPECT_EQ(*read_file(second->path_of("model.so")), "second");
}

TEST_F(ArtifactCacheTest, ProcessesMayPublishTheSameKeysAtOnce) {
  constexpr int kProcesses = 4;
  constexpr int kKeys = 25;
  auto work = [&] {
    // Small enough that the processes also evict each other's entries.
    ArtifactCache cache = open(8000);
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < kKeys; ++i) {
        CacheKey key = key_of(std::to_string(i));
        std::string bytes(200, static_cast<char>('a' + i));
        if (!cache.publish(key, library(bytes))) return false;
        LookupResult found = cache.lookup(key);
        if (!found.warning.empty()) return false;
        if (!found.entry) continue;
        std::optional<std::string> read = read_file(found.entry->path_of("model.so"));
        if (read && *read != bytes) return false;
      }
    }
    return true;
  };
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    pid_t pid = ::fork();
    if (pid == 0) ::_exit(work() ? 0 : 1);
    children.push_back(pid);
  }
  for (pid_t pid : children) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_TRUE(fs::is_empty(staging()));
}

TEST_F(ArtifactCacheTest, ACrashLeavesOnlyWhatIsSweptAnHourLater) {
  // The publisher hangs on a pipe that nobody writes to, and is killed there.
  std::string pipe = scratch_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ArtifactCache cache = open();
  pid_t pid = ::fork();
  if (pid == 0) {
    std::vector<CacheInput> files = {CacheInput::from_bytes("a", "b"),
                                     CacheInput::from_file("model.so", pipe)};
    static_cast<void>(cache.publish(key_of("g"), files));
    ::_exit(0);
  }
  for (int i = 0; i < 1000 && fs::is_empty(staging()); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  ASSERT_FALSE(fs::is_empty(staging()));
  EXPECT_FALSE(open().lookup(key_of("g")).entry);
  EXPECT_FALSE(fs::is_empty(staging()));  // might be another process at work
  for (const auto& item : fs::directory_iterator(staging())) age(item.path(), 3700);
  open();
  EXPECT_TRUE(fs::is_empty(staging()));
  EXPECT_TRUE(open().publish(key_of("g"), library("code")));
}

TEST_F(ArtifactCacheTest, TheLeastRecentlyUsedGoFirst) {
  ArtifactCache cache = open(50'000);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(cache.publish(key_of(std::to_string(i)), library(std::string(10'000, 'x'))));
    age(entry_path(key_of(std::to_string(i))), 1000 - i);
  }
  ASSERT_TRUE(cache.lookup(key_of("0")).entry);  // now the most recently used
  ASSERT_TRUE(cache.publish(key_of("4"), library(std::string(10'000, 'x'))));
  EXPECT_TRUE(cache.lookup(key_of("0")).entry);
  EXPECT_FALSE(cache.lookup(key_of("1")).entry);
  EXPECT_TRUE(cache.lookup(key_of("3")).entry);
  EXPECT_TRUE(cache.lookup(key_of("4")).entry);
}

TEST_F(ArtifactCacheTest, TheBoundHoldsOverManyPublications) {
  ArtifactCache cache = open(100'000);
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(cache.publish(key_of(std::to_string(i)), library(std::string(10'000, 'x'))));
    uint64_t bytes = 0;
    for (const CacheListing& listing : cache.list()) bytes += listing.usage.bytes;
    EXPECT_LE(bytes, 100'000u);
  }
  EXPECT_GE(cache.list().size(), 7u);
}

TEST_F(ArtifactCacheTest, ALostUsageFileIsCountedAnew) {
  ArtifactCache cache = open(50'000);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(cache.publish(key_of(std::to_string(i)), library(std::string(10'000, 'x'))));
  }
  for (const char* text : {"", "nonsense\n", "12"}) {
    std::ofstream(dir_ + "/v1/usage") << text;
    ASSERT_TRUE(cache.publish(key_of(text), library(std::string(9'000, 'x'))));
    uint64_t bytes = 0;
    for (const CacheListing& listing : cache.list()) bytes += listing.usage.bytes;
    EXPECT_LE(bytes, 50'000u);
    EXPECT_EQ(*read_file(dir_ + "/v1/usage"), std::to_string(bytes) + "\n");
  }
}

TEST_F(ArtifactCacheTest, AnEntryLargerThanTheCacheIsNotStored) {
  ArtifactCache cache = open(1000);
  Result<CacheEntry> published = cache.publish(key_of("g"), library(std::string(2000, 'x')));
  ASSERT_FALSE(published);
  EXPECT_NE(published.reason().find("limited to 1000"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(staging()));
}

TEST_F(ArtifactCacheTest, AMissIsExplainedByTheNearestEntry) {
  ArtifactCache cache = open();
  EXPECT_EQ(cache.explain_miss(key_of("g")).text(), "the cache is empty\n");
  ASSERT_TRUE(cache.publish(key_of("other", "avx512"), library("1")));
  ASSERT_TRUE(cache.publish(key_of("g", "avx2"), library("2")));

  MissExplanation explanation = cache.explain_miss(key_of("g", "baseline"));
  EXPECT_EQ(explanation.nearest, key_of("g", "avx2").digest);
  ASSERT_EQ(explanation.differences.size(), 1u);
  EXPECT_EQ(explanation.differences[0].name, "target");
  EXPECT_NE(explanation.text().find("target: wanted baseline, stored avx2"), std::string::npos);

  CacheKey more = KeyBuilder().field("graph", "g").field("compiler", "gcc").finish();
  explanation = cache.explain_miss(more);
  EXPECT_NE(explanation.text().find("compiler: wanted gcc, stored nothing"), std::string::npos);
  EXPECT_NE(explanation.text().find("target: wanted nothing, stored avx2"), std::string::npos);
  EXPECT_NE(cache.explain_miss(key_of("g")).text().find("has the same key"), std::string::npos);
}

TEST_F(ArtifactCacheTest, ListsAndClears) {
  ArtifactCache cache = open();
  ASSERT_TRUE(cache.publish(key_of("a"), library("1")));
  ASSERT_TRUE(cache.publish(key_of("b"), library("2")));
  age(entry_path(key_of("b")), 100);
  std::vector<CacheListing> listings = cache.list();
  ASSERT_EQ(listings.size(), 2u);
  EXPECT_EQ(listings[0].usage.digest, key_of("b").digest);
  EXPECT_EQ(listings[0].fields, key_of("b").fields);
  EXPECT_GT(listings[1].usage.bytes, 3u);
  EXPECT_EQ(cache.clear(), 2u);
  EXPECT_TRUE(cache.list().empty());
  EXPECT_FALSE(cache.lookup(key_of("a")).entry);
  EXPECT_TRUE(cache.publish(key_of("a"), library("1")));
}

}  // namespace
}  // namespace litz
