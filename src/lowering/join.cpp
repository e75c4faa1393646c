// Tensors put together, and taken apart by position: cat, stack, repeat, flip, roll, shuffles.
#include <vector>

#include "lowering/join_rows.h"
#include "lowering/join_tables.h"
#include "lowering/view_helpers.h"

namespace litz {

Expr index_below(OpCall& call, Index a, Index b) {
  return less(call.exprs().index_value(a), call.exprs().index_value(b));
}
Expr index_not_below(OpCall& call, Index a, Index b) {
  return greater_equal(call.exprs().index_value(a), call.exprs().index_value(b));
}
Expr index_equals(OpCall& call, Index a, Index b) {
  return equal(call.exprs().index_value(a), call.exprs().index_value(b));
}

std::optional<Unsupported> set_moved(OpCall& call, const PositionMap& map) {
  const TensorValue& self = call.tensor("self");
  call.set(0, call.pointwise(call.result(), [&](std::span<const Index> position) {
    return call.load(self, map(position));
  }));
  return std::nullopt;
}

namespace {

// The tensors that cat puts together: an empty one of rank 1 fits anywhere and counts for nothing.
std::vector<TensorValue> parts_of(const OpCall& call, size_t rank) {
  std::vector<TensorValue> parts;
  for (const std::optional<TensorValue>& part : call.tensor_list("tensors")) {
    if (part->rank() == rank && !(rank == 1 && part->sizes[0].is_constant(0)))
      parts.push_back(*part);
  }
  return parts;
}

std::optional<Unsupported> lower_cat(OpCall& call) {
  const TensorMeta& meta = call.result();
  const size_t rank = meta.sizes.size();
  const size_t dim = dim_argument(call, "dim", rank);
  const std::vector<TensorValue> parts = parts_of(call, rank);
  call.set(0, call.pointwise(meta, [&](std::span<const Index> position) {
    ExprContext& exprs = call.exprs();
    Index end = meta.sizes[dim];
    Expr value = exprs.constant_int(meta.dtype, 0);
    for (size_t i = parts.size(); i-- > 0;) {
      const Index start = i == 0 ? call.indices().constant(0) : end - parts[i].sizes[dim];
      std::vector<Index> own(position.begin(), position.end());
      own[dim] = position[dim] - start;
      const Expr part = exprs.cast(call.load(parts[i], own), meta.dtype);
      const Expr inside =
          both(index_not_below(call, position[dim], start), index_below(call, position[dim], end));
      value = parts.size() == 1 ? part : exprs.masked(inside, part, value);
      end = start;
    }
    return value;
  }));
  return std::nullopt;
}

std::optional<Unsupported> lower_stack(OpCall& call) {
  const TensorMeta& meta = call.result();
  const size_t dim = dim_argument(call, "dim", meta.sizes.size());
  const std::vector<std::optional<TensorValue>> parts = call.tensor_list("tensors");
  call.set(0, call.pointwise(meta, [&](std::span<const Index> position) {
    ExprContext& exprs = call.exprs();
    std::vector<Index> own(position.begin(), position.end());
    own.erase(own.begin() + static_cast<std::ptrdiff_t>(dim));
    Expr value = exprs.constant_int(meta.dtype, 0);
    for (size_t i = parts.size(); i-- > 0;) {
      const Expr part = exprs.cast(call.load(*parts[i], own), meta.dtype);
      const Index number = call.indices().constant(static_cast<int64_t>(i));
      value = parts.size() == 1
                  ? part
                  : exprs.masked(index_equals(call, position[dim], number), part, value);
    }
    return value;
  }));
  return std::nullopt;
}

std::optional<Unsupported> lower_repeat(OpCall& call) {
  const TensorValue& self = call.tensor("self");
  return set_moved(call, [&](std::span<const Index> position) {
    const std::span<const Index> aligned = position.subspan(position.size() - self.rank());
    std::vector<Index> in_self;
    for (size_t i = 0; i < self.rank(); ++i) {
      // An empty dimension is never visited, and nothing is divided by its size.
      in_self.push_back(self.sizes[i].is_constant(0) ? call.indices().constant(0)
                                                     : mod(aligned[i], self.sizes[i]));
    }
    return in_self;
  });
}

std::optional<Unsupported> lower_repeat_interleave(OpCall& call) {
  const TensorValue& self = call.tensor("self");
  const Index repeats = call.index("repeats");
  if (!prove_less(call.indices().constant(0), repeats))
    return Unsupported{"its repeats may be none"};
  if (call.is_none("dim")) {
    return set_moved(call, [&](std::span<const Index> position) {
      return delinearize(floor_div(position[0], repeats), self.sizes);
    });
  }
  const size_t dim = dim_argument(call, "dim", self.rank());
  return set_moved(call, [&](std::span<const Index> position) {
    std::vector<Index> in_self(position.begin(), position.end());
    in_self.resize(self.rank());
    if (!in_self.empty()) in_self[dim] = floor_div(position[dim], repeats);
    return in_self;
  });
}

std::optional<Unsupported> lower_flip(OpCall& call) {
  const TensorValue& self = call.tensor("self");
  const std::vector<size_t> dims = dim_list_argument(call, "dims", self.rank());
  return set_moved(call, [&](std::span<const Index> position) {
    std::vector<Index> in_self(position.begin(), position.end());
    for (size_t dim : dims) {
      if (dim < in_self.size()) in_self[dim] = self.sizes[dim] - 1 - position[dim];
    }
    return in_self;
  });
}

bool has_empty_dimension(std::span<const Index> sizes) {
  for (Index size : sizes) {
    if (size.is_constant(0)) return true;
  }
  return false;
}

std::optional<Unsupported> lower_roll(OpCall& call) {
  const TensorValue& self = call.tensor("self");
  const std::vector<Index> shifts = call.index_list("shifts");
  const std::vector<size_t> dims = dim_list_argument(call, "dims", self.rank());
  return set_moved(call, [&](std::span<const Index> position) {
    std::vector<Index> in_self(position.begin(), position.end());
    if (has_empty_dimension(self.sizes)) return in_self;
    if (dims.empty()) {  // the elements in row-major order are rolled
      const Index linear =
          dot(call.indices(), position, contiguous_strides(call.indices(), self.sizes));
      return delinearize(mod(linear - shifts[0], product(call.indices(), self.sizes)), self.sizes);
    }
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] < in_self.size())
        in_self[dims[i]] = mod(in_self[dims[i]] - shifts[i], self.sizes[dims[i]]);
    }
    return in_self;
  });
}

