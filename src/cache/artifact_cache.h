// A store of compiled artifacts on disk, addressed by what went into them.
//
// An entry is a named set of files (a shared library, its description, logs). It is published in
// one step, never changed, and checked in full before it is handed out: a flipped bit is a miss,
// not a crash. Any number of threads and processes may use one folder at the same time. A folder
// that cannot be used, or only read, is not an error: lookups then miss, and publish gives a
// reason.
//
// The folder is the user's own, closed to others; that is what makes it safe to load code from an
// entry after it was checked. An entry may be evicted by another process at any time, so opening a
// file of an entry that was just found can fail: that is a miss too. A file once opened or mapped
// stays good.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/cache_dir.h"
#include "cache/cache_key.h"
#include "cache/manifest.h"
#include "support/error.h"

namespace litz {

// A file to put into an entry: bytes at hand, or a file to copy. The name has letters, digits, '.',
// '_' and '-', and does not begin with '.'.
struct CacheInput {
  static CacheInput from_bytes(std::string name, std::string bytes);
  static CacheInput from_file(std::string name, std::string path);

  std::string name;
  std::string bytes;
  std::string path;  // empty: `bytes` counts
};

struct CacheEntry {
  std::string digest;
  std::string folder;
  std::vector<ManifestFile> files;

  bool contains(std::string_view name) const;
  // The path of a file that the entry contains.
  std::string path_of(std::string_view name) const;
};

struct LookupResult {
  std::optional<CacheEntry> entry;
  std::string warning;  // an entry was there and could not be trusted; empty for a plain miss
};

struct FieldDifference {
  std::string name;
  std::string wanted;  // empty where the key has no such field
  std::string stored;  // empty where the entry has no such field
};

struct MissExplanation {
  std::string nearest;  // digest of the entry with the fewest differences; empty: there is no entry
  std::vector<FieldDifference> differences;

  std::string text() const;
};

struct CacheListing {
  EntryUsage usage;
  std::vector<KeyField> fields;
};

class ArtifactCache {
 public:
  // `max_bytes` bounds the files of all entries together; it may be passed for a short while.
  static ArtifactCache open(const std::string& dir, uint64_t max_bytes);

  CacheMode mode() const { return dir_.mode; }
  // Why the cache is off or read-only, in a sentence; empty for kReadWrite.
  const std::string& reason() const { return dir_.reason; }

  LookupResult lookup(const CacheKey& key) const;

  // The entry as it stands in the cache, or why it could not be stored. Where somebody else was
  // faster, theirs is the entry.
  Result<CacheEntry> publish(const CacheKey& key, std::span<const CacheInput> files) const;

  // The stored entry that is closest to the key, and in what they differ.
  MissExplanation explain_miss(const CacheKey& key) const;

  // Least recently used first.
  std::vector<CacheListing> list() const;

  // Removes every entry, or those that `which` picks; returns how many there were.
  size_t clear() const;
  size_t clear(const std::function<bool(const CacheListing&)>& which) const;

  // A folder on the same disk for work in progress, such as a build; swept when left behind. Empty
  // unless the cache can be written.
  std::string work_folder() const;

 private:
  ArtifactCache(CacheDir dir, uint64_t max_bytes) : dir_(std::move(dir)), max_bytes_(max_bytes) {}

  CacheDir dir_;
  uint64_t max_bytes_;
};

}  // namespace litz
