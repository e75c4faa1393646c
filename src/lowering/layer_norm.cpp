// Layer norm and group norm. The variance takes two passes over the row: the mean, then the squares
// of the deviations from it.
#include "lowering/normalization_rows.h"
#include "lowering/normalized_rows.h"
#include "lowering/reduction_helpers.h"

namespace litz {
namespace {

using Lowered = std::optional<Unsupported>;

// Sum over the dimensions, which stay as size 1, divided by the number of elements.
struct Moments {
  TensorValue sum;
  TensorValue squares;  // of the deviations from the mean
  Index count;

  Expr mean(OpCall& call, std::span<const Index> p) const {
    return call.load_broadcast(sum, p) / index_as(call, count, sum.dtype);
  }
  // 1 / sqrt(variance + eps)
  Expr rstd(OpCall& call, std::span<const Index> p, double eps) const {
    const Expr variance = call.load_broadcast(squares, p) / index_as(call, count, sum.dtype);
    return apply<ExprOp::kRsqrt>(variance + eps);
  }
};

Moments find_moments(OpCall& call, std::span<const Index> sizes, std::span<const size_t> dims,
                     const OpCall::Body& value) {
  Moments moments;
  moments.count = count_elements(call, sizes, dims);
  moments.sum = call.reduce(ReductionKind::kSum, sizes, dims, true, value);
  moments.squares =
      call.reduce(ReductionKind::kSum, sizes, dims, true, [&](std::span<const Index> p) {
        const Expr deviation = value(p) - moments.mean(call, p);
        return deviation * deviation;
      });
  return moments;
}

// ---- layer norm ----

Lowered lower_layer_norm(OpCall& call) {
  const TensorValue input = call.tensor("input");
  const std::optional<TensorValue> weight = call.optional_tensor("weight");
  const std::optional<TensorValue> bias = call.optional_tensor("bias");
  const double eps = std::get<double>(call.argument("eps").v);
  const RowSplit split = split_rows(call, input.rank());
  if (is_empty(call, input.sizes, split.row)) return Unsupported{"the normalized rows are empty"};

  const auto value = [&](std::span<const Index> p) { return load_wide(call, input, p); };
  const Moments moments = find_moments(call, input.sizes, split.row, value);
  set_pointwise(call, 1, [&](std::span<const Index> p) { return moments.mean(call, p); });
  set_pointwise(call, 2, [&](std::span<const Index> p) { return moments.rstd(call, p, eps); });
  set_pointwise(call, 0, [&](std::span<const Index> p) {
    Expr normal = (value(p) - moments.mean(call, p)) * moments.rstd(call, p, eps);
    if (weight) normal = normal * load_row(call, *weight, p, normal.dtype());
    if (bias) normal = normal + load_row(call, *bias, p, normal.dtype());
    return normal;
  });
  return std::nullopt;
}

Lowered lower_layer_norm_backward(OpCall& call) {
  const TensorValue grad = call.tensor("grad_out");
  const TensorValue input = call.tensor("input");
  const TensorValue mean = call.tensor("mean");
  const TensorValue rstd = call.tensor("rstd");
  const std::optional<TensorValue> weight = call.optional_tensor("weight");
  const DType dtype = computation_dtype(input.dtype);
  const RowSplit split = split_rows(call, input.rank());
  if (is_empty(call, input.sizes, split.row)) return Unsupported{"the normalized rows are empty"};

  const auto wanted = [&](size_t i) { return call.node().outputs[i].is_tensor(); };
  const auto scale = [&](std::span<const Index> p) {
    return cast(load_wide_broadcast(call, rstd, p), dtype);
  };
  const auto normal = [&](std::span<const Index> p) {
    return (load_wide(call, input, p) - cast(load_wide_broadcast(call, mean, p), dtype)) * scale(p);
  };
  const auto upstream = [&](std::span<const Index> p) { return load_wide(call, grad, p); };
  const auto weighted = [&](std::span<const Index> p) {
    return weight ? upstream(p) * load_row(call, *weight, p, dtype) : upstream(p);
  };

  if (wanted(0)) {
    const TensorValue sum =
        call.reduce(ReductionKind::kSum, input.sizes, split.row, true, weighted);
    const TensorValue dot =
        call.reduce(ReductionKind::kSum, input.sizes, split.row, true,
                    [&](std::span<const Index> p) { return weighted(p) * normal(p); });
    const Index count = count_elements(call, input.sizes, split.row);
    // Divided by the count row by row, not element by element.
    const auto mean = [&](const TensorValue& of, std::span<const Index> p) {
      return call.load_broadcast(of, p) / index_as(call, count, dtype);
    };
    set_pointwise(call, 0, [&](std::span<const Index> p) {
      return scale(p) * (weighted(p) - (mean(sum, p) + normal(p) * mean(dot, p)));
    });
  }
  if (wanted(1)) {
    set_rounded(call, 1,
                call.reduce(ReductionKind::kSum, input.sizes, split.outer, false,
                            [&](std::span<const Index> p) { return upstream(p) * normal(p); }));
  }
  if (wanted(2)) {
    set_rounded(call, 2,
                call.reduce(ReductionKind::kSum, input.sizes, split.outer, false, upstream));
  }
  return std::nullopt;
}

// ---- group norm ----

// The input as [N, groups, channels of a group, spatial sizes...]. Positions in the input are
// [N, C, spatial sizes...].
struct Groups {
  std::vector<Index> sizes;
  std::vector<size_t> row;      // all dimensions but N and groups
  std::vector<size_t> spatial;  // of `sizes`
  Index channels;               // of a group

