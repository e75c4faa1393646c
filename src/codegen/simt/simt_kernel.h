// Prints one kernel for the threads of a device, in the words of a dialect, and the host function
// that launches it.
//
// A group of threads (thread_plan.h) runs one iteration of the outer loops, stage by stage: its
// threads take turns in the inner loops, then combine their accumulators, within a warp by shuffles
// where the dialect has them and else through local memory, always in the same order, so that equal
// inputs give equal results.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/common/combined_launch.h"
#include "codegen/cpp/prelude.h"
#include "codegen/simt/simt_dialect.h"
#include "codegen/simt/thread_plan.h"
#include "schedule/plan.h"

namespace litz {

struct SimtKernel {
  // Both name the function kSimtKernelName, and kSimtKernelNumber stands for its number.
  std::string device_text;
  std::string host_text;
  std::vector<BufferId> buffers;  // pointer arguments p0, p1, ...
  std::vector<Index> symbols;     // int64 arguments n0, n1, ...
  bool takes_array = false;       // of the pointers, in the host function
  // A second function, kSimtKernelName followed by kSimtFinish, combines the partial results that
  // the first one leaves in so many bytes of scratch memory; 0: there is none.
  int64_t scratch_bytes = 0;
  bool checks_values = false;
  std::string tile;   // how threads share the iterations, in words
  std::string fault;  // ThreadPlan::fault
  // What the host function does with one function after the other, for who launches them himself.
  struct Launch {
    Index blocks;  // times `splits` in the grid's second dimension
    int splits = 1;
    int threads = 0;
  };
  std::vector<Launch> launches;
};

inline constexpr std::string_view kSimtKernelName = "KERNEL";
inline constexpr std::string_view kSimtKernelNumber =
    "NUMBER";  // the second function's is one more
inline constexpr std::string_view kSimtFinish = "_finish";

// The host function's signature is
//   void KERNEL(const LitzHost* host, i32* status, char* scratch, char* p0, ..., i64 n0, ...)
// `prelude` is that of the device text, `unaligned` says of each buffer whether it begins anywhere.
SimtKernel print_simt_kernel(const Program& program, const Kernel& kernel,
                             const std::vector<bool>& unaligned, const SimtDialect& dialect,
                             const ThreadHeuristics& heuristics, Prelude& prelude);

// The same kernel, which is `printed`, with other plans of its threads, some of which may be faster
// on some device. Buffers and symbols are the same.
std::vector<SimtKernel> print_simt_variants(const Program& program, const Kernel& kernel,
                                            const std::vector<bool>& unaligned,
                                            const SimtDialect& dialect,
                                            const ThreadHeuristics& heuristics,
                                            const SimtKernel& printed, Prelude& prelude);

// The kernel as one of several; nothing where it needs launches of its own.
std::optional<CombinedPart> print_simt_part(const Program& program, const Kernel& kernel,
                                            const std::vector<bool>& unaligned,
                                            const SimtDialect& dialect,
                                            const ThreadHeuristics& heuristics, Prelude& prelude);

}  // namespace litz
