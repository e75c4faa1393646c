#include "lowering/pointwise_helpers.h"

#include <algorithm>

namespace litz {
namespace {

bool is_one_element(const TensorValue& value) {
  return std::all_of(value.sizes.begin(), value.sizes.end(),
                     [](Index size) { return size.is_constant(1); });
}

}  // namespace

Expr load_operand(OpCall& call, std::string_view argument, std::span<const Index> position,
                  DType number_dtype) {
  if (call.is_tensor(argument)) return call.load_broadcast(call.tensor(argument), position);
  return call.scalar_expr(call.scalar(argument), number_dtype);
}

Expr load_converted(OpCall& call, std::string_view argument, std::span<const Index> position,
                    DType dtype) {
  return convert(load_operand(call, argument, position, dtype), dtype);
}

Expr load_precise(OpCall& call, std::string_view argument, std::span<const Index> position,
                  DType dtype) {
  const DType computed = computation_dtype(dtype);
  if (!call.is_tensor(argument)) return call.scalar_expr(call.scalar(argument), computed);
  const TensorValue& value = call.tensor(argument);
  return convert(call.load_broadcast(value, position), is_one_element(value) ? computed : dtype);
}

Expr precise_number(OpCall& call, std::string_view argument, DType dtype) {
  return call.scalar_expr(call.scalar(argument), computation_dtype(dtype));
}

std::optional<double> real_argument(const OpCall& call, std::string_view argument) {
  const Argument number = call.scalar(argument);
  if (const auto* real = std::get_if<double>(&number.v)) return *real;
  if (const auto* integer = std::get_if<int64_t>(&number.v)) return static_cast<double>(*integer);
  if (const auto* boolean = std::get_if<bool>(&number.v)) return *boolean ? 1 : 0;
  return std::nullopt;
}

void set_elementwise(OpCall& call, std::initializer_list<std::string_view> operands, DType dtype,
                     const Formula& formula, size_t output) {
  const TensorMeta& meta = call.result(output);
  call.set(output, call.pointwise(meta, [&](std::span<const Index> position) {
    std::vector<Expr> loaded;
    loaded.reserve(operands.size());
    for (std::string_view name : operands)
      loaded.push_back(load_converted(call, name, position, dtype));
    return round_result(formula(loaded), dtype, meta.dtype);
  }));
}

void set_elementwise(OpCall& call, std::initializer_list<std::string_view> operands,
                     const Formula& formula, size_t output) {
  set_elementwise(call, operands, call.result(output).dtype, formula, output);
}

size_t normalize_dim(int64_t dim, size_t rank) {
  const int64_t limit = std::max<int64_t>(1, static_cast<int64_t>(rank));
  if (dim < 0) dim += limit;
  LITZ_CHECK(dim >= 0 && dim < limit,
             "dimension " + std::to_string(dim) + " of a tensor of rank " + std::to_string(rank));
  return static_cast<size_t>(dim);
}

}  // namespace litz
