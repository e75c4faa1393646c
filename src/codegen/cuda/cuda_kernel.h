// Prints one kernel as CUDA C++, and the host function that launches it.
//
// A group of threads (thread_plan.h) runs one iteration of the outer loops, stage by stage: its
// threads take turns in the inner loops, then combine their accumulators by shuffles and, in groups
// of more than a warp, through shared memory, always in the same order, so that equal inputs give
// equal results.
#pragma once

#include <string>
#include <vector>

#include "codegen/cpp/prelude.h"
#include "schedule/plan.h"

namespace litz {

struct CudaKernel {
  // Both name the function kCudaKernelName, and kCudaKernelNumber stands for its number.
  std::string device_text;
  std::string host_text;
  std::vector<BufferId> buffers;  // pointer arguments p0, p1, ...
  std::vector<Index> symbols;     // int64 arguments n0, n1, ...
  // A second function, kCudaKernelName followed by kCudaFinish, combines the partial results that
  // the first one leaves in so many bytes of scratch memory; 0: there is none.
  int64_t scratch_bytes = 0;
};

inline constexpr std::string_view kCudaKernelName = "KERNEL";
inline constexpr std::string_view kCudaKernelNumber =
    "NUMBER";  // the second function's is one more
inline constexpr std::string_view kCudaFinish = "_finish";

// The host function's signature is
//   void KERNEL(const LitzHost* host, i32* status, char* scratch, char* p0, ..., i64 n0, ...)
// `prelude` is that of the device text.
CudaKernel print_cuda_kernel(const Program& program, const Kernel& kernel, Prelude& prelude);

}  // namespace litz
