// The channels-last memory format of batches of images (NHWC) and volumes (NDHWC).
#pragma once

#include <vector>

#include "graph/graph.h"

namespace litz {

// Whether torch has the format for tensors of this rank.
inline bool has_channels_last(size_t rank) { return rank == 4 || rank == 5; }

// Strides with the channels, dimension 1, innermost. Requires has_channels_last.
std::vector<Index> channels_last_strides(IndexContext& context, std::span<const Index> sizes);

// The tensor is strided and its elements lie in that order without gaps; strides of dimensions of
// size 1 do not matter, so a tensor may be channels-last and row-major at once.
bool is_channels_last(IndexContext& context, const TensorMeta& tensor);
bool is_row_major(IndexContext& context, const TensorMeta& tensor);

// torch's number of the format, for tensors of this rank.
MemoryFormatArg channels_last_format(size_t rank);

}  // namespace litz
