// What dialects for GPUs decide alike about a kernel's iterations: whether positions fit 32 bits,
// which loops are neighbours in memory, and what long rows are split into.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/common/kernel_analysis.h"

namespace litz {

// Calls act(offset, bytes of an element, whether it depends on a value) for every load and store.
template <class Act>
void for_each_access(KernelAnalysis& analysis, const Program& program, const Act& act) {
  visit_postorder(analysis.all_roots(), [&](Expr e) {
    if (e.op() == ExprOp::kLoad) act(e.coordinates()[0], size_of(e.dtype()), !e.operands().empty());
  });
  for (const KernelStore& store : analysis.kernel().stores)
    act(store.offset, size_of(program.buffer(store.buffer).dtype), !store.runtime_indices.empty());
}

// An upper bound of |e| and of every partial result while it is computed; saturates.
double magnitude(Index e);

// All positions and offsets fit 32 bits, of blocks that stand out past the end too.
bool fits_32_bits(KernelAnalysis& analysis, const Program& program);

// Iterations of all inner loops; an unknown extent counts as some thousands.
int64_t inner_iterations(const KernelAnalysis& analysis);

// Reads along the inner loop jump, while those along the last outer one, at least so wide, do not.
bool walks_columns(KernelAnalysis& analysis, const Program& program, int64_t least_width);

// Into how many stretches the rows of a kernel are split whose blocks work on `rows_of_block` rows
// and take at least `least` iterations; 1 where splitting does not pay or cannot be.
struct SplitLimits {
  int64_t long_row = 16384;     // shorter rows are not split
  int64_t few_blocks = 256;     // nor those that make so many blocks
  int64_t many_blocks = 1024;   // blocks that they are split into, about
  int64_t much_work = 1 << 18;  // iterations that are worth a second kernel
};
int split_rows(KernelAnalysis& analysis, int64_t rows_of_block, int64_t iterations, int64_t least,
               const SplitLimits& limits = {});

// Of a kernel without inner loops: loads that jump along the last outer loop, and the one along
// which all of them are contiguous. Empty where there are none, or one of the two loops is shorter
// than `least_extent`.
struct TurnedLoads {
  std::vector<Expr> loads;
  size_t loop = SIZE_MAX;
};
TurnedLoads find_turned_loads(KernelAnalysis& analysis, int64_t least_extent);

}  // namespace litz
