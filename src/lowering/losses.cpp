// Losses between two tensors of one shape, with their gradients. Reduction 0 keeps the elements, 1
// averages them, 2 adds them up.
#include "lowering/normalization_rows.h"
#include "lowering/reduction_helpers.h"

namespace litz {
namespace {

using Lowered = std::optional<Unsupported>;

enum LossReduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

// The arguments of an elementwise loss at one position of the broadcast shape.
struct Element {
  Expr x;
  Expr target;
};

std::vector<Index> broadcast_sizes(const TensorValue& a, const TensorValue& b) {
  std::vector<Index> sizes = a.rank() >= b.rank() ? a.sizes : b.sizes;
  const TensorValue& other = a.rank() >= b.rank() ? b : a;
  const size_t skipped = sizes.size() - other.rank();
  for (size_t i = 0; i < other.rank(); ++i) {
    if (sizes[skipped + i].is_constant(1)) sizes[skipped + i] = other.sizes[i];
  }
  return sizes;
}

// The elements of two arguments of the graph may differ in dtype; both are converted to the
// result's.
Element load_element(OpCall& call, std::span<const Index> p) {
  const DType dtype = computation_dtype(call.result().dtype);
  return {cast(call.load_broadcast(call.tensor("self"), p), dtype),
          cast(call.load_broadcast(call.tensor("target"), p), dtype)};
}

// Sets result 0 to the loss of every element, reduced as the call says.
void set_loss(OpCall& call, const OpCall::Body& loss) {
  const std::vector<Index> sizes = broadcast_sizes(call.tensor("self"), call.tensor("target"));
  const int64_t reduction = call.integer("reduction");
  if (reduction == kNone) {
    set_pointwise(call, 0, loss);
    return;
  }
  const std::vector<size_t> dims = all_dims(sizes.size());
  const TensorValue sum = call.reduce(ReductionKind::kSum, sizes, dims, false, loss);
  if (reduction == kSum) {
    set_rounded(call, 0, sum);
    return;
  }
  set_pointwise(call, 0, [&](std::span<const Index> p) {
    return call.load(sum, p) / index_as(call, count_elements(call, sizes, dims), sum.dtype);
  });
}

// Sets result 0 to the slope of the loss times the incoming gradient, which is one number where
// the loss was reduced.
void set_loss_gradient(OpCall& call, const OpCall::Body& slope) {
  const std::vector<Index> sizes = call.result().sizes;
  const TensorValue grad = call.tensor("grad_output");
  const bool averaged = call.integer("reduction") == kMean;
  set_pointwise(call, 0, [&](std::span<const Index> p) {
    const Expr value = slope(p);
    const Expr product = value * cast(call.load_broadcast(grad, p), value.dtype());
    if (!averaged) return product;
    return product / index_as(call, litz::product(call.indices(), sizes), value.dtype());
  });
}

double parameter(const OpCall& call, std::string_view name) {
  return std::get<double>(call.argument(name).v);
}

// ---- distances ----

Lowered lower_mse(OpCall& call) {
  set_loss(call, [&](std::span<const Index> p) {
    const Element e = load_element(call, p);
    return (e.x - e.target) * (e.x - e.target);
  });
  return std::nullopt;
}

Lowered lower_mse_backward(OpCall& call) {
  set_loss_gradient(call, [&](std::span<const Index> p) {
    const Element e = load_element(call, p);
    return 2 * (e.x - e.target);
  });
  return std::nullopt;
}

Lowered lower_l1(OpCall& call) {
  set_loss(call, [&](std::span<const Index> p) {
    const Element e = load_element(call, p);
    return absolute(e.x - e.target);
  });
  return std::nullopt;
}

Lowered lower_smooth_l1(OpCall& call) {
  const double beta = parameter(call, "beta");
  set_loss(call, [&](std::span<const Index> p) {
    const Element e = load_element(call, p);
    const Expr distance = absolute(e.x - e.target);
    if (beta == 0) return distance;
    return select(less(distance, beta), 0.5 * distance * distance / beta, distance - 0.5 * beta);
  });
  return std::nullopt;
}

Lowered lower_smooth_l1_backward(OpCall& call) {
  const double beta = parameter(call, "beta");
  set_loss_gradient(call, [&](std::span<const Index> p) {
    const Element e = load_element(call, p);
    const Expr x = e.x - e.target;
    return select(less_equal(x, -beta), -1.0,
                  select(greater_equal(x, beta), 1.0, x / number(x, beta)));
  });
  return std::nullopt;
}

Lowered lower_huber(OpCall& call) {
  const double delta = parameter(call, "delta");
  set_loss(call, [&](std::span<const Index> p) {
    const Element e = load_element(call, p);
    const Expr distance = absolute(e.x - e.target);
    return select(less_equal(distance, delta), 0.5 * distance * distance,
                  delta * (distance - 0.5 * delta));
  });
  return std::nullopt;
}

Lowered lower_huber_backward(OpCall& call) {
  const double delta = parameter(call, "delta");
  set_loss_gradient(call, [&](std::span<const Index> p) {
    const Element e = load_element(call, p);
    const Expr x = e.x - e.target;
    return select(less_equal(x, -delta), -delta, select(greater_equal(x, delta), delta, x));
  });
  return std::nullopt;
}

// ---- cross entropy of probabilities ----

// Multiplies by an optional weight of any shape that broadcasts.
Expr times_weight(OpCall& call, Expr value, std::span<const Index> p) {
  const std::optional<TensorValue> weight = call.optional_tensor("weight");
  return weight ? value * cast(call.load_broadcast(*weight, p), value.dtype()) : value;
}

// The value where it lies in [0, 1]; eager raises an error where it does not, or is NaN.
Expr probability(Expr value) {
  return value.context().check(value, both(greater_equal(value, 0), less_equal(value, 1)));
}

// Eager rounds halves after each step.
Lowered lower_binary_cross_entropy(OpCall& call) {
  const DType dtype = call.result().dtype;
  set_loss(call, [&](std::span<const Index> p) {
    const Element e = load_element(call, p);
    const auto r = [&](Expr value) { return rounded(value, dtype); };
    const Expr x = probability(e.x);
    const Expr target = probability(e.target);
    const Expr log_not = maximum(r(log_plus_one(-x)), -100);
    const Expr log_x = maximum(r(logarithm(x)), -100);
    const Expr loss = r(r(r(target - 1.0) * log_not) - r(target * log_x));
    return r(times_weight(call, loss, p));
  });
  return std::nullopt;
}

Lowered lower_binary_cross_entropy_backward(OpCall& call) {
  const DType dtype = call.result().dtype;
  const std::vector<Index> sizes = call.result().sizes;
  const TensorValue grad = call.tensor("grad_output");
  const bool averaged = call.integer("reduction") == kMean;
  const Expr tiny = cast(call.exprs().constant(dtype, 1e-12), computation_dtype(dtype));
  set_pointwise(call, 0, [&](std::span<const Index> p) {
    const Element e = load_element(call, p);
    const auto r = [&](Expr value) { return rounded(value, dtype); };
    const Expr g = cast(call.load_broadcast(grad, p), e.x.dtype());
    const Expr variance = maximum(r(r(1 - e.x) * e.x), tiny);
    const Expr slope = r(r(g * r(e.x - e.target)) / variance);
    const Expr weighted = r(times_weight(call, slope, p));
    if (!averaged) return weighted;
    return weighted / index_as(call, litz::product(call.indices(), sizes), weighted.dtype());
  });
  return std::nullopt;
}

// (1 - target) * x + (1 + (pos_weight - 1) * target) * log(1 + exp(-x)), the logarithm without
// overflow.
Lowered lower_binary_cross_entropy_with_logits(OpCall& call) {
  const std::optional<TensorValue> pos_weight = call.optional_tensor("pos_weight");
  set_loss(call, [&](std::span<const Index> p) {
    const Element e = load_element(call, p);
    const Expr soft_minus = minimum(e.x, 0) - log_plus_one(exponential(-absolute(e.x)));
    const Expr rest = (1 - e.target) * e.x;
    if (!pos_weight) return times_weight(call, rest - soft_minus, p);
    const Expr positive = cast(call.load_broadcast(*pos_weight, p), e.x.dtype());
    return times_weight(call, rest - ((positive - 1.0) * e.target + 1.0) * soft_minus, p);
  });
  return std::nullopt;
}

constexpr LoweringRow kRows[] = {
    {"aten::mse_loss", lower_mse},
    {"aten::mse_loss_backward", lower_mse_backward},
    {"aten::l1_loss", lower_l1},
    {"aten::smooth_l1_loss", lower_smooth_l1},
    {"aten::smooth_l1_loss_backward", lower_smooth_l1_backward},
    {"aten::huber_loss", lower_huber},
    {"aten::huber_loss_backward", lower_huber_backward},
    {"aten::binary_cross_entropy", lower_binary_cross_entropy},
    {"aten::binary_cross_entropy_backward", lower_binary_cross_entropy_backward},
    {"aten::binary_cross_entropy_with_logits", lower_binary_cross_entropy_with_logits},
};

}  // namespace

std::span<const LoweringRow> loss_rows() { return kRows; }

}  // namespace litz
