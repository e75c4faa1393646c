// Chooses on a CPU, as choose_kernels.h does, and remembers for this machine what was measured: in
// the cache, as an entry for each candidate, so that the next graph with the same steps, in any
// process, does not measure again.
#pragma once

#include <string>

#include "cache/artifact_cache.h"
#include "driver/choose_kernels.h"
#include "driver/compile.h"
#include "driver/options.h"
#include "graph/graph.h"
#include "support/error.h"
#include "support/target.h"
#include "toolchain/host_compiler.h"

namespace litz {

// The dialect that the cache has for what was measured.
inline constexpr const char* kMeasured = "measured";

// What times on a CPU depend on but for the code: the machine, its library and its threads.
std::string machine_text(const HostPaths& paths, const CpuTarget& target);

// `paths` has a torch, and times the library's calls.
Result<ChosenKernels> choose_cpp_kernels(const Graph& graph, const Options& options,
                                         const HostPaths& paths, const HostCompiler& compiler,
                                         const CpuTarget& target, const ArtifactCache& cache);

}  // namespace litz
