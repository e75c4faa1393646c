#include "driver/cached_graphs.h"

#include <algorithm>

#include "driver/environment.h"
#include "support/error.h"

namespace litz {
namespace {

std::string field(const CacheListing& listing, std::string_view name) {
  const auto found = std::find_if(listing.fields.begin(), listing.fields.end(),
                                  [&](const KeyField& f) { return f.name == name; });
  return found == listing.fields.end() ? "" : found->value;
}

ArtifactCache open_usable(const Options& options) {
  ArtifactCache cache = open_graph_cache(options);
  if (cache.mode() == CacheMode::kOff)
    throw UserError("the cache cannot be used; " + cache.reason());
  return cache;
}

}  // namespace

ArtifactCache open_graph_cache(const Options& options) {
  const std::string& folder = options.cache_dir;
  return ArtifactCache::open(folder.empty() ? default_cache_folder() : folder,
                             static_cast<uint64_t>(options.cache_size_mb) << 20);
}

std::vector<CachedGraph> cached_graphs(const Options& options) {
  std::vector<CachedGraph> graphs;
  for (const CacheListing& listing : open_usable(options).list()) {
    const EntryUsage& usage = listing.usage;
    graphs.push_back({usage.digest, field(listing, "dialect"), field(listing, "graph"), usage.bytes,
                      usage.last_used_ns});
  }
  return graphs;
}

size_t clear_cached_graphs(const Options& options, const std::string& dialect) {
  const ArtifactCache cache = open_usable(options);
  if (cache.mode() != CacheMode::kReadWrite)
    throw UserError("the cache cannot be cleared; " + cache.reason());
  if (dialect.empty()) return cache.clear();
  return cache.clear(
      [&](const CacheListing& listing) { return field(listing, "dialect") == dialect; });
}

}  // namespace litz
