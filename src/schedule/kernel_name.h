// Names of kernels, as profilers, debuggers and reports show them: "litz_add_relu_k0".
#pragma once

#include <span>
#include <string>
#include <vector>

#include "schedule/plan.h"

namespace litz {

// What an operation of a program does: the graph's op, or where there is none, scalar operations
// and what it does with their values.
std::vector<KernelOp> kernel_ops(const Operation& operation);

// The ops in order, each once, as many as fit kKernelNameLength characters; where not all do, first
// of all those that are more than elementwise. Letters, digits and underscores only.
inline constexpr size_t kKernelNameLength = 48;
std::string kernel_name(std::span<const KernelOp> ops, size_t number);

}  // namespace litz
