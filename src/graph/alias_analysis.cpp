#include "graph/alias_analysis.h"

#include <algorithm>

#include "graph/op_traits.h"

namespace litz {

AliasAnalysis::AliasAnalysis(const Graph& graph) : storage_(graph), facts_(graph) {
  find_storages(graph);
  for (uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const NodeId id(i);
    const Node& node = graph.node(id);
    for (uint32_t k = 0; k < node.outputs.size(); ++k) {
      Facts& result = facts({id, k});
      result.last_use = id;
      if (node.kind == NodeKind::kInput) result.is_visible = true;
    }
    for (size_t k = 0; k < node.arguments.size(); ++k) {
      const bool writes = writes_argument(*node.schema, k);
      for_each_value(node.arguments[k], [&](Value value) {
        Facts& used = facts(value);
        used.last_use = id;
        if (writes && (used.writers.empty() || used.writers.back() != id))
          used.writers.push_back(id);
      });
    }
  }
  for (const Argument& output : graph.outputs()) {
    for_each_value(output, [&](Value value) { facts(value).is_visible = true; });
  }
}

bool AliasAnalysis::is_written_between(Value value, NodeId first, NodeId last) const {
  const std::vector<NodeId>& writers = facts(value).writers;
  const auto writer = std::upper_bound(writers.begin(), writers.end(), first);
  return writer != writers.end() && *writer <= last;
}

size_t AliasAnalysis::writes_before(Value value, NodeId node) const {
  const std::vector<NodeId>& writers = facts(value).writers;
  return static_cast<size_t>(std::lower_bound(writers.begin(), writers.end(), node) -
                             writers.begin());
}

void AliasAnalysis::find_storages(const Graph& graph) {
  auto for_each_result = [&](auto&& visit) {
    for (uint32_t i = 0; i < graph.num_nodes(); ++i) {
      const auto count = static_cast<uint32_t>(graph.node(NodeId(i)).outputs.size());
      for (uint32_t k = 0; k < count; ++k) visit(Value{NodeId(i), k});
    }
  };
  for_each_result([&](Value value) { storage_[value] = value; });
  for (uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const Node& node = graph.node(NodeId(i));
    if (node.kind == NodeKind::kCall) unite_results(node, NodeId(i));
  }
  for_each_result([&](Value value) { storage_[value] = find(value); });
}

void AliasAnalysis::unite_results(const Node& node, NodeId id) {
  const OpSchema& schema = *node.schema;
  const bool hidden = has_hidden_aliases(schema);
  for (uint32_t k = 0; k < node.outputs.size(); ++k) {
    if (!node.outputs[k].is_tensor()) continue;
    const std::string& set =
        schema.returns[return_of_output(schema, node.outputs.size(), k)].alias_set;
    if (set.empty() && !hidden) continue;
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      if (!hidden && schema.arguments[i].alias_set != set) continue;
      for_each_value(node.arguments[i], [&](Value value) { unite({id, k}, value); });
    }
  }
}

// The smaller value becomes the root, so a storage is named by the value that made it.
void AliasAnalysis::unite(Value a, Value b) {
  a = find(a);
  b = find(b);
  storage_[std::max(a, b)] = std::min(a, b);
}

Value AliasAnalysis::find(Value value) {
  while (storage_[value] != value) {
    storage_[value] = storage_[storage_[value]];
    value = storage_[value];
  }
  return value;
}

}  // namespace litz
