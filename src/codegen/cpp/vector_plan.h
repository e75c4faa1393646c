// Which loop of a kernel becomes the vector loop, and how many lanes it has.
#pragma once

#include "codegen/common/kernel_analysis.h"

namespace litz {

struct VectorPlan {
  static constexpr size_t kNone = SIZE_MAX;
  size_t loop = kNone;  // position among all loops of the kernel
  bool outer = false;   // it is an outer loop
  int lanes = 1;
};

// vector_bytes: width of a register.
VectorPlan plan_vectors(KernelAnalysis& analysis, const Program& program, int vector_bytes);

}  // namespace litz
