// What rows of the pointwise families are made of.
//
// For arithmetic the dtype that eager promotes to is the result's, so those rows take it from the
// metadata. Every operand is converted to it, halves are computed in float32 and rounded once.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "lowering/expr_formulas.h"
#include "lowering/lowering.h"
#include "lowering/promotion.h"

namespace litz {

// The element of an argument (a tensor, broadcast, or a number) at a position of the result, in its
// own dtype; a number as `number_dtype`.
Expr load_operand(OpCall& call, std::string_view argument, std::span<const Index> position,
                  DType number_dtype);

// The same, converted to `dtype` and then to its computation dtype.
Expr load_converted(OpCall& call, std::string_view argument, std::span<const Index> position,
                    DType dtype);

// The same, but a number or a tensor of one element keeps the precision of the computation dtype:
// what eager's kernels for halves do with the second operand of some ops.
Expr load_precise(OpCall& call, std::string_view argument, std::span<const Index> position,
                  DType dtype);

// A number argument in the computation dtype of `dtype`, without rounding to a half before.
Expr precise_number(OpCall& call, std::string_view argument, DType dtype);

// A number argument as a double; nullopt where it is symbolic.
std::optional<double> real_argument(const OpCall& call, std::string_view argument);

// Sets a result to the formula over the named operands, computed as `dtype`.
using Formula = std::function<Expr(std::span<const Expr> operands)>;
void set_elementwise(OpCall& call, std::initializer_list<std::string_view> operands, DType dtype,
                     const Formula& formula, size_t output = 0);
// Sets one result, computed as its dtype.
void set_elementwise(OpCall& call, std::initializer_list<std::string_view> operands,
                     const Formula& formula, size_t output = 0);

// Rows for formulas of one, two and three operands in the result's dtype.
template <Expr (*formula)(Expr)>
std::optional<Unsupported> lower_unary(OpCall& call) {
  set_elementwise(call, {"self"}, [](std::span<const Expr> x) { return formula(x[0]); });
  return std::nullopt;
}
template <Expr (*formula)(Expr, Expr)>
std::optional<Unsupported> lower_binary(OpCall& call) {
  set_elementwise(call, {"self", "other"},
                  [](std::span<const Expr> x) { return formula(x[0], x[1]); });
  return std::nullopt;
}

// The dimension a possibly negative number means; a 0-dim tensor counts as of rank 1.
size_t normalize_dim(int64_t dim, size_t rank);

}  // namespace litz
