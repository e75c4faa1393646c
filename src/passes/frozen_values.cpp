#include "passes/frozen_values.h"

#include <algorithm>

#include "graph/op_traits.h"

namespace litz {
namespace {

constexpr double kSmall = 1 << 20;
constexpr double kMostGrowth = 2;

bool is_constant(std::span<const Index> extents) {
  return std::all_of(extents.begin(), extents.end(), [](Index e) { return e.is_constant(); });
}

bool is_constant(const TensorMeta& tensor) {
  return is_constant(tensor.sizes) && is_constant(tensor.strides) && tensor.offset.is_constant();
}

double bytes_of(const TensorMeta& tensor) {
  double bytes = static_cast<double>(size_of(tensor.dtype));
  for (Index size : tensor.sizes) bytes *= static_cast<double>(size.constant());
  return bytes;
}

}  // namespace

FrozenValues::FrozenValues(const Graph& graph, const AliasAnalysis& aliases)
    : graph_(graph), aliases_(aliases), facts_(graph) {
  for (uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const NodeId id(i);
    const Facts facts = facts_of(id);
    for (uint32_t k = 0; k < graph.node(id).outputs.size(); ++k) facts_[{id, k}] = facts;
  }
}

FrozenValues::Facts FrozenValues::facts_of(NodeId id) const {
  const Node& node = graph_.node(id);
  double own_bytes = 0;
  for (uint32_t k = 0; k < node.outputs.size(); ++k) {
    const ValueMeta& meta = node.outputs[k];
    if (meta.kind == ValueMeta::Kind::kNone) continue;
    if (!meta.is_tensor() || !is_constant(meta.tensor) || aliases_.is_written({id, k})) return {};
    if (aliases_.storage({id, k}) == Value{id, k}) own_bytes += bytes_of(meta.tensor);
  }
  if (node.kind == NodeKind::kConstant) return {true, -1};
  if (node.kind == NodeKind::kInput)
    return node.is_frozen ? Facts{true, bytes_of(node.outputs[0].tensor)} : Facts{};
  const Facts facts = facts_of_call(node);
  return own_bytes <= std::max(kSmall, kMostGrowth * facts.input_bytes) ? facts : Facts{};
}

FrozenValues::Facts FrozenValues::facts_of_call(const Node& node) const {
  if (!is_pure(*node.schema)) return {};
  Facts facts{true, -1};
  for (const Argument& argument : node.arguments) {
    for_each_index(argument, [&](Index) { facts.is_frozen = false; });
    for_each_value(argument, [&](Value value) {
      const Facts& operand = facts_[value];
      facts.is_frozen = facts.is_frozen && operand.is_frozen;
      facts.input_bytes = std::max(facts.input_bytes, operand.input_bytes);
    });
  }
  return facts.is_frozen ? facts : Facts{};
}

bool has_frozen_inputs(const Graph& graph) {
  return std::any_of(graph.inputs().begin(), graph.inputs().end(),
                     [&](NodeId input) { return graph.node(input).is_frozen; });
}

}  // namespace litz