std::optional<Unsupported> lower_pixel_shuffle(OpCall& call) {
  const int64_t factor = call.integer("upscale_factor");
  return set_moved(call, [&](std::span<const Index> position) {
    std::vector<Index> in_self(position.begin(), position.end());
    const size_t row = position.size() - 2;
    const size_t column = position.size() - 1;
    in_self[row - 1] = position[row - 1] * (factor * factor) + mod(position[row], factor) * factor +
                       mod(position[column], factor);
    in_self[row] = floor_div(position[row], factor);
    in_self[column] = floor_div(position[column], factor);
    return in_self;
  });
}

std::optional<Unsupported> lower_pixel_unshuffle(OpCall& call) {
  const int64_t factor = call.integer("downscale_factor");
  return set_moved(call, [&](std::span<const Index> position) {
    std::vector<Index> in_self(position.begin(), position.end());
    const size_t row = position.size() - 2;
    const size_t column = position.size() - 1;
    const Index channel = position[row - 1];
    in_self[row - 1] = floor_div(channel, factor * factor);
    in_self[row] = position[row] * factor + mod(floor_div(channel, factor), factor);
    in_self[column] = position[column] * factor + mod(channel, factor);
    return in_self;
  });
}

std::optional<Unsupported> lower_channel_shuffle(OpCall& call) {
  const TensorValue& self = call.tensor("self");
  const Index groups = call.index("groups");
  if (!prove_less(call.indices().constant(0), groups)) return Unsupported{"its groups may be none"};
  const Index channels_in_group = floor_div(self.sizes[1], groups);
  return set_moved(call, [&](std::span<const Index> position) {
    std::vector<Index> in_self(position.begin(), position.end());
    in_self[1] = mod(position[1], groups) * channels_in_group + floor_div(position[1], groups);
    return in_self;
  });
}

constexpr LoweringRow kRows[] = {
    {"aten::cat", lower_cat},
    {"aten::concat", lower_cat},
    {"aten::stack", lower_stack},
    {"aten::repeat", lower_repeat},
    {"aten::tile", lower_repeat},
    {"aten::repeat_interleave.self_int", lower_repeat_interleave},
    {"aten::flip", lower_flip},
    {"aten::roll", lower_roll},
    {"aten::pixel_shuffle", lower_pixel_shuffle},
    {"aten::pixel_unshuffle", lower_pixel_unshuffle},
    {"aten::channel_shuffle", lower_channel_shuffle},
    {"aten::native_channel_shuffle", lower_channel_shuffle},
};

}  // namespace

std::span<const LoweringRow> join_lowerings() {
  static const std::vector<LoweringRow> rows =
      join_tables({kRows, pad_rows(), unfolding_rows(), window_scatter_rows()});
  return rows;
}

}  // namespace litz
