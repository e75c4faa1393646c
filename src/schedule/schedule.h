// Program to Plan: dead operations go, cheap producers are computed where they are used, the rest
// is grouped into kernels, kernels are ordered, and buffers get storage. Time is near-linear in the
// number of operations. schedule/schedule_steps.h has the steps one by one.
#pragma once

#include <memory>

#include "schedule/plan.h"

namespace litz {

struct ScheduleOptions {
  bool inline_producers = true;
  bool fuse = true;
  bool order_groups = true;
  bool reuse_memory = true;
  int max_kernel_nodes = 400;  // scalar operations of one kernel, before fusion stops
  // Where there are no more rows than this, and they are so long, a kernel walks them once: what
  // needs a row's result is a kernel of its own, so that each can share out the rows' elements.
  int64_t few_rows = 4;
  int64_t long_row = 64 * 1024;
  // Kernels take the sum of exp(x - m) along with the maximum m (codegen/common/online_sums.h).
  bool online_sums = false;
};

Plan schedule_program(std::shared_ptr<const Program> program, const ScheduleOptions& options);

}  // namespace litz
