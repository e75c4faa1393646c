// The parts of the join family, one for each file, and what they share.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lowering/lowering.h"

namespace litz {

std::span<const LoweringRow> pad_rows();
std::span<const LoweringRow> unfolding_rows();
std::span<const LoweringRow> window_scatter_rows();

// Comparisons of index values, as bools.
Expr index_below(OpCall& call, Index a, Index b);
Expr index_not_below(OpCall& call, Index a, Index b);
Expr index_equals(OpCall& call, Index a, Index b);

// Sets result 0 to elements of the argument "self", taken from where the map says.
using PositionMap = std::function<std::vector<Index>(std::span<const Index> position)>;
std::optional<Unsupported> set_moved(OpCall& call, const PositionMap& map);

}  // namespace litz
