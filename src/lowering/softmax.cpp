// Softmax and its relatives. All are written over whole rows, maximum first, so that the scheduler
// can keep a row in one kernel.
#include <limits>

#include "lowering/normalization_rows.h"
#include "lowering/reduction_helpers.h"

namespace litz {
namespace {

// What softmax and log_softmax share: the input in the dtype that it is computed in, and the
// maximum of each row.
struct Rows {
  TensorValue input;
  DType dtype;
  std::vector<size_t> dims;  // the one dimension, or none for a tensor without dimensions
  TensorValue maximum;
};

// The dimension that the argument names, as a list for OpCall::reduce.
std::vector<size_t> row_dims(const OpCall& call, size_t rank) {
  if (rank == 0) return {};
  return {normalize_dim(call.integer("dim"), rank)};
}

Rows find_rows(OpCall& call) {
  Rows rows;
  rows.input = call.tensor("self");
  rows.dtype = call.result().dtype;
  rows.dims = row_dims(call, rows.input.rank());
  rows.maximum = call.reduce(
      ReductionKind::kMax, rows.input.sizes, rows.dims, true,
      [&](std::span<const Index> p) { return load_as(call, rows.input, p, rows.dtype); });
  return rows;
}

Expr centered(OpCall& call, const Rows& rows, std::span<const Index> p) {
  return load_as(call, rows.input, p, rows.dtype) - call.load_broadcast(rows.maximum, p);
}

// `finish` gives the result from the quotient at a position. As in eager, a row is multiplied by
// the reciprocal of its sum, which is between 1 and the row's length.
std::optional<Unsupported> lower_quotient(OpCall& call,
                                          Expr (*finish)(Expr quotient, Expr maximum)) {
  if (!is_floating(call.result().dtype)) return Unsupported{"the result is not floating-point"};
  if (is_empty(call, call.result().sizes)) {
    set_constant(call, 0, 0);
    return std::nullopt;
  }
  const Rows rows = find_rows(call);
  const TensorValue powers = call.pointwise(
      computation_dtype(rows.dtype), rows.input.sizes,
      [&](std::span<const Index> p) { return exponential(centered(call, rows, p)); });
  const TensorValue sum =
      call.reduce(ReductionKind::kSum, rows.input.sizes, rows.dims, true,
                  [&](std::span<const Index> p) { return call.load(powers, p); });
  set_pointwise(call, 0, [&](std::span<const Index> p) {
    const Expr reciprocal = apply<ExprOp::kReciprocal>(call.load_broadcast(sum, p));
    return finish(call.load(powers, p) * reciprocal, call.load_broadcast(rows.maximum, p));
  });
  return std::nullopt;
}

std::optional<Unsupported> lower_softmax(OpCall& call) {
  return lower_quotient(call, [](Expr quotient, Expr) { return quotient; });
}

// As softmax, but a row of nothing but -inf gives zeros.
std::optional<Unsupported> lower_safe_softmax(OpCall& call) {
  return lower_quotient(call, [](Expr quotient, Expr maximum) {
    const double infinity = std::numeric_limits<double>::infinity();
    return select(equal(maximum, -infinity), 0.0, quotient);
  });
}

std::optional<Unsupported> lower_log_softmax(OpCall& call) {
  if (!is_floating(call.result().dtype)) return Unsupported{"the result is not floating-point"};
  if (is_empty(call, call.result().sizes)) {
    set_constant(call, 0, 0);
    return std::nullopt;
  }
  const Rows rows = find_rows(call);
  const TensorValue sum =
      call.reduce(ReductionKind::kSum, rows.input.sizes, rows.dims, true,
                  [&](std::span<const Index> p) { return exponential(centered(call, rows, p)); });
  set_pointwise(call, 0, [&](std::span<const Index> p) {
    return centered(call, rows, p) - logarithm(call.load_broadcast(sum, p));
  });
  return std::nullopt;
}

// output * (grad - sum(grad * output))
std::optional<Unsupported> lower_softmax_backward(OpCall& call) {
  const TensorValue grad = call.tensor("grad_output");
  const TensorValue output = call.tensor("output");
  const TensorValue sum =
      call.reduce(ReductionKind::kSum, output.sizes, row_dims(call, output.rank()), true,
                  [&](std::span<const Index> p) {
                    return load_wide(call, grad, p) * load_wide(call, output, p);
                  });
  set_pointwise(call, 0, [&](std::span<const Index> p) {
    return load_wide(call, output, p) * (load_wide(call, grad, p) - call.load_broadcast(sum, p));
  });
  return std::nullopt;
}

// grad - exp(output) * sum(grad)
std::optional<Unsupported> lower_log_softmax_backward(OpCall& call) {
  const TensorValue grad = call.tensor("grad_output");
  const TensorValue output = call.tensor("output");
  const TensorValue sum =
      call.reduce(ReductionKind::kSum, output.sizes, row_dims(call, output.rank()), true,
                  [&](std::span<const Index> p) { return load_wide(call, grad, p); });
  set_pointwise(call, 0, [&](std::span<const Index> p) {
    return load_wide(call, grad, p) -
           exponential(load_wide(call, output, p)) * call.load_broadcast(sum, p);
  });
  return std::nullopt;
}

constexpr LoweringRow kRows[] = {
    {"aten::_softmax", lower_softmax},
    {"aten::softmax.int", lower_softmax},
    {"aten::_safe_softmax", lower_safe_softmax},
    {"aten::_log_softmax", lower_log_softmax},
    {"aten::log_softmax.int", lower_log_softmax},
    {"aten::_softmax_backward_data", lower_softmax_backward},
    {"aten::_log_softmax_backward_data", lower_log_softmax_backward},
};

}  // namespace

std::span<const LoweringRow> softmax_rows() { return kRows; }

}  // namespace litz
