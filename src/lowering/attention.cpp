// Attention as a kernel instead of a library call.
//
// On a GPU the library's kernels for plain and causal attention are good, and stay. What has a mask
// or a bias has to be in memory for them, one number for each query and key, and goes to slower
// ones; in a kernel the mask is computed where it is needed. A forward graph whose backward graph
// wants what the library's kernel saves, the logarithm of the sum of exponentials, stays with the
// library there, too.
//
// On a CPU a kernel is faster than the library, most of all where there is a mask, or one query;
// gradients are the library's.
#include <algorithm>
#include <cmath>

#include "ir/attention_operands.h"
#include "lowering/lowering_context.h"
#include "lowering/reduction_helpers.h"

namespace litz {
namespace {

constexpr int64_t kLeastExtent = 16;  // of a tile
constexpr int64_t kMostWidth = 256;   // of a head

// An op of the library for attention.
struct AttentionOp {
  std::string_view name;
  std::string_view bias;  // the name of the argument; empty: it has none
  bool is_slow = false;   // the kernel is slower than ours, whatever the arguments
  bool is_slow_with_bias = false;
  bool aligns_ends = false;  // of queries and keys, where it is causal, so they have one length
};

constexpr std::string_view kCpuOp = "aten::_scaled_dot_product_flash_attention_for_cpu";

constexpr AttentionOp kAttentionOps[] = {
    {"aten::scaled_dot_product_attention", "attn_mask", false, true, false},
    {"aten::_scaled_dot_product_attention_math", "attn_mask", true, true, false},
    {"aten::_scaled_dot_product_efficient_attention", "attn_bias", true, true, false},
    {"aten::_scaled_dot_product_flash_attention", "", false, false, true},
    {kCpuOp, "attn_mask", true, true, false},
    {"aten::_scaled_dot_product_cudnn_attention", "attn_bias", false, false, true},
};

const AttentionOp* find_attention_op(const std::string& op) {
  const auto* found = std::find_if(std::begin(kAttentionOps), std::end(kAttentionOps),
                                   [&](const AttentionOp& row) { return row.name == op; });
  return found == std::end(kAttentionOps) ? nullptr : found;
}

bool has_argument(const Node& node, std::string_view name) {
  return node.schema->find(std::string(name)) >= 0;
}

bool is_width(Index size, bool on_cpu) {
  return size.is_constant() && size.constant() >= (on_cpu ? 2 : kLeastExtent) &&
         size.constant() <= kMostWidth;
}

// Lengths that no tile is mostly empty for. One query has all its keys to itself, which is another
// kind of kernel.
bool is_length(Index size) {
  return size.is_constant() ? size.constant() >= kLeastExtent : size.range().lo >= 2;
}

bool has_no_loops(std::span<const Index> sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [](Index size) { return size.is_constant(0); });
}

// Every element of the storage is one of the tensor's.
bool is_dense(const TensorMeta& meta) {
  std::vector<size_t> left;
  for (size_t i = 0; i < meta.sizes.size(); ++i) {
    if (!meta.sizes[i].is_constant(1)) left.push_back(i);
  }
  Index elements;
  while (!left.empty()) {
    const auto next = std::find_if(left.begin(), left.end(), [&](size_t i) {
      return elements.valid() ? meta.strides[i] == elements : meta.strides[i].is_constant(1);
    });
    if (next == left.end()) return false;
    elements = elements.valid() ? elements * meta.sizes[*next] : meta.sizes[*next];
    left.erase(next);
  }
  return true;
}

// The element of a key or a value at a position of the batch: heads of a query may share one.
std::vector<Index> shared_position(const TensorValue& query, const TensorValue& shared,
                                   std::span<const Index> batch) {
  std::vector<Index> position(batch.begin(), batch.end());
  const size_t head = batch.size() - 1;
  if (shared.sizes[head] != query.sizes[head])
    position[head] =
        floor_div(batch[head], query.sizes[head].constant() / shared.sizes[head].constant());
  return position;
}

bool shares_heads(Index heads, Index shared) {
  return heads == shared || (heads.is_constant() && shared.is_constant() && shared.constant() > 0 &&
                             heads.constant() % shared.constant() == 0);
}

}  // namespace

