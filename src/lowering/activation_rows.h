// The parts of the activation family, one for each file.
#pragma once

#include <span>

#include "lowering/lowering.h"

namespace litz {

std::span<const LoweringRow> activation_backward_rows();

}  // namespace litz
