// What the threads of a group keep in registers of their row, where it fits: what they read of it
// before the first stage waits for anything, and what one stage computes and a later one needs.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/common/kernel_analysis.h"
#include "codegen/simt/thread_plan.h"

namespace litz {

struct RowRegisters {
  struct Value {
    Expr value;
    uint32_t stage = 0;  // that computes it
  };
  std::vector<Expr> loads;
  std::vector<Value> values;  // no loads
};

RowRegisters plan_row_registers(KernelAnalysis& analysis, const ThreadPlan& plan);

}  // namespace litz
