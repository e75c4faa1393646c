#include "codegen/common/iteration_space.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace litz {
namespace {

// One stage, in which elements do not depend on those before, with constant extents.
bool can_split(KernelAnalysis& analysis) {
  const Kernel& kernel = analysis.kernel();
  if (kernel.num_stages != 1 || kernel.sequential) return false;
  for (const KernelReduction& reduction : kernel.reductions) {
    if (reduction.running) return false;
  }
  for (const KernelStore& store : kernel.stores) {
    if (store.mode != StoreMode::kStore) return false;
  }
  for (size_t i = 0; i < analysis.num_loops(); ++i) {
    if (!analysis.extent(i).is_constant()) return false;
  }
  return true;
}

}  // namespace

double magnitude(Index e) {
  switch (e.kind()) {
    case IndexKind::kConstant:
      return std::abs(static_cast<double>(e.constant()));
    case IndexKind::kSymbol: {
      const auto range = e.range();
      return std::max(std::abs(static_cast<double>(range.lo)),
                      std::abs(static_cast<double>(range.hi)));
    }
    case IndexKind::kSum: {
      double total = std::abs(static_cast<double>(e.sum_constant()));
      for (const auto& [coefficient, term] : e.terms())
        total += std::abs(static_cast<double>(coefficient)) * magnitude(term);
      return total;
    }
    case IndexKind::kProduct: {
      double total = 1;
      for (Index factor : e.operands()) total *= std::max(1.0, magnitude(factor));
      return total;
    }
    case IndexKind::kFloorDiv:
    case IndexKind::kMod:
    case IndexKind::kMin:
    case IndexKind::kMax: {
      double most = 0;
      for (Index operand : e.operands()) most = std::max(most, magnitude(operand));
      return most;
    }
  }
  return std::numeric_limits<double>::infinity();
}

bool fits_32_bits(KernelAnalysis& analysis, const Program& program) {
  constexpr double kMost = 2147483647.0 - 65536.0;  // room for the threads past the end
  double iterations = 1;
  for (size_t i = 0; i < analysis.num_loops(); ++i)
    iterations *= std::max(1.0, magnitude(analysis.extent(i)));
  bool fits = iterations < kMost;
  for_each_access(analysis, program, [&](Index offset, int64_t, bool indirect) {
    // Indirect positions are 64-bit values, in whose arithmetic the rest takes part.
    if (!indirect && !(magnitude(offset) < kMost)) fits = false;
  });
  // Values of index expressions are computed in the type of positions.
  visit_postorder(analysis.all_roots(), [&](Expr e) {
    if (e.op() == ExprOp::kIndexValue && !(magnitude(e.index()) < kMost)) fits = false;
  });
  for (const KernelReduction& reduction : analysis.kernel().reductions) {
    if (reduction.position.valid() && !(magnitude(reduction.position) < kMost)) fits = false;
  }
  return fits;
}

int64_t inner_iterations(const KernelAnalysis& analysis) {
  int64_t iterations = 1;
  for (size_t i = analysis.kernel().outer.size(); i < analysis.num_loops(); ++i) {
    const Index e = analysis.extent(i);
    iterations *= e.is_constant() ? std::max<int64_t>(e.constant(), 1) : 4096;
    iterations = std::min<int64_t>(iterations, int64_t{1} << 40);
  }
  return iterations;
}

bool walks_columns(KernelAnalysis& analysis, const Program& program, int64_t least_width) {
  const Kernel& kernel = analysis.kernel();
  if (kernel.outer.empty()) return false;
  const size_t outer = kernel.outer.size() - 1;
  const size_t inner = analysis.num_loops() - 1;
  const Index width = analysis.extent(outer);
  if (width.is_constant() && width.constant() < least_width) return false;
  int score = 0;
  for_each_access(analysis, program, [&](Index offset, int64_t, bool) {
    // What is the same for all columns is little.
    if (analysis.walk(offset, inner) == KernelAnalysis::Walk::kContiguous &&
        analysis.walk(offset, outer) != KernelAnalysis::Walk::kStill)
      score -= 2;
    if (analysis.walk(offset, outer) == KernelAnalysis::Walk::kContiguous &&
        analysis.walk(offset, inner) == KernelAnalysis::Walk::kStrided)
      score += 2;
  });
  return score > 0;
}

int split_rows(KernelAnalysis& analysis, int64_t rows_of_block, int64_t iterations, int64_t least,
               const SplitLimits& limits) {
  if (!can_split(analysis) || iterations < limits.long_row) return 1;
  int64_t rows = 1;
  for (size_t i = 0; i < analysis.kernel().outer.size(); ++i) rows *= analysis.extent(i).constant();
  const int64_t blocks = (rows + rows_of_block - 1) / rows_of_block;
  if (rows == 0 || blocks >= limits.few_blocks) return 1;
  return static_cast<int>(std::clamp<int64_t>(
      std::min(limits.many_blocks / blocks, iterations / least), 1, limits.many_blocks));
}

TurnedLoads find_turned_loads(KernelAnalysis& analysis, int64_t least_extent) {
  const Kernel& kernel = analysis.kernel();
  if (kernel.outer.size() < 2 || kernel.sequential) return {};
  for (const KernelStore& store : kernel.stores) {
    if (store.mode != StoreMode::kStore || !store.runtime_indices.empty()) return {};
  }
  const size_t last = kernel.outer.size() - 1;
  size_t along = SIZE_MAX;
  bool possible = true;
  std::vector<Expr> loads;
  visit_postorder(analysis.outer_roots(), [&](Expr e) {
    // Loads under a condition must not happen ahead of it.
    if (e.op() == ExprOp::kMasked) possible = false;
    if (e.op() != ExprOp::kLoad || !e.operands().empty()) return;
    const Index offset = e.coordinates()[0];
    if (analysis.walk(offset, last) != KernelAnalysis::Walk::kStrided) return;
    bool contiguous = false;
    for (size_t loop = 0; loop < last; ++loop) {
      if (analysis.walk(offset, loop) != KernelAnalysis::Walk::kContiguous) continue;
      if (along != SIZE_MAX && along != loop) possible = false;
      along = loop;
      contiguous = true;
    }
    if (contiguous) loads.push_back(e);
  });
  if (!possible || loads.empty()) return {};
  for (size_t loop : {along, last}) {
    const Index e = analysis.extent(loop);
    if (e.is_constant() && e.constant() < least_extent) return {};
  }
  return {std::move(loads), along};
}

}  // namespace litz
