// Builds a shared library in a folder of its own.
#pragma once

#include <string>
#include <vector>

#include "toolchain/host_compiler.h"

namespace litz {

inline constexpr const char* kLibraryName = "graph.so";

// In the first of these folders that has room; empty ones are none. Sets the job's folders; that of
// its output is for the caller to remove. Where a build fails, nothing is left.
BuildResult build_library(const std::vector<std::string>& folders, const HostCompiler& compiler,
                          SharedLibraryJob& job);

}  // namespace litz
