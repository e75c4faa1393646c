// Linear layers on a GPU: addmm as a product and a sum, where kernels take the sum in.
//
// Of float32 products cuBLAS is up to twice as slow with the bias, which narrows its choice of
// kernels, and the bias costs nothing in a kernel that reads the product anyway. Half floats stay
// together: the product alone would round once more than eager's.
#include "graph/op_traits.h"
#include "lowering/lowering_context.h"

namespace litz {
namespace {

constexpr std::string_view kMm = "aten::mm(Tensor self, Tensor mat2) -> Tensor";

bool is_one(const Argument& scalar) {
  return scalar == Argument(int64_t{1}) || scalar == Argument(1.0);
}

bool is_view(const OpSchema& schema) {
  if (schema.name == "aten::_unsafe_view") return true;
  return !schema.mutates() && !schema.returns.empty() && !schema.returns[0].alias_set.empty();
}

}  // namespace

// Some kernel of ours reads the value, or a view of it, and no library call does.
bool LoweringContext::feeds_kernels(Value value) const {
  bool any = false;
  for (NodeId user : users_[value]) {
    const Node& node = graph_.node(user);
    const LoweringFunction function = find_lowering(node.schema->full_name());
    if (function == nullptr || function == lower_to_library) return false;
    if (is_view(*node.schema)) {
      for (uint32_t output = 0; output < node.outputs.size(); ++output) {
        const Value view{user, output};
        if (!users_[view].empty() && !feeds_kernels(view)) return false;
        any = any || !users_[view].empty();
      }
    } else {
      any = true;
    }
  }
  return any;
}

bool LoweringContext::add_bias_apart(NodeId id) {
  const Node& node = graph_.node(id);
  if (node.schema->full_name() != "aten::addmm") return false;
  OpCall call(*this, id);
  const TensorMeta& meta = call.result();
  if (meta.dtype != DType::kFloat32 || !meta.device.starts_with("cuda")) return false;
  if (!is_one(call.scalar("beta")) || !is_one(call.scalar("alpha"))) return false;
  const TensorValue bias = call.tensor("self");
  if (bias.sizes.size() != 1 || !feeds_kernels({id, 0})) return false;
  // Of no factors eager gives the bias as it is, zeros of both signs.
  if (call.tensor("mat2").sizes[0].range().lo < 1) return false;

  ExternKernel mm;
  mm.name = "aten::mm";
  mm.schema = kMm;
  mm.node = node.name;
  mm.has_side_effects = !cannot_fail(graph_, node);
  for (const char* factor : {"mat1", "mat2"})
    mm.arguments.push_back(extern_argument(call.argument(factor)));
  Buffer buffer;
  buffer.name = fresh_name(node.name);
  buffer.dtype = meta.dtype;
  buffer.sizes = meta.sizes;
  buffer.strides = meta.strides;
  buffer.kind = BufferKind::kExtern;
  const BufferId product = program_.add_buffer(std::move(buffer));
  mm.outputs.push_back(product);
  program_.add_operation({std::move(mm), origin_});
  const TensorValue whole_product = whole(product);
  call.set(0, call.pointwise(meta, [&](std::span<const Index> position) {
    return call.exprs().binary(ExprOp::kAdd, call.load(whole_product, position),
                               call.load_broadcast(bias, position));
  }));
  return true;
}

}  // namespace litz
