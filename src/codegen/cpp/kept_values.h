// Values of a row's elements that one stage of a kernel computes at some cost and a later one needs
// again, such as the exponentials of softmax: they are kept in an array on the stack.
#pragma once

#include <vector>

#include "codegen/common/kernel_analysis.h"
#include "codegen/cpp/vector_plan.h"

namespace litz {

struct KeptValue {
  Expr value;
  uint32_t stage = 0;    // that computes it
  int64_t elements = 0;  // of the array, whole vectors
};

// None unless the vector loop, of a known length, is the only inner loop.
std::vector<KeptValue> plan_kept_values(KernelAnalysis& analysis, const VectorPlan& plan);

}  // namespace litz
