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
};

Plan schedule_program(std::shared_ptr<const Program> program, const ScheduleOptions& options);

}  // namespace litz
