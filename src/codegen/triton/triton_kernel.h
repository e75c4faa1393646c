// Prints one kernel of a plan as Triton: a function, or two where long rows are split.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/common/combined_launch.h"
#include "codegen/triton/triton_prelude.h"
#include "schedule/plan.h"

namespace litz {

inline constexpr std::string_view kTritonKernelName = "KERNEL";

// What kernels for a device go by.
struct TritonDevice {
  int64_t multiprocessors = 132;  // an H200's
};

// One launch of a function: as many programs as `programs` says, times `splits` in the grid's
// second dimension.
struct TritonFunction {
  std::string suffix;  // behind the kernel's name
  Index programs;
  int splits = 1;
  int warps = 4;
  int stages = 1;
};

struct TritonKernel {
  std::string text;                       // names its functions kTritonKernelName and a suffix
  std::string tile;                       // what a program works on, in words
  std::vector<TritonFunction> functions;  // launched in order
  bool checks = false;                    // needs assertions
  bool is_combined = false;               // of several kernels
  // Arguments in order: arrays of partial results s0, s1, ... in scratch memory, buffers p0, p1,
  // ..., int64 sizes n0, n1, ...
  struct Partial {
    DType dtype;
    int64_t elements;
  };
  std::vector<Partial> partials;
  std::vector<BufferId> buffers;
  std::vector<Index> symbols;
};

// Bytes of an array of partial results, in whole alignments.
inline int64_t partial_bytes(const TritonKernel::Partial& partial) {
  return (partial.elements * size_of(partial.dtype) + 255) / 256 * 256;
}

// "@triton.jit" and the first lines of a function; `narrow`: sizes fit 32 bits.
std::string triton_header(const TritonKernel& kernel, const TritonFunction& function, bool narrow);

// Why the kernel cannot be printed as Triton; empty where it can.
std::string triton_refusal(const Program& program, const Kernel& kernel);

// Of a kernel without inner loops that is one of several, as powers of two.
struct PartTile {
  int rows = 0;
  int warps = 0;
};

// `unaligned` says of each buffer of the program whether it begins anywhere.
//
// The kernel as one of several; nothing where it needs launches of its own.
std::optional<CombinedPart> print_triton_part(const Plan& plan, const Kernel& kernel,
                                              const std::vector<bool>& unaligned,
                                              TritonPrelude& prelude, const PartTile& tile = {});
TritonKernel print_triton_kernel(const Plan& plan, const Kernel& kernel,
                                 const std::vector<bool>& unaligned, const TritonDevice& device,
                                 TritonPrelude& prelude);

// The same kernel with other tiles, which may be faster on some device. Buffers and symbols are the
// same; functions, numbers of programs and partial results differ.
std::vector<TritonKernel> print_triton_variants(const Plan& plan, const Kernel& kernel,
                                                const std::vector<bool>& unaligned,
                                                const TritonDevice& device, TritonPrelude& prelude);

}  // namespace litz
