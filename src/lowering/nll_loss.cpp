// Negative log likelihood: minus the entries that the targets choose. `self` is [N, C, spatial
// sizes...] or [C]; a target equal to ignore_index chooses nothing, any other must be a class.
#include "lowering/normalization_rows.h"
#include "lowering/reduction_helpers.h"

namespace litz {
namespace {

using Lowered = std::optional<Unsupported>;

enum LossReduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

struct Nll {
  TensorValue self;
  TensorValue target;
  std::optional<TensorValue> weight;
  Index ignored;
  Index classes;
  size_t class_dim;
  DType dtype;
};

Nll read_arguments(OpCall& call) {
  Nll nll{call.tensor("self"),
          call.tensor("target"),
          call.optional_tensor("weight"),
          call.index("ignore_index"),
          {},
          0,
          DType::kFloat32};
  nll.class_dim = nll.self.rank() > 1 ? 1 : 0;
  nll.classes = nll.self.sizes[nll.class_dim];
  nll.dtype = computation_dtype(nll.self.dtype);
  return nll;
}

// The target at a position without classes. A target of one vector may be [1] or a number.
struct Target {
  Expr is_used;
  Expr klass;  // in range, checked where it is used
};

Target load_target(OpCall& call, const Nll& nll, std::span<const Index> p) {
  const std::vector<Index> zero(nll.target.rank(), call.indices().constant(0));
  const bool is_vector = nll.self.rank() == 1;
  const Expr given =
      cast(call.load(nll.target, is_vector ? std::span<const Index>(zero) : p), DType::kInt64);
  const Expr is_used = not_equal(given, call.exprs().index_value(nll.ignored));
  const Expr klass =
      call.exprs().check_index(select(is_used, given, number(given, 0)), nll.classes);
  return {is_used, klass};
}

Expr load_weight(OpCall& call, const Nll& nll, Expr klass) {
  const Index at[] = {call.indices().indirect(0, nll.classes)};
  const Expr operands[] = {klass};
  return cast(call.load(*nll.weight, at, operands), nll.dtype);
}

// The weight of a position: 0 where its target is ignored.
Expr position_weight(OpCall& call, const Nll& nll, const Target& target) {
  const Expr one = call.exprs().constant(nll.dtype, 1);
  return select(target.is_used, nll.weight ? load_weight(call, nll, target.klass) : one,
                number(one, 0));
}

Expr position_loss(OpCall& call, const Nll& nll, std::span<const Index> p) {
  const Target target = load_target(call, nll, p);
  std::vector<Index> at(p.begin(), p.end());
  at.insert(at.begin() + static_cast<std::ptrdiff_t>(nll.class_dim),
            call.indices().indirect(0, nll.classes));
  const Expr operands[] = {target.klass};
  const Expr chosen = cast(call.load(nll.self, at, operands), nll.dtype);
  const Expr weighted = nll.weight ? -chosen * load_weight(call, nll, target.klass) : -chosen;
  return select(target.is_used, weighted, number(weighted, 0));
}

// The sizes of `self` without classes.
std::vector<Index> position_sizes(const Nll& nll) {
  std::vector<Index> sizes = nll.self.sizes;
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(nll.class_dim));
  return sizes;
}

Lowered lower_forward(OpCall& call) {
  const Nll nll = read_arguments(call);
  const int64_t reduction = call.integer("reduction");
  const std::vector<Index> sizes = position_sizes(nll);
  if (reduction == kNone && !sizes.empty()) {
    set_pointwise(call, 0, [&](std::span<const Index> p) { return position_loss(call, nll, p); });
    set_constant(call, 1, 0);
    return std::nullopt;
  }
  const std::vector<size_t> dims = all_dims(sizes.size());
  const TensorValue loss =
      call.reduce(ReductionKind::kSum, sizes, dims, false,
                  [&](std::span<const Index> p) { return position_loss(call, nll, p); });
  const TensorValue weights =
      call.reduce(ReductionKind::kSum, sizes, dims, false, [&](std::span<const Index> p) {
        return position_weight(call, nll, load_target(call, nll, p));
      });
  set_rounded(call, 1, weights);
  if (reduction == kMean) {
    set_pointwise(call, 0, [&](std::span<const Index> p) {
      return call.load(loss, p) / call.load(weights, p);
    });
  } else {
    set_rounded(call, 0, loss);
  }
  return std::nullopt;
}

// -weight of the class that the target chooses, times the incoming gradient, which for an averaged
// loss is divided by the total weight; 0 for other classes.
Lowered lower_backward(OpCall& call) {
  const Nll nll = read_arguments(call);
  const TensorValue grad = call.tensor("grad_output");
  const TensorValue total = call.tensor("total_weight");
  const int64_t reduction = call.integer("reduction");
  set_pointwise(call, 0, [&](std::span<const Index> p) {
    std::vector<Index> position(p.begin(), p.end());
    const Index klass = position[nll.class_dim];
    position.erase(position.begin() + static_cast<std::ptrdiff_t>(nll.class_dim));
    const Target target = load_target(call, nll, position);
    const Expr weight = position_weight(call, nll, target);
    const bool per_position = reduction == kNone && grad.rank() == position.size();
    Expr incoming = cast(
        per_position ? call.load(grad, position)
                     : call.load(grad, std::vector<Index>(grad.rank(), call.indices().constant(0))),
        nll.dtype);
    if (reduction == kMean) {
      const std::vector<Index> first(total.rank(), call.indices().constant(0));
      incoming = incoming / cast(call.load(total, first), nll.dtype);
    }
    const Expr is_chosen =
        both(target.is_used, equal(target.klass, call.exprs().index_value(klass)));
    return select(is_chosen, -weight * incoming, number(weight, 0));
  });
  return std::nullopt;
}

constexpr LoweringRow kRows[] = {
    {"aten::nll_loss_forward", lower_forward},
    {"aten::nll_loss_backward", lower_backward},
    {"aten::nll_loss2d_forward", lower_forward},
    {"aten::nll_loss2d_backward", lower_backward},
};

}  // namespace

std::span<const LoweringRow> nll_loss_rows() { return kRows; }

}  // namespace litz
