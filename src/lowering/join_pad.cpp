// Padding: with a constant, by reflection, by repetition of the border.
#include "lowering/index_helpers.h"
#include "lowering/join_rows.h"
#include "lowering/pointwise_helpers.h"

namespace litz {
namespace {

// Pads come as (before, after) for the last dimension first.
Index pad_before(std::span<const Index> pads, size_t rank, size_t dim) {
  return pads[2 * (rank - 1 - dim)];
}
bool is_padded(std::span<const Index> pads, size_t rank, size_t dim) {
  return rank - 1 - dim < pads.size() / 2;
}

std::optional<Unsupported> lower_constant_pad(OpCall& call) {
  const TensorValue& self = call.tensor("self");
  const std::vector<Index> pads = call.index_list("pad");
  const size_t rank = self.rank();
  call.set(0, call.pointwise(call.result(), [&](std::span<const Index> position) {
    const Index zero = call.indices().constant(0);
    std::vector<Index> in_self(position.begin(), position.end());
    Expr inside = call.exprs().constant_int(DType::kBool, 1);
    for (size_t dim = 0; dim < rank; ++dim) {
      if (!is_padded(pads, rank, dim)) continue;
      const Index before = pad_before(pads, rank, dim);
      in_self[dim] = position[dim] - before;
      // A cut leaves nothing to fill on its side.
      if (!prove_less_equal(before, zero))
        inside = both(inside, index_not_below(call, in_self[dim], zero));
      if (!prove_less_equal(pads[2 * (rank - 1 - dim) + 1], zero))
        inside = both(inside, index_below(call, in_self[dim], self.sizes[dim]));
    }
    const Expr fill = call.scalar_expr(call.scalar("value"), self.dtype);
    return call.exprs().masked(inside, call.load(self, in_self), fill);
  }));
  return std::nullopt;
}

// Sets the result to elements of "self", where each padded coordinate comes from `take`.
std::optional<Unsupported> pad_from_inside(OpCall& call, Index (*take)(Index at, Index size)) {
  const TensorValue& self = call.tensor("self");
  const std::vector<Index> pads = call.index_list("padding");
  return set_moved(call, [&](std::span<const Index> position) {
    std::vector<Index> in_self(position.begin(), position.end());
    for (size_t dim = 0; dim < self.rank(); ++dim) {
      if (!is_padded(pads, self.rank(), dim)) continue;
      in_self[dim] = take(position[dim] - pad_before(pads, self.rank(), dim), self.sizes[dim]);
    }
    return in_self;
  });
}

// The gradient of that: every element of the padded tensor adds to the one that it came from.
std::optional<Unsupported> pad_backward(OpCall& call, Index (*take)(Index at, Index size)) {
  const TensorValue grad = call.tensor("grad_output");
  const std::vector<Index> pads = call.index_list("padding");
  const std::vector<Index>& sizes = call.result().sizes;
  const auto zero = [&](std::span<const Index>) {
    return call.exprs().constant(call.result().dtype, 0);
  };
  set_scatter(call, zero, StoreMode::kAdd, grad.sizes, [&](std::span<const Index> position) {
    OpCall::Store store{{position.begin(), position.end()}, {}, call.load(grad, position)};
    for (size_t dim = 0; dim < sizes.size(); ++dim) {
      if (!is_padded(pads, sizes.size(), dim)) continue;
      store.target[dim] = take(position[dim] - pad_before(pads, sizes.size(), dim), sizes[dim]);
    }
    return store;
  });
  return std::nullopt;
}

// Mirrors at both ends, which stand alone; pads are smaller than the size.
Index reflected(Index at, Index size) {
  const Index last = size - 1;
  const Index from_start = max(at, -at);
  return last - max(last - from_start, from_start - last);
}
std::optional<Unsupported> lower_reflection_pad(OpCall& call) {
  return pad_from_inside(call, reflected);
}
std::optional<Unsupported> lower_reflection_pad_backward(OpCall& call) {
  return pad_backward(call, reflected);
}

Index nearest_inside(Index at, Index size) {
  return min(max(at, size.context().constant(0)), size - 1);
}
std::optional<Unsupported> lower_replication_pad(OpCall& call) {
  return pad_from_inside(call, nearest_inside);
}
std::optional<Unsupported> lower_replication_pad_backward(OpCall& call) {
  return pad_backward(call, nearest_inside);
}

constexpr LoweringRow kRows[] = {
    {"aten::constant_pad_nd", lower_constant_pad},
    {"aten::reflection_pad1d", lower_reflection_pad},
    {"aten::reflection_pad2d", lower_reflection_pad},
    {"aten::reflection_pad3d", lower_reflection_pad},
    {"aten::replication_pad1d", lower_replication_pad},
    {"aten::replication_pad2d", lower_replication_pad},
    {"aten::replication_pad3d", lower_replication_pad},
    {"aten::reflection_pad1d_backward", lower_reflection_pad_backward},
    {"aten::reflection_pad2d_backward", lower_reflection_pad_backward},
    {"aten::reflection_pad3d_backward", lower_reflection_pad_backward},
    {"aten::replication_pad1d_backward", lower_replication_pad_backward},
    {"aten::replication_pad2d_backward", lower_replication_pad_backward},
    {"aten::replication_pad3d_backward", lower_replication_pad_backward},
};

}  // namespace

std::span<const LoweringRow> pad_rows() { return kRows; }

}  // namespace litz