bool LoweringContext::lower_attention(NodeId id) {
  const Node& node = graph_.node(id);
  const AttentionOp* op = find_attention_op(node.schema->full_name());
  if (op == nullptr) return false;
  OpCall call(*this, id);
  const bool has_bias = !op->bias.empty() && !call.is_none(op->bias);
  const TensorMeta& meta = call.result();
  const bool on_cpu = meta.device == "cpu";
  const AttentionKernels kernels = !on_cpu                         ? options_.attention
                                   : meta.dtype == DType::kFloat16 ? options_.cpu_float16_attention
                                   : meta.dtype == DType::kBFloat16
                                       ? options_.cpu_bfloat16_attention
                                       : options_.cpu_attention;
  if (kernels == AttentionKernels::kOff) return false;
  const bool by_model = kernels == AttentionKernels::kAuto &&
                        (on_cpu || op->is_slow || (has_bias && op->is_slow_with_bias));
  if (!on_cpu && !meta.device.starts_with("cuda")) return false;
  if (!is_half(meta.dtype) && !(on_cpu && meta.dtype == DType::kFloat32)) return false;
  const auto is_used = [&](uint32_t output) {
    return !users_[{id, output}].empty() || is_output_[{id, output}];
  };
  const bool has_logarithms = op->name == kCpuOp && is_used(1);
  for (uint32_t output = has_logarithms ? 2 : 1; output < node.outputs.size(); ++output) {
    if (is_used(output)) return false;
  }
  const Argument dropout = call.scalar("dropout_p");
  if (dropout != Argument(0.0) && dropout != Argument(int64_t{0})) return false;
  if (has_argument(node, "dropout_mask") && !call.is_none("dropout_mask")) return false;
  if (!call.is_none("scale") && !real_argument(call, "scale")) return false;
  return add_attention(call, {.bias = op->bias,
                              .aligns_ends = op->aligns_ends,
                              .has_logarithms = has_logarithms,
                              .is_measured = kernels != AttentionKernels::kOn,
                              .by_model = by_model});
}

KernelCandidate LoweringContext::describe_attention(OpCall& call, std::string_view bias) const {
  KernelCandidate candidate;
  candidate.node = call.node().name;
  candidate.key = call.node().schema->name + " " + std::string(to_string(call.result().dtype));
  for (std::string_view operand :
       {std::string_view("query"), std::string_view("key"), std::string_view("value"), bias}) {
    if (operand.empty() || call.is_none(operand)) continue;
    const TensorValue value = call.tensor(operand);
    const char* comma = " ";
    for (Index size : value.sizes) {
      candidate.key += comma + to_string(size);
      comma = "x";
    }
    if (value.strided) {
      for (Index stride : value.strided->strides) candidate.key += "," + to_string(stride);
    }
    // Of a mask that is computed some keys may not count.
    const int position = call.node().schema->find(std::string(operand));
    const auto* made = std::get_if<Value>(&call.node().arguments[static_cast<size_t>(position)].v);
    if (operand == bias && made != nullptr && graph_.node(made->node).kind == NodeKind::kCall)
      candidate.key += " of " + graph_.node(made->node).schema->full_name();
  }
  if (call.boolean("is_causal")) candidate.key += " causal";
  candidate.key += names_of_readers(call.id());
  const TensorValue key = call.tensor("key");
  const Index length = key.sizes[key.rank() - 2];
  candidate.operations = 4 * (length.is_constant() ? static_cast<double>(length.constant()) : 1);
  for (Index size : call.result().sizes)
    candidate.operations *= size.is_constant() ? static_cast<double>(size.constant()) : 1;
  return candidate;
}

