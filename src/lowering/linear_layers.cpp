// Products of linear layers on a GPU that are more than a library call.
//
// Of one row    A product of a vector and a matrix is bound by the matrix's memory. As a reduction
// it
//               is a kernel like others, with what makes the vector and what reads the result in
//               it, and reads memory faster than cuBLAS does.
// Activated     cuBLASLt computes ReLU and the tanh form of GELU on the way out, of half floats,
// and
//               saves a kernel that would read and write the product. It does not round in between
//               as eager does.
// In a kernel   product_kernels.cpp says which ones.
// Of float32    cuBLAS is up to twice as slow with the bias, which narrows its choice of kernels,
// and
//               the bias costs nothing in a kernel that reads the product anyway. Half floats stay
//               together: the product alone would round once more than eager's.
#include <algorithm>
#include <array>

#include "graph/op_traits.h"
#include "graph/packed_linear.h"
#include "lowering/lowering_context.h"
#include "lowering/reduction_helpers.h"

namespace litz {
namespace {

constexpr std::string_view kMm = "aten::mm(Tensor self, Tensor mat2) -> Tensor";
constexpr std::string_view kAddmmActivation =
    "aten::_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, "
    "Scalar alpha=1, bool use_gelu=False) -> Tensor";

bool is_one(const Argument& scalar) {
  return scalar == Argument(int64_t{1}) || scalar == Argument(1.0);
}

bool is_relu(const Node& node) { return node.schema->full_name() == "aten::relu"; }

bool is_tanh_gelu(const Node& node) {
  if (node.schema->full_name() != "aten::gelu") return false;
  const Argument& form = node.arguments[static_cast<size_t>(node.schema->find("approximate"))];
  return form == Argument(std::string("tanh"));
}

bool is_activation(const Node& node) { return is_tanh_gelu(node) || is_relu(node); }

// Neighbours along the dimension are neighbours in memory.
bool is_contiguous_along(const TensorValue& value, size_t dim) {
  return value.strided && value.strided->strides[dim].is_constant(1);
}

bool is_one_by(const TensorValue& value, size_t dim) { return value.sizes[dim].is_constant(1); }

// A product of a matrix, whose rows or columns lie in memory one after the other, and a vector.
bool is_of_vector(const TensorValue& left, const TensorValue& right) {
  if (right.rank() == 1 || is_one_by(right, 1)) return is_contiguous_along(left, 1);
  return is_one_by(left, 0) && is_contiguous_along(right, 0);
}

}  // namespace

bool is_view(const OpSchema& schema) {
  if (schema.name == "aten::_unsafe_view") return true;
  return !schema.mutates() && !schema.returns.empty() && !schema.returns[0].alias_set.empty();
}

bool LoweringContext::lower_product(NodeId id) {
  const Node& node = graph_.node(id);
  const std::string op = node.schema->full_name();
  const bool adds = op == "aten::addmm";
  const bool of_batches = op == "aten::bmm" || op == "aten::baddbmm";
  if (!adds && !of_batches && op != "aten::mm" && op != "aten::mv") return false;
  OpCall call(*this, id);
  const TensorMeta& meta = call.result();
  const bool on_cpu = meta.device == "cpu";
  if (!(on_cpu || meta.device.starts_with("cuda")) || !cannot_fail(graph_, node)) return false;
  if (!is_half(meta.dtype) && meta.dtype != DType::kFloat32) return false;
  const bool has_bias = adds || op == "aten::baddbmm";
  if (has_bias && (!is_one(call.scalar("beta")) || !is_one(call.scalar("alpha")))) return false;
  if (on_cpu) return compute_product_on_cpu(id);
  if (of_batches) return compute_product(id, false) || compute_product(id, true);
  if (multiply_vector(id)) return true;
  if (op == "aten::mv") return false;
  if (compute_product(id, false)) return true;
  if (adds && call.tensor("self").rank() != 1) return false;
  if (is_half(meta.dtype))
    return pad_product(id) || (adds && apply_activation(id)) || compute_product(id, true);
  return adds && add_bias_apart(id);
}

// Of an mm, an addmm, an mv, a bmm or a baddbmm.
std::pair<TensorValue, TensorValue> LoweringContext::factors_of(const OpCall& call) {
  const std::string& op = call.node().schema->name;
  if (op == "aten::baddbmm") return {call.tensor("batch1"), call.tensor("batch2")};
  return {call.tensor(op == "aten::addmm" ? "mat1" : "self"),
          call.tensor(op == "aten::mv" ? "vec" : "mat2")};
}

bool LoweringContext::multiply_vector(NodeId id) {
  OpCall call(*this, id);
  const auto [left, right] = factors_of(call);
  if (!is_of_vector(left, right)) return false;
  set_product(call, left, right, false);
  return true;
}

// The call that alone reads the value, or views of it that are not of its bits, if it is wanted.
std::optional<NodeId> LoweringContext::only_user(Value value, bool (*wanted)(const Node&)) const {
  while (!is_output_[value] && users_[value].size() == 1) {
    const NodeId user = users_[value].front();
    const Node& node = graph_.node(user);
    if (wanted(node)) return user;
    if (!is_view(*node.schema) || node.outputs.size() != 1 ||
        graph_.tensor(value).dtype != node.outputs[0].tensor.dtype)
      return std::nullopt;
    value = {user, 0};
  }
  return std::nullopt;
}

// Result 0 as a sum of products, in float32, that is rounded once with the bias of an addmm.
void LoweringContext::set_product(OpCall& call, const TensorValue& left, const TensorValue& right,
                                  bool of_matrices) {
  std::vector<Index> sizes = call.result().sizes;
  sizes.push_back(left.sizes.back());
  const size_t last = sizes.size() - 1;
  const std::array<size_t, 1> summed = {last};
  const TensorValue sum =
      call.reduce(ReductionKind::kSum, sizes, summed, false, [&](std::span<const Index> p) {
        // Behind the batch, if there is one; a vector has one dimension.
        std::vector<Index> in_left(p.begin(), p.begin() + static_cast<std::ptrdiff_t>(left.rank()));
        in_left.back() = p[last];
        std::vector<Index> in_right;
        if (left.rank() == 3) in_right.push_back(p[0]);
        in_right.push_back(p[last]);
        if (right.rank() > 1) in_right.push_back(p[last - 1]);
        return load_wide(call, left, in_left) * load_wide(call, right, in_right);
      });
  Program& program = call.program();
  const OperationId added(static_cast<uint32_t>(program.operations().size() - 1));
  std::get<Reduction>(program.operations()[added].v).is_product = of_matrices;
  const std::string& op = call.node().schema->name;
  const bool is_packed = op == kPackedLinear;
  if (is_packed ? call.is_none("bias") : op != "aten::addmm" && op != "aten::baddbmm") {
    set_rounded(call, 0, sum);
    return;
  }
  const TensorValue bias = call.tensor(is_packed ? "bias" : "self");
  set_pointwise(call, 0, [&](std::span<const Index> p) {
    return call.load(sum, p) + load_wide_broadcast(call, bias, p);
  });
}

bool LoweringContext::apply_activation(NodeId id) {
  const std::optional<NodeId> activation = only_user({id, 0}, is_activation);
  if (!activation || feeds_kernels({*activation, 0})) return false;
  OpCall call(*this, id);
  // Of no factors the library gives the bias as it is.
  if (call.tensor("mat2").sizes[0].range().lo < 1) return false;
  const BufferId product = multiply(id, "aten::_addmm_activation", kAddmmActivation,
                                    {"self", "mat1", "mat2", "beta", "alpha"},
                                    {{is_tanh_gelu(graph_.node(*activation))}});
  call.set(0, whole(product));
  applied_.insert(*activation);
  return true;
}

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
  OpCall call(*this, id);
  // Of no factors eager gives the bias as it is, zeros of both signs.
  if (!feeds_kernels({id, 0}) || call.tensor("mat2").sizes[0].range().lo < 1) return false;
  const TensorValue product = whole(multiply(id, "aten::mm", kMm, {"mat1", "mat2"}, {}));
  const TensorValue bias = call.tensor("self");
  call.set(0, call.pointwise(call.result(), [&](std::span<const Index> position) {
    return call.exprs().binary(ExprOp::kAdd, call.load(product, position),
                               call.load_broadcast(bias, position));
  }));
  return true;
}

