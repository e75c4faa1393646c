// Tensors from nothing: constants, ranges, masks by position.
#include <cmath>

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
};

}  // namespace

std::span<const LoweringRow> creation_lowerings() { return kRows; }

}  // namespace litz
