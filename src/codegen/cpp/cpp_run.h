// Prints the entry points of an artifact: describe, workspace size, and `run`, which calls kernels
// and the library in the plan's order.
#pragma once

#include <string>
#include <vector>

#include "codegen/cpp/prelude.h"
#include "schedule/plan.h"

namespace litz {

inline constexpr int kDeviceAlignment = 16;

// Whether the graph writes to a buffer that is one of its inputs, for each buffer.
std::vector<bool> mutated_inputs(const Program& program);
// ... and that kernels get where it is, aligned or not: a copy of it in the meantime would be
// missed by library ops, and copying it back could overwrite what lies between its elements.
std::vector<bool> unaligned_inputs(const Program& program);

// How a kernel of the plan is called.
struct KernelCall {
  // Empty: the kernel is one of a KernelSet that the call of another one launches, too.
  std::string function;
  std::vector<BufferId> buffers;
  std::vector<Index> symbols;
  bool checks_values = false;
  bool takes_array = false;     // of the buffers' addresses
  KernelId launched_with = {};  // where the function is empty: whose call it is
};

struct CppRun {
  std::string text;
  std::vector<OperationId> extern_ops;
};

struct CppRunOptions {
  std::string description;  // JSON, becomes LitzArtifact::description
  // Kernels and memory are a device's: the text before the entry points defines `device_code`.
  bool on_device = false;
  int64_t scratch_bytes = 0;  // behind the plan's workspace, for one kernel at a time
  // The device's kernels rely on buffers that begin at multiples of kDeviceAlignment bytes: of
  // other inputs, but for unaligned_inputs, they are given copies.
  bool aligned = false;
};

// The prelude gets the functions that the text uses.
CppRun print_cpp_run(const Plan& plan, const std::vector<KernelCall>& calls, Prelude& prelude,
                     const CppRunOptions& options);

}  // namespace litz
