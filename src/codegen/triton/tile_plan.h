// What one program of a Triton kernel works on: a tile of iterations.
//
//   no inner loops    a stretch of all outer loops as one, or a square of two of them where loads
//   are
//                     contiguous along one and stores along the other
//   inner loops       `rows` iterations of the outer loops by a stretch of the inner loops as one;
//                     all of them where `persistent`, so that the row stays in registers from stage
//                     to stage, else in steps
//
// Where the kernel has reductions over the outer loops, a program works on a stretch of tiles that
// hold whole rows.
#pragma once

#include <string>
#include <vector>

#include "codegen/common/kernel_analysis.h"
#include "schedule/schedule.h"

namespace litz {

struct TilePlan {
  int rows = 1;     // of the tile: iterations of the outer loops
  int columns = 0;  // ... and of the inner loops, or of the last loop of a square; 0: none
  int warps = 4;
  bool narrow = false;  // all positions and offsets fit 32 bits
  bool persistent = false;
  size_t turned_loop = SIZE_MAX;  // of a square: the loop along its rows
  // Above 1, so many programs share the inner loops of one row; a second kernel combines what they
  // made.
  int splits = 1;
  int64_t stretch = 0;  // inner iterations of each of them but the last
  // Of a kernel with reductions over the outer loops: rows that a program goes through, in whole
  // tiles, and how many of these are on their way from memory at once, in Triton's count.
  int64_t rows_of_program = 0;
  int stages = 1;

  bool operator==(const TilePlan&) const = default;
};

// For kernels with reductions over the outer loops.
ColumnSumLimits triton_column_sums();

// `among_others`: kernels that run at once leave no multiprocessor idle.
TilePlan plan_tile(KernelAnalysis& analysis, const Program& program, bool among_others = false);

// Other plans of the same kind for the kernel, one of which may be faster than `plan` on some
// device: those that differ from it in one step of one or two numbers.
std::vector<TilePlan> other_tiles(KernelAnalysis& analysis, const TilePlan& plan);

// "2 rows by 1024, 8 warps".
std::string to_string(const TilePlan& plan);

// The smallest power of two that is no less.
int power_of_two(int64_t value);

}  // namespace litz
