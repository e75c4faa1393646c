// The files of the reduction family: each gives its rows, lowering/reduction_lowerings.cpp joins
// them.
#pragma once

#include <span>

#include "lowering/lowering.h"

namespace litz {

std::span<const LoweringRow> basic_reduction_rows();
std::span<const LoweringRow> statistics_rows();
std::span<const LoweringRow> scan_rows();

}  // namespace litz
