// The files of the pooling family: each gives its rows, lowering/pooling_lowerings.cpp joins them.
#pragma once

#include <span>

#include "lowering/lowering.h"

namespace litz {

std::span<const LoweringRow> average_pooling_rows();
std::span<const LoweringRow> max_pooling_rows();
std::span<const LoweringRow> upsampling_rows();
std::span<const LoweringRow> grid_sampling_rows();

}  // namespace litz
