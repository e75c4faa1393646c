#include "passes/channels_last.h"

#include <algorithm>

namespace litz {
namespace {

bool walks_like(const TensorMeta& tensor, std::span<const Index> strides) {
  if (tensor.layout != TensorLayout::kStrided) return false;
  for (size_t i = 0; i < strides.size(); ++i) {
    if (!tensor.sizes[i].is_constant(1) && tensor.strides[i] != strides[i]) return false;
  }
  return true;
}

}  // namespace

std::vector<Index> channels_last_strides(IndexContext& context, std::span<const Index> sizes) {
  std::vector<Index> in_memory(sizes.begin(), sizes.end());
  std::rotate(in_memory.begin() + 1, in_memory.begin() + 2, in_memory.end());
  std::vector<Index> strides = contiguous_strides(context, in_memory);
  std::rotate(strides.begin() + 1, strides.end() - 1, strides.end());
  return strides;
}

bool is_channels_last(IndexContext& context, const TensorMeta& tensor) {
  return has_channels_last(tensor.sizes.size()) &&
         walks_like(tensor, channels_last_strides(context, tensor.sizes));
}

bool is_row_major(IndexContext& context, const TensorMeta& tensor) {
  return walks_like(tensor, contiguous_strides(context, tensor.sizes));
}

MemoryFormatArg channels_last_format(size_t rank) { return {rank == 4 ? 2 : 3}; }

}  // namespace litz
