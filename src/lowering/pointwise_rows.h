// The parts of the pointwise family, one for each file.
#pragma once

#include <span>

#include "lowering/lowering.h"

namespace litz {

std::span<const LoweringRow> arithmetic_rows();
std::span<const LoweringRow> math_rows();
std::span<const LoweringRow> comparison_rows();
std::span<const LoweringRow> selection_rows();
std::span<const LoweringRow> copy_rows();

}  // namespace litz
