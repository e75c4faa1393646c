// The files of the normalization family: each gives its rows, lowering/normalization_lowerings.cpp
// joins them.
#pragma once

#include <span>

#include "lowering/lowering.h"

namespace litz {

std::span<const LoweringRow> softmax_rows();
std::span<const LoweringRow> layer_norm_rows();
std::span<const LoweringRow> rms_norm_rows();
std::span<const LoweringRow> batch_norm_rows();
std::span<const LoweringRow> loss_rows();
std::span<const LoweringRow> nll_loss_rows();

}  // namespace litz
