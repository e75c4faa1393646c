// The files of the normalization family: each gives its rows, lowering/normalization_lowerings.cpp
// joins them.
#pragma once

#include <span>

#include "lowering/lowering.h"

namespace litz {

std::span<const LoweringRow> softmax_lowerings();
std::span<const LoweringRow> layer_norm_lowerings();
std::span<const LoweringRow> batch_norm_lowerings();
std::span<const LoweringRow> loss_lowerings();
std::span<const LoweringRow> nll_loss_lowerings();

}  // namespace litz