  // In the input, from a position in the groups.
  std::vector<Index> position(std::span<const Index> p) const {
    std::vector<Index> out = {p[0], p[1] * channels + p[2]};
    out.insert(out.end(), p.begin() + 3, p.end());
    return out;
  }
};

Groups find_groups(OpCall& call, const TensorValue& input) {
  Groups groups;
  const int64_t count = call.integer("group");
  groups.channels = floor_div(input.sizes[1], count);
  groups.sizes = {input.sizes[0], call.indices().constant(count), groups.channels};
  groups.sizes.insert(groups.sizes.end(), input.sizes.begin() + 2, input.sizes.end());
  for (size_t i = 2; i < groups.sizes.size(); ++i) groups.row.push_back(i);
  for (size_t i = 3; i < groups.sizes.size(); ++i) groups.spatial.push_back(i);
  return groups;
}

Lowered lower_group_norm(OpCall& call) {
  const TensorValue input = call.tensor("input");
  const std::optional<TensorValue> weight = call.optional_tensor("weight");
  const std::optional<TensorValue> bias = call.optional_tensor("bias");
  const double eps = std::get<double>(call.argument("eps").v);
  if (is_empty(call, input.sizes)) return Unsupported{"the input is empty"};

  const Groups groups = find_groups(call, input);
  const Moments moments = find_moments(
      call, groups.sizes, groups.row,
      [&](std::span<const Index> p) { return load_wide(call, input, groups.position(p)); });
  // The group of a position in the input, in the shape of the moments.
  const auto group_of = [&](std::span<const Index> p) {
    std::vector<Index> group(groups.sizes.size(), call.indices().constant(0));
    group[0] = p[0];
    group[1] = floor_div(p[1], groups.channels);
    return group;
  };
  const auto with_zeros = [&](std::span<const Index> p) {
    std::vector<Index> group(groups.sizes.size(), call.indices().constant(0));
    group[0] = p[0];
    group[1] = p[1];
    return group;
  };
  set_pointwise(call, 1,
                [&](std::span<const Index> p) { return moments.mean(call, with_zeros(p)); });
  set_pointwise(call, 2,
                [&](std::span<const Index> p) { return moments.rstd(call, with_zeros(p), eps); });
  set_pointwise(call, 0, [&](std::span<const Index> p) {
    const std::vector<Index> group = group_of(p);
    Expr normal =
        (load_wide(call, input, p) - moments.mean(call, group)) * moments.rstd(call, group, eps);
    const Index channel[] = {p[1]};
    if (weight) normal = normal * cast(load_wide(call, *weight, channel), normal.dtype());
    if (bias) normal = normal + cast(load_wide(call, *bias, channel), normal.dtype());
    return normal;
  });
  return std::nullopt;
}

Lowered lower_group_norm_backward(OpCall& call) {
  const TensorValue grad = call.tensor("grad_out");
  const TensorValue input = call.tensor("input");
  const TensorValue mean = call.tensor("mean");
  const TensorValue rstd = call.tensor("rstd");
  const std::optional<TensorValue> weight = call.optional_tensor("weight");
  const DType dtype = computation_dtype(input.dtype);
  if (is_empty(call, input.sizes)) return Unsupported{"the input is empty"};

  const Groups groups = find_groups(call, input);
  const auto wanted = [&](size_t i) { return call.node().outputs[i].is_tensor(); };
  // All of these take a position in the groups.
  const auto per_group = [&](const TensorValue& value, std::span<const Index> p) {
    return cast(load_wide(call, value, p.first(2)), dtype);
  };
  const auto upstream = [&](std::span<const Index> p) {
    return load_wide(call, grad, groups.position(p));
  };
  const auto normal = [&](std::span<const Index> p) {
    return (load_wide(call, input, groups.position(p)) - per_group(mean, p)) * per_group(rstd, p);
  };
  // Sums over the spatial dimensions: [N, groups, channels].
  const TensorValue sum =
      call.reduce(ReductionKind::kSum, groups.sizes, groups.spatial, false, upstream);
  const TensorValue dot =
      call.reduce(ReductionKind::kSum, groups.sizes, groups.spatial, false,
                  [&](std::span<const Index> p) { return upstream(p) * normal(p); });

  if (wanted(0)) {
    const auto factor = [&](Expr value, Index group, Index channel) {
      if (!weight) return value;
      const Index at[] = {group * groups.channels + channel};
      return value * cast(load_wide(call, *weight, at), dtype);
    };
    const size_t channels[] = {2};
    const auto sum_group = [&](const TensorValue& value) {
      return call.reduce(
          ReductionKind::kSum, value.sizes, channels, false,
          [&](std::span<const Index> p) { return factor(call.load(value, p), p[1], p[2]); });
    };
    const TensorValue group_sum = sum_group(sum);
    const TensorValue group_dot = sum_group(dot);
    const Index count = count_elements(call, groups.sizes, groups.row);
    set_pointwise(call, 0, [&](std::span<const Index> at) {
      std::vector<Index> p = {at[0], floor_div(at[1], groups.channels),
                              mod(at[1], groups.channels)};
      p.insert(p.end(), at.begin() + 2, at.end());
      const std::span<const Index> group = std::span<const Index>(p).first(2);
      const Expr scale = per_group(rstd, p);
      const Expr x = (load_wide(call, input, at) - per_group(mean, p)) * scale;
      const Expr elements = index_as(call, count, dtype);
      const Expr common =
          call.load(group_sum, group) / elements + x * (call.load(group_dot, group) / elements);
      const Expr dy = load_wide(call, grad, at);
      const Index channel[] = {at[1]};
      const Expr weighted = weight ? dy * cast(load_wide(call, *weight, channel), dtype) : dy;
      return scale * (weighted - common);
    });
  }
  // The gradients of weight and bias: sums over N of what is summed over space already.
  const size_t batch[] = {0};
  const auto set_channel_sum = [&](size_t output, const TensorValue& value) {
    const std::vector<Index> sizes = {input.sizes[0], input.sizes[1]};
    set_rounded(
        call, output,
        call.reduce(ReductionKind::kSum, sizes, batch, false, [&](std::span<const Index> p) {
          const Index at[] = {p[0], floor_div(p[1], groups.channels), mod(p[1], groups.channels)};
          return call.load(value, at);
        }));
  };
  if (wanted(1)) set_channel_sum(1, dot);
  if (wanted(2)) set_channel_sum(2, sum);
  return std::nullopt;
}

constexpr LoweringRow kRows[] = {
    {"aten::native_layer_norm", lower_layer_norm},
    {"aten::native_layer_norm_backward", lower_layer_norm_backward},
    {"aten::native_group_norm", lower_group_norm},
    {"aten::native_group_norm_backward", lower_group_norm_backward},
};

}  // namespace

std::span<const LoweringRow> layer_norm_rows() { return kRows; }

}  // namespace litz
