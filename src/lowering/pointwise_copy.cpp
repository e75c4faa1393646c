// Copies: of another dtype, in another layout, or into an input that the graph mutates.
#include "lowering/pointwise_helpers.h"
#include "lowering/pointwise_rows.h"

namespace litz {
namespace {

// A copy of the named tensor, broadcast and converted to the result's dtype.
std::optional<Unsupported> copy_of(OpCall& call, std::string_view argument) {
  const DType dtype = call.result().dtype;
  if (call.is_tensor(argument) && call.device(argument) != call.result().device)
    return Unsupported{"it moves a tensor to another device"};
  call.set(0, call.pointwise(call.result(), [&](std::span<const Index> position) {
    return call.exprs().cast(load_operand(call, argument, position, dtype), dtype);
  }));
  return std::nullopt;
}

std::optional<Unsupported> lower_copy_of_self(OpCall& call) { return copy_of(call, "self"); }
std::optional<Unsupported> lower_copy_of_a(OpCall& call) { return copy_of(call, "a"); }
std::optional<Unsupported> lower_copy_of_source(OpCall& call) { return copy_of(call, "src"); }
std::optional<Unsupported> lower_fill(OpCall& call) { return copy_of(call, "value"); }

// Conversions that give their operand back where there is nothing to convert.
std::optional<Unsupported> lower_conversion(OpCall& call) {
  const TensorValue self = call.tensor("self");
  const bool copies = call.node().schema->find("copy") >= 0 && call.boolean("copy");
  const bool is_same = self.dtype == call.result().dtype && call.has_strides(self, call.result());
  if (copies || !is_same) return copy_of(call, "self");
  call.set(0, self);
  return std::nullopt;
}

std::optional<Unsupported> lower_copy_into_input(OpCall& call) {
  const TensorValue target = call.tensor("self");
  if (call.device("src") != call.device("self"))
    return Unsupported{"it moves a tensor to another device"};
  return call.overwrite_input(target, [&](std::span<const Index> position) {
    return call.exprs().cast(load_operand(call, "src", position, target.dtype), target.dtype);
  });
}

constexpr LoweringRow kRows[] = {
    {"aten::clone", lower_copy_of_self},
    {"aten::_to_copy", lower_copy_of_self},
    {"aten::lift_fresh_copy", lower_copy_of_self},
    {"aten::detach_copy", lower_copy_of_self},
    {"aten::alias_copy", lower_copy_of_self},
    {"aten::copy", lower_copy_of_source},
    {"aten::copy_", lower_copy_into_input},
    {"aten::fill.Scalar", lower_fill},
    {"aten::fill.Tensor", lower_fill},
    {"aten::to.dtype", lower_conversion},
    {"aten::to.dtype_layout", lower_conversion},
    {"aten::to.device", lower_conversion},
    {"aten::to.other", lower_conversion},
    {"aten::contiguous", lower_conversion},
    {"prims::convert_element_type", lower_copy_of_a},
};

}  // namespace

std::span<const LoweringRow> copy_rows() { return kRows; }

}  // namespace litz
