// The folder that a cache lives in, and the moves in it that must look like one step from outside.
//
//   v1/entries/<digest>/   one entry: its files and manifest.json; never changed once it is there
//   v1/staging/            entries in the making, entries on their way out, and other work in
//                          progress; what a crash left here is swept after an hour
//   v1/usage               bytes in all entries, about; also the lock of the evictor
//
// The layout has a version so that programs of different ages can share the folder.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace litz {

struct CachePaths {
  std::string entries;
  std::string staging;
  std::string usage;
};

enum class CacheMode : uint8_t { kOff, kReadOnly, kReadWrite };

struct CacheDir {
  CacheMode mode = CacheMode::kOff;
  std::string reason;  // why it is not kReadWrite
  CachePaths paths;
};

// Makes the folder where it is missing, for this user alone, and checks that nobody else can write
// to it: it must be a real folder, owned by this user or by root, and closed to writers of the
// group and the world.
CacheDir open_cache_dir(const std::string& dir);

// Empty, or what about this file or folder would let somebody other than `user` or root change it.
std::string distrust(const struct stat& info, uid_t user);

// The same of something already open, so that what is checked is what is read.
std::string distrust(int fd);

// Removes an entry so that it is there in full until it is not there at all. False where it could
// not be removed.
bool remove_entry(const CachePaths& paths, const std::string& digest);

void sweep_staging(const CachePaths& paths, int64_t older_than_seconds);

struct EntryUsage {
  std::string digest;
  uint64_t bytes = 0;
  int64_t last_used_ns = 0;  // nanoseconds since 1970
};

// All entries, least recently used first.
std::vector<EntryUsage> scan_entries(const CachePaths& paths);

void mark_used(const CachePaths& paths, const std::string& digest);

// Adds to the number of bytes in use; when that passes `max_bytes`, removes the least recently used
// entries until a tenth of the room is free again. `keep` is not removed. Where another process is
// at it, does nothing: the bound is met by the next one.
void account_and_evict(const CachePaths& paths, uint64_t added_bytes, uint64_t max_bytes,
                       const std::string& keep);

}  // namespace litz