bool LoweringContext::add_attention(OpCall& call, const AttentionForm& form) {
  const TensorValue query = call.tensor("query");
  const TensorValue key = call.tensor("key");
  const TensorValue value = call.tensor("value");
  const std::vector<Index>& sizes = call.result().sizes;
  const size_t rank = sizes.size();
  const DType dtype = call.result().dtype;
  for (const TensorValue* operand : {&query, &key, &value}) {
    if (operand->rank() != rank || operand->dtype != dtype) return false;
  }
  const bool on_cpu = call.result().device == "cpu";
  if (rank < 3 || !is_width(query.sizes[rank - 1], on_cpu) || !is_width(sizes[rank - 1], on_cpu))
    return false;
  if (on_cpu ? has_no_loops(sizes) || key.sizes[rank - 2].range().lo < 2
             : !is_length(query.sizes[rank - 2]) || !is_length(key.sizes[rank - 2]))
    return false;
  // Queries that broadcast to the result are the library's.
  if (!std::equal(sizes.begin(), sizes.end() - 1, query.sizes.begin()) ||
      query.sizes[rank - 1] != key.sizes[rank - 1] || key.sizes[rank - 2] != value.sizes[rank - 2])
    return false;
  for (const TensorValue* operand : {&key, &value}) {
    if (!std::equal(sizes.begin(), sizes.end() - 3, operand->sizes.begin()) ||
        !shares_heads(sizes[rank - 3], operand->sizes[rank - 3]))
      return false;
  }
  const bool is_causal = call.boolean("is_causal");
  if (is_causal && form.aligns_ends && query.sizes[rank - 2] != key.sizes[rank - 2]) return false;

  ExprContext& exprs = call.exprs();
  Attention op;
  op.loops = make_loops(call.indices(), sizes);
  op.keys = make_loops(call.indices(), {&key.sizes[rank - 2], 1}, static_cast<uint32_t>(rank));
  op.factors =
      make_loops(call.indices(), {&query.sizes[rank - 1], 1}, static_cast<uint32_t>(rank) + 1);
  const std::span<const Index> loops = op.loops.variables;
  const std::span<const Index> batch = loops.first(rank - 2);
  const Index i = loops[rank - 2];
  const Index j = op.keys.variables[0];
  const auto load_at = [&](const TensorValue& operand, Index row, Index column) {
    std::vector<Index> position = shared_position(query, operand, batch);
    position.push_back(row);
    position.push_back(column);
    return call.load(operand, position);
  };
  op.query = load_at(query, i, op.factors.variables[0]);
  op.key = load_at(key, j, op.factors.variables[0]);
  op.value = load_at(value, j, loops[rank - 1]);
  if (!is_contiguous_along(program_, op.query, op.factors.variables[0]) ||
      !is_contiguous_along(program_, op.key, op.factors.variables[0]) ||
      !is_contiguous_along(program_, op.value, loops[rank - 1]))
    return false;
  if (form.is_measured) {
    candidates_.push_back(describe_attention(call, form.bias));
    if (!choose(candidates_.back(), form.by_model)) return false;
  }

  const double scale = call.is_none("scale")
                           ? 1 / std::sqrt(static_cast<double>(query.sizes[rank - 1].constant()))
                           : *real_argument(call, "scale");
  op.score = exprs.reduced(0, DType::kFloat32) * scale;
  const Expr masked = exprs.constant(DType::kFloat32, -std::numeric_limits<double>::infinity());
  if (!form.bias.empty() && !call.is_none(form.bias)) {
    std::vector<Index> position(batch.begin(), batch.end());
    position.push_back(i);
    position.push_back(j);
    const Expr element = call.load_broadcast(call.tensor(form.bias), position);
    op.score = element.dtype() == DType::kBool ? exprs.where(element, op.score, masked)
                                               : op.score + cast(element, DType::kFloat32);
  }
  if (is_causal) {
    op.score =
        exprs.where(less_equal(exprs.index_value(j), exprs.index_value(i)), op.score, masked);
  }
  Buffer buffer;
  buffer.name = fresh_name(call.node().name);
  buffer.dtype = DType::kFloat32;
  buffer.sizes = sizes;
  buffer.strides = dtype == buffer.dtype && is_dense(call.result())
                       ? call.result().strides
                       : contiguous_strides(call.indices(), sizes);
  op.output = program_.add_buffer(std::move(buffer));
  if (form.has_logarithms) {
    const TensorMeta& meta = call.result(1);
    Buffer logarithms;
    logarithms.name = fresh_name(call.node().name + "_logsumexp");
    logarithms.dtype = DType::kFloat32;
    logarithms.sizes = meta.sizes;
    logarithms.strides =
        is_dense(meta) ? meta.strides : contiguous_strides(call.indices(), meta.sizes);
    op.logsumexp = program_.add_buffer(std::move(logarithms));
  }
  const BufferId output = op.output;
  const BufferId logsumexp = op.logsumexp;
  add(std::move(op));
  set_rounded(call, 0, whole(output));
  if (logsumexp.valid()) call.set(1, whole(logsumexp));
  return true;
}

}  // namespace litz
