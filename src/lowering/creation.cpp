// Tensors from nothing: constants, ranges, masks by position.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "lowering/pointwise_helpers.h"

namespace litz {
namespace {

// Every element is this value in the result's dtype.
template <int value>
std::optional<Unsupported> lower_constant(OpCall& call) {
  const DType dtype = call.result().dtype;
  call.set(0, call.pointwise(call.result(), [&](std::span<const Index>) {
    return call.exprs().constant_int(dtype, value);
  }));
  return std::nullopt;
}

std::optional<Unsupported> fill_with(OpCall& call, std::string_view number) {
  const DType dtype = call.result().dtype;
  call.set(0, call.pointwise(call.result(), [&](std::span<const Index>) {
    return call.scalar_expr(call.scalar(number), dtype);
  }));
  return std::nullopt;
}
std::optional<Unsupported> lower_full(OpCall& call) { return fill_with(call, "fill_value"); }
std::optional<Unsupported> lower_scalar_tensor(OpCall& call) { return fill_with(call, "s"); }

bool is_whole_number(const Argument& number) {
  const auto* real = std::get_if<double>(&number.v);
  return real == nullptr || (*real == std::floor(*real) && std::abs(*real) < 0x1p52);
}

// start + step * i, in integers where both are, else in the precision of eager's accumulator:
// float64 for float32 and float64, float32 for halves. Eager's kernel also rounds the start of each
// vector, which depends on the machine; the result here is the nearest number.
std::optional<Unsupported> fill_with_range(OpCall& call, const Argument& start,
                                           const Argument& step) {
  const DType dtype = call.result().dtype;
  ExprContext& exprs = call.exprs();
  const bool is_in_integers =
      is_integral(dtype) || (is_whole_number(start) && is_whole_number(step));
  const DType computed = is_in_integers   ? DType::kInt64
                         : is_half(dtype) ? DType::kFloat32
                                          : DType::kFloat64;
  call.set(0, call.pointwise(call.result(), [&](std::span<const Index> position) {
    const Expr number = exprs.cast(exprs.index_value(position[0]), computed);
    const Expr first = call.scalar_expr(start, computed);
    return exprs.cast(first + call.scalar_expr(step, computed) * number, dtype);
  }));
  return std::nullopt;
}

std::optional<Unsupported> lower_arange(OpCall& call) {
  const bool has_start = call.node().schema->find("start") >= 0;
  const bool has_step = call.node().schema->find("step") >= 0;
  return fill_with_range(call, has_start ? call.scalar("start") : Argument(int64_t{0}),
                         has_step ? call.scalar("step") : Argument(int64_t{1}));
}

std::optional<Unsupported> lower_iota(OpCall& call) {
  return fill_with_range(call, call.scalar("start"), call.scalar("step"));
}

// Counted from the nearer end, so that both ends are exact.
std::optional<Unsupported> lower_linspace(OpCall& call) {
  const DType dtype = call.result().dtype;
  if (is_half(dtype)) return Unsupported{"eager rounds each step of a half-precision linspace"};
  const Index steps = call.result().sizes[0];
  if (!steps.is_constant()) return Unsupported{"its number of steps is symbolic"};
  const DType computed = is_integral(dtype) ? DType::kFloat64 : dtype;
  const int64_t last = std::max<int64_t>(steps.constant() - 1, 1);
  call.set(0, call.pointwise(call.result(), [&](std::span<const Index> position) {
    ExprContext& exprs = call.exprs();
    const Expr start = exprs.cast(call.scalar_expr(call.scalar("start"), dtype), computed);
    const Expr end = exprs.cast(call.scalar_expr(call.scalar("end"), dtype), computed);
    if (steps.is_constant(1)) return exprs.cast(start, dtype);
    const Expr step = (end - start) / static_cast<double>(last);
    const Expr from_start = exprs.cast(exprs.index_value(position[0]), computed);
    const Expr from_end = exprs.cast(exprs.index_value(-position[0] + last), computed);
    const Expr is_first_half = less(exprs.index_value(position[0]),
                                    exprs.constant_int(DType::kInt64, steps.constant() / 2));
    return exprs.cast(select(is_first_half, multiply_add(step, from_start, start),
                             multiply_add(-step, from_end, end)),
                      dtype);
  }));
  return std::nullopt;
}

std::optional<Unsupported> lower_eye(OpCall& call) {
  call.set(0, call.pointwise(call.result(), [&](std::span<const Index> position) {
    ExprContext& exprs = call.exprs();
    return exprs.cast(equal(exprs.index_value(position[0]), exprs.index_value(position[1])),
                      call.result().dtype);
  }));
  return std::nullopt;
}

// Keeps the elements on the diagonal and on one side of it.
template <ExprOp side>
std::optional<Unsupported> lower_triangle(OpCall& call) {
  const TensorValue& self = call.tensor("self");
  const Index diagonal = call.index("diagonal");
  call.set(0, call.pointwise(call.result(), [&](std::span<const Index> position) {
    ExprContext& exprs = call.exprs();
    const Index above = position[position.size() - 1] - position[position.size() - 2];
    const Expr is_kept = apply<side>(exprs.index_value(above), exprs.index_value(diagonal));
    return exprs.where(is_kept, call.load(self, position), exprs.constant_int(self.dtype, 0));
  }));
  return std::nullopt;
}

// The row and column numbers of the triangle's elements, as a constant of the program.
std::optional<Unsupported> lower_triangle_indices(OpCall& call, bool is_lower) {
  constexpr int64_t kMostElements = 1 << 16;
  const TensorMeta& meta = call.result();
  if (meta.dtype != DType::kInt64) return Unsupported{"its result is not int64"};
  const Index size = product(call.indices(), meta.sizes);
  if (!call.index("row").is_constant() || !call.index("col").is_constant() || !size.is_constant() ||
      size.constant() > kMostElements)
    return Unsupported{"its result is too large for a constant, or symbolic"};
  const int64_t offset = call.integer("offset");
  std::vector<int64_t> rows;
  std::vector<int64_t> columns;
  for (int64_t row = 0; row < call.integer("row"); ++row) {
    for (int64_t column = 0; column < call.integer("col"); ++column) {
      if (is_lower ? column - row > offset : column - row < offset) continue;
      rows.push_back(row);
      columns.push_back(column);
    }
  }
  rows.insert(rows.end(), columns.begin(), columns.end());
  Buffer buffer;
  buffer.name = call.node().name;
  buffer.dtype = meta.dtype;
  buffer.sizes = meta.sizes;
  buffer.strides = contiguous_strides(call.indices(), meta.sizes);
  buffer.kind = BufferKind::kConstant;
  buffer.bytes.resize(rows.size() * sizeof(int64_t));
  std::memcpy(buffer.bytes.data(), rows.data(), buffer.bytes.size());
  call.set(0, call.whole(call.program().add_buffer(std::move(buffer))));
  return std::nullopt;
}
std::optional<Unsupported> lower_tril_indices(OpCall& call) {
  return lower_triangle_indices(call, true);
}
std::optional<Unsupported> lower_triu_indices(OpCall& call) {
  return lower_triangle_indices(call, false);
}

constexpr LoweringRow kRows[] = {
    {"aten::zeros", lower_constant<0>},
    {"aten::zeros_like", lower_constant<0>},
    {"aten::new_zeros", lower_constant<0>},
    {"aten::ones", lower_constant<1>},
    {"aten::ones_like", lower_constant<1>},
    {"aten::new_ones", lower_constant<1>},
    {"aten::empty.memory_format", lower_constant<0>},
    {"aten::empty_like", lower_constant<0>},
    {"aten::empty_strided", lower_constant<0>},
    {"aten::empty_permuted", lower_constant<0>},
    {"aten::new_empty", lower_constant<0>},
    {"aten::new_empty_strided", lower_constant<0>},
    {"aten::full", lower_full},
    {"aten::full_like", lower_full},
    {"aten::new_full", lower_full},
    {"aten::scalar_tensor", lower_scalar_tensor},
    {"aten::arange", lower_arange},
    {"aten::arange.start", lower_arange},
    {"aten::arange.start_step", lower_arange},
    {"prims::iota", lower_iota},
    {"aten::linspace", lower_linspace},
    {"aten::eye", lower_eye},
    {"aten::eye.m", lower_eye},
    {"aten::tril", lower_triangle<ExprOp::kLe>},
    {"aten::triu", lower_triangle<ExprOp::kGe>},
    {"aten::tril_indices", lower_tril_indices},
    {"aten::triu_indices", lower_triu_indices},
};

}  // namespace

std::span<const LoweringRow> creation_lowerings() { return kRows; }

}  // namespace litz
