// Variance, standard deviation, logsumexp and vector norms.
#include <cmath>
#include <limits>

#include "lowering/reduction_helpers.h"
#include "lowering/reduction_rows.h"

namespace litz {
namespace {

using Lowered = std::optional<Unsupported>;

// ---- variance ----

// What is taken off the number of elements: `correction`, or `unbiased` of the older overloads.
double correction(const OpCall& call) {
  if (call.node().schema->find("correction") < 0) return call.boolean("unbiased") ? 1 : 0;
  const Argument given = call.scalar("correction");
  if (const auto* real = std::get_if<double>(&given.v)) return *real;
  if (const auto* integer = std::get_if<int64_t>(&given.v)) return static_cast<double>(*integer);
  return 1;  // None
}

bool is_symbolic(const OpCall& call, std::string_view name) {
  return call.node().schema->find(name) >= 0 && call.scalar(name).holds<Index>();
}

// Two passes: the mean, then the squares of the deviations from it. Without elements the mean is
// NaN, and a correction of as many as there are elements divides by zero, as in eager.
Lowered lower_variance(OpCall& call, bool root, bool with_mean) {
  const TensorValue input = call.tensor("self");
  if (!is_floating(input.dtype)) return Unsupported{"the input is not floating-point"};
  if (is_symbolic(call, "correction")) return Unsupported{"the correction is symbolic"};
  const double taken_off = correction(call);
  const std::vector<size_t> dims = call_dims(call, input.rank());
  const DType dtype = computation_dtype(input.dtype);
  const Expr count = index_as(call, count_elements(call, input.sizes, dims), dtype);

  const TensorValue sum =
      call.reduce(ReductionKind::kSum, input.sizes, dims, true,
                  [&](std::span<const Index> p) { return load_wide(call, input, p); });
  const TensorValue squares = call.reduce(
      ReductionKind::kSum, input.sizes, dims, keepdim(call), [&](std::span<const Index> p) {
        const Expr deviation = load_wide(call, input, p) - call.load_broadcast(sum, p) / count;
        return deviation * deviation;
      });
  set_pointwise(call, 0, [&](std::span<const Index> p) {
    const Expr variance = call.load(squares, p) / maximum(count - taken_off, 0);
    return root ? square_root(variance) : variance;
  });
  if (!with_mean) return std::nullopt;
  const TensorValue total = keepdim(call) ? sum : without_dims(call, sum, dims);
  set_pointwise(call, 1, [&](std::span<const Index> p) { return call.load(total, p) / count; });
  return std::nullopt;
}

Lowered lower_var(OpCall& call) { return lower_variance(call, false, false); }
Lowered lower_var_mean(OpCall& call) { return lower_variance(call, false, true); }
Lowered lower_std(OpCall& call) { return lower_variance(call, true, false); }
Lowered lower_std_mean(OpCall& call) { return lower_variance(call, true, true); }

// ---- logsumexp ----

// log(sum(exp(x - m))) + m, m being the maximum where that is finite and else 0.
Lowered lower_logsumexp(OpCall& call) {
  const TensorValue input = call.tensor("self");
  const DType dtype = call.result().dtype;
  const std::vector<size_t> dims = reduced_dims(call, "dim", input.rank());
  if (is_empty(call, input.sizes, dims)) return Unsupported{"it reduces over no element"};
  const bool keep = keepdim(call);
  const auto value = [&](std::span<const Index> p) { return load_as(call, input, p, dtype); };
  const auto finite = [](Expr maximum) {
    return select(apply<ExprOp::kIsInf>(maximum), 0.0, maximum);
  };
  const TensorValue maximum = call.reduce(ReductionKind::kMax, input.sizes, dims, true, value);
  const TensorValue sum =
      call.reduce(ReductionKind::kSum, input.sizes, dims, true, [&](std::span<const Index> p) {
        return exponential(value(p) - finite(call.load_broadcast(maximum, p)));
      });
  const TensorValue own_maximum = keep ? maximum : without_dims(call, maximum, dims);
  const TensorValue own_sum = keep ? sum : without_dims(call, sum, dims);
  set_pointwise(call, 0, [&](std::span<const Index> p) {
    return logarithm(call.load(own_sum, p)) + finite(call.load(own_maximum, p));
  });
  return std::nullopt;
}

// ---- norms ----

// The order of a norm; nullopt where it is symbolic.
std::optional<double> norm_order(const OpCall& call, std::string_view name) {
  const Argument given = call.scalar(name);
  if (given.is_none()) return 2;
  if (const auto* real = std::get_if<double>(&given.v)) return *real;
  if (const auto* integer = std::get_if<int64_t>(&given.v)) return static_cast<double>(*integer);
  return std::nullopt;
}

Lowered lower_norm(OpCall& call, std::string_view order_name) {
  const TensorValue input = call.tensor("self");
  const DType dtype = call.result().dtype;
  if (!is_floating(dtype)) return Unsupported{"the result is not floating-point"};
  const std::optional<double> order = norm_order(call, order_name);
  if (!order) return Unsupported{"the order of the norm is not a number"};
  const std::vector<size_t> dims = call_dims(call, input.rank());
  const bool has_identity = *order >= 0 && !std::isinf(*order);
  if (!has_identity && is_empty(call, input.sizes, dims))
    return Unsupported{"it reduces over no element, which is an error in eager"};

  const auto reduce = [&](ReductionKind kind, auto&& term) {
    return call.reduce(kind, input.sizes, dims, keepdim(call), [&](std::span<const Index> p) {
      return term(load_as(call, input, p, dtype));
    });
  };
  if (std::isinf(*order)) {
    set_rounded(call, 0, reduce(*order > 0 ? ReductionKind::kMax : ReductionKind::kMin, [](Expr x) {
                  return absolute(x);
                }));
  } else if (*order == 0) {
    set_rounded(call, 0, reduce(ReductionKind::kSum, [](Expr x) {
                  return select(not_equal(x, 0), 1.0, number(x, 0));
                }));
  } else if (*order == 1) {
    set_rounded(call, 0, reduce(ReductionKind::kSum, [](Expr x) { return absolute(x); }));
  } else if (*order == 2) {
    const TensorValue sum = reduce(ReductionKind::kSum, [](Expr x) { return x * x; });
    set_pointwise(call, 0,
                  [&](std::span<const Index> p) { return square_root(call.load(sum, p)); });
  } else {
    const TensorValue sum = reduce(ReductionKind::kSum, [&](Expr x) {
      return apply<ExprOp::kPow>(absolute(x), number(x, *order));
    });
    set_pointwise(call, 0, [&](std::span<const Index> p) {
      const Expr total = call.load(sum, p);
      return apply<ExprOp::kPow>(total, number(total, 1 / *order));
    });
  }
  return std::nullopt;
}

Lowered lower_vector_norm(OpCall& call) { return lower_norm(call, "ord"); }
Lowered lower_p_norm(OpCall& call) { return lower_norm(call, "p"); }

constexpr LoweringRow kRows[] = {
    {"aten::var", lower_var},
    {"aten::var.dim", lower_var},
    {"aten::var.correction", lower_var},
    {"aten::var_mean", lower_var_mean},
    {"aten::var_mean.dim", lower_var_mean},
    {"aten::var_mean.correction", lower_var_mean},
    {"aten::std", lower_std},
    {"aten::std.dim", lower_std},
    {"aten::std.correction", lower_std},
    {"aten::std_mean", lower_std_mean},
    {"aten::std_mean.dim", lower_std_mean},
    {"aten::std_mean.correction", lower_std_mean},
    {"aten::logsumexp", lower_logsumexp},
    {"aten::linalg_vector_norm", lower_vector_norm},
    {"aten::norm.Scalar", lower_p_norm},
    {"aten::norm.ScalarOpt_dim", lower_p_norm},
    {"aten::norm.ScalarOpt_dtype", lower_p_norm},
    {"aten::norm.ScalarOpt_dim_dtype", lower_p_norm},
};

}  // namespace

std::span<const LoweringRow> statistics_rows() { return kRows; }

}  // namespace litz
