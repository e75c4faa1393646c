// The files of the indexing family, and what one needs of another.
#pragma once

#include <optional>
#include <span>

#include "lowering/lowering.h"

namespace litz {

std::span<const LoweringRow> masked_store_rows();

// index_put where an index is a mask.
std::optional<Unsupported> lower_masked_put(OpCall& call);

}  // namespace litz
