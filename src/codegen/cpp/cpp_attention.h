// Prints an attention and what is stored behind it as C++.
//
// An item, some queries of a batch, goes through the keys in steps with the online softmax of
// Milakov and Gimelshein (2018) and Dao et al., FlashAttention (2022, 2023): the sum of weights so
// far and what they have come to are relative to the greatest score so far, and are scaled down
// when a greater one comes. Of the scores there are those of a strip of queries and a step in
// memory (codegen/cpp/attention_tiles.h), which stay in the first level cache; both products are
// those of cpp_product.h. Operands are float32 there, whatever they are in memory.
//
// The score is any expression, so masks and biases are computed or loaded for a vector of keys at a
// time. What key_bounds.h finds about them bounds the loops; a comparison that is nothing but an
// upper bound, as the causal mask is, ends a row and is not computed at all.
#pragma once

#include "codegen/cpp/cpp_kernel.h"

namespace litz {

// The kernel has an attention, whose operands have neighbours in memory along factors, factors and
// features, of which there are constant numbers.
CppKernel print_cpp_attention(const Program& program, const Kernel& kernel, Prelude& prelude,
                              const PreludeTarget& target);

}  // namespace litz
