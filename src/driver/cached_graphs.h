// What the cache of compiled graphs holds, for people who look after it: graphs, and what was
// measured for them (choose_cpp_kernels.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cache/artifact_cache.h"
#include "driver/options.h"

namespace litz {

// The cache that the options name.
ArtifactCache open_graph_cache(const Options& options);

struct CachedGraph {
  std::string digest;   // the name of its folder
  std::string dialect;  // "cpp", "triton", "cuda", or the name of a backend; or "measured"
  std::string graph;    // its text; of a long one the length and a checksum; or what was measured
  uint64_t bytes = 0;
  int64_t last_used_ns = 0;  // nanoseconds since 1970
};

// Least recently used first. Throws UserError where the folder cannot be used.
std::vector<CachedGraph> cached_graphs(const Options& options);

// Removes all graphs, or those whose kernels are in `dialect`, and returns how many there were.
// Programs that have one loaded keep it. Throws UserError where the folder cannot be written.
size_t clear_cached_graphs(const Options& options, const std::string& dialect = "");

}  // namespace litz
