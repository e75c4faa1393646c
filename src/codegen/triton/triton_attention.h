// Prints an attention and what is stored behind it as Triton.
//
// A program has some rows, positions of the query, and goes through the keys in steps with the
// online softmax of Milakov and Gimelshein (2018) and Dao et al., FlashAttention (2022, 2023): the
// sum of weights so far and what they have come to are relative to the greatest score so far, and
// are scaled down when a greater one comes. No score is ever in memory. Exponentials are powers of
// two.
//
// The score is any expression, so masks and biases are computed or loaded element by element in the
// tile. What key_bounds.h finds about them bounds the loop.
#pragma once

#include "codegen/triton/triton_kernel.h"

namespace litz {

struct AttentionTile {
  int rows = 128;
  int keys = 64;  // at a time
  int warps = 4;
  int stages = 3;  // of loads that are on their way at once

  bool operator==(const AttentionTile&) const = default;
};

// The best for most sizes, and others that may be better for some.
AttentionTile plan_attention(const Kernel& kernel, const TritonDevice& device);
std::vector<AttentionTile> other_attention_tiles(const Kernel& kernel, const AttentionTile& tile);

TritonKernel print_triton_attention(const Plan& plan, const Kernel& kernel,
                                    const AttentionTile& tile, TritonPrelude& prelude);

}  // namespace litz
