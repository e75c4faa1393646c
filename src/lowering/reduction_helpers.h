// What the families that reduce have in common: dimension arguments, and results that are added up
// in computation_dtype (lowering/promotion.h) and rounded once.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lowering/expr_formulas.h"
#include "lowering/lowering.h"
#include "lowering/pointwise_helpers.h"

namespace litz {

inline Expr cast(Expr a, DType dtype) { return a.context().cast(a, dtype); }

// The element converted to `dtype`, and from there to its computation dtype.
Expr load_as(OpCall& call, const TensorValue& value, std::span<const Index> position, DType dtype);
// The element in the computation dtype of its own dtype.
Expr load_wide(OpCall& call, const TensorValue& value, std::span<const Index> position);
// The same for a value that is broadcast to the position.
Expr load_wide_broadcast(OpCall& call, const TensorValue& value, std::span<const Index> position);

// All dimensions of a tensor.
std::vector<size_t> all_dims(size_t rank);
// The dimensions that an argument names (an int, a list, or None), sorted. None and an empty list
// mean all of them.
std::vector<size_t> reduced_dims(const OpCall& call, std::string_view name, size_t rank);

// The dimensions of a reduction: its argument `dim`, all where it has none.
std::vector<size_t> call_dims(const OpCall& call, size_t rank);
// Its argument `keepdim`, false where it has none.
bool keepdim(const OpCall& call);
// A value that a reduction has kept the dimensions of, without them.
TensorValue without_dims(OpCall& call, const TensorValue& value, std::span<const size_t> dims);

// How many elements the dimensions span.
Index count_elements(const OpCall& call, std::span<const Index> sizes,
                     std::span<const size_t> dims);
// True if that number is known to be 0.
bool is_empty(const OpCall& call, std::span<const Index> sizes, std::span<const size_t> dims);
bool is_empty(const OpCall& call, std::span<const Index> sizes);

// The integer as a number of the dtype.
Expr index_as(OpCall& call, Index index, DType dtype);

// Sets a result to a value of the same sizes, rounded to the result's dtype.
void set_rounded(OpCall& call, size_t output, const TensorValue& value);
// Sets a result to a Pointwise whose body is rounded to the result's dtype.
void set_pointwise(OpCall& call, size_t output, const OpCall::Body& body);
// Sets a result to the same number everywhere.
void set_constant(OpCall& call, size_t output, double number);

}  // namespace litz
