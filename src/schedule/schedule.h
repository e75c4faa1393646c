// Program to Plan: dead operations go, cheap producers are computed where they are used, the rest
// is grouped into kernels, kernels are ordered, and buffers get storage. Time is near-linear in the
// number of operations. schedule/schedule_steps.h has the steps one by one.
#pragma once

#include <memory>

#include "schedule/plan.h"

namespace litz {

// What a dialect does with kernels of rows that have reductions over the outer loops: each of some
// programs goes through a stretch of the rows and has the sums of all columns at hand, which are
// added up at the end.
struct ColumnSumLimits {
  int64_t elements = 0;  // a row's, and those of all its sums together; 0: no such kernels
  int64_t programs = 1;
  int64_t least_rows = 1;
};

struct ScheduleOptions {
  bool inline_producers = true;
  bool fuse = true;
  bool join_column_sums = true;
  bool combine_kernels = true;
  bool order_groups = true;
  bool reuse_memory = true;
  int max_kernel_nodes = 400;  // scalar operations of one kernel, before fusion stops
  // Where there are no more rows than this, and they are so long, a kernel walks them once: what
  // needs a row's result is a kernel of its own, so that each can share out the rows' elements.
  int64_t few_rows = 4;
  int64_t long_row = 64 * 1024;
  // So many rows that lie across memory, neighbours along the outer loop, are walked at once; 0:
  // they are rows like others. What needs their results is a kernel of its own where there are no
  // more than few_bands of long_band elements each.
  int64_t band_width = 0;
  int64_t few_bands = 0;
  int64_t long_band = 16 * 1024;
  // A kernel reads and stores along its rows or across them, and not both: a kernel of its own,
  // which turns blocks in the caches, brings the one into the order of the other.
  bool one_direction = false;
  // Kernels take the sum of exp(x - m) along with the maximum m (codegen/common/online_sums.h).
  bool online_sums = false;
  // ... and the sum of squared deviations from a mean along with the sum that the mean is of.
  bool sums_of_deviations = false;
  // Matrix products that are reductions are kernels of their own kind (schedule/matrix_product.h).
  bool matrix_products = false;
  // ... and make half floats of integers of 8 bits on the way.
  bool converts_factors = false;
  // Kernels of rows that sum up columns as well, where the dialect has them.
  ColumnSumLimits column_sums;
  // Independent kernels of no more iterations each may run at once; 0: no kernels do.
  int64_t combined_iterations = 0;
};

Plan schedule_program(std::shared_ptr<const Program> program, const ScheduleOptions& options);

}  // namespace litz