// Another op of the library instead of the addmm `id`, whose arguments of these names it takes, and
// `more`; its result.
BufferId LoweringContext::multiply(NodeId id, std::string_view op, std::string_view schema,
                                   std::initializer_list<std::string_view> names,
                                   std::vector<ExternArgument> more) {
  OpCall call(*this, id);
  std::vector<ExternArgument> arguments;
  for (std::string_view name : names) arguments.push_back(extern_argument(call.argument(name)));
  arguments.insert(arguments.end(), more.begin(), more.end());
  return add_library_call(id, op, schema, std::move(arguments), call.result());
}

BufferId LoweringContext::add_library_call(NodeId id, std::string_view op, std::string_view schema,
                                           std::vector<ExternArgument> arguments,
                                           const TensorMeta& meta) {
  ExternKernel kernel;
  kernel.name = op;
  kernel.schema = schema;
  kernel.node = graph_.node(id).name;
  kernel.arguments = std::move(arguments);
  Buffer buffer;
  buffer.name = fresh_name(kernel.node);
  buffer.dtype = meta.dtype;
  buffer.sizes = meta.sizes;
  buffer.strides = meta.strides;
  buffer.kind = BufferKind::kExtern;
  const BufferId result = program_.add_buffer(std::move(buffer));
  kernel.outputs.push_back(result);
  add(std::move(kernel));
  return result;
}

}  // namespace litz
