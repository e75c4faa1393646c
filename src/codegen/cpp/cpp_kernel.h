// Prints one kernel as C++: a body over a range of outer iterations, and a function that hands the
// body to the host's threads.
//
// The kernel's loops become, outermost first:
//   rows        the outer loops but the vector loop, flattened; split among threads
//   tiles       of the vector loop, where that is an outer loop
//   stages      each with the inner loops and the vector loop innermost
// Reductions are accumulated in vector registers where the vector loop is an inner loop (several
// accumulators, block by block so that float sums stay accurate, lanes combined in a fixed tree),
// and in an array of one tile where it is an outer loop. A reduction with few rows is split among
// threads: each makes a partial result for its part of the innermost loop, combined in order, so
// that the result depends on the number of threads only.
#pragma once

#include <string>
#include <vector>

#include "codegen/cpp/prelude.h"
#include "schedule/plan.h"

namespace litz {

struct CppKernel {
  std::string text;  // definition; the function's name is kKernelName wherever it occurs
  std::vector<BufferId> buffers;  // pointer arguments p0, p1, ...
  bool checks_values = false;     // the status has to be looked at after the call
  std::vector<Index> symbols;     // int64 arguments n0, n1, ...
};

inline constexpr std::string_view kKernelName = "KERNEL";

// The function's signature is
//   void KERNEL(const LitzHost* host, i32* status, char* p0, ..., i64 n0, ...)
// `status` is set where a check fails.
CppKernel print_cpp_kernel(const Program& program, const Kernel& kernel, Prelude& prelude,
                           const PreludeTarget& target);

}  // namespace litz
