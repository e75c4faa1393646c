#include "passes/graph_rewriter.h"

#include "graph/bind_arguments.h"
#include "support/error.h"

namespace litz {

GraphRewriter::GraphRewriter(const Graph& old) : old_(old), result_(Graph::like(old)), map_(old) {}

NodeId GraphRewriter::copy(NodeId old_node) {
  const Node& node = old_.node(old_node);
  if (node.kind == NodeKind::kCall) return copy_call(old_node, map(node.arguments));
  const NodeId added =
      node.kind == NodeKind::kInput
          ? result_.add_input(node.name, node.outputs[0], node.is_frozen)
          : result_.add_constant(node.name, node.outputs[0].tensor, node.constant_bytes);
  replace({old_node, 0}, {added, 0});
  return added;
}

NodeId GraphRewriter::copy_call(NodeId old_node, std::vector<Argument> mapped_arguments) {
  const Node& node = old_.node(old_node);
  const NodeId added = result_.add_call(node.name, *node.schema, std::move(mapped_arguments),
                                        node.outputs, node.stack);
  for (uint32_t i = 0; i < node.outputs.size(); ++i) replace({old_node, i}, {added, i});
  return added;
}

Value GraphRewriter::add_call(NodeId old_node, std::string_view op,
                              std::vector<Argument> positional,
                              std::vector<std::pair<std::string, Argument>> keywords,
                              TensorMeta meta) {
  const OpSchema* schema = result_.schemas().find(op);
  LITZ_CHECK(schema != nullptr, "a pass calls " + std::string(op) + ", which is not known");
  const Node& node = old_.node(old_node);
  return {result_.add_call(fresh_name(node.name), *schema,
                           bind_arguments(*schema, std::move(positional), std::move(keywords)),
                           {ValueMeta::of(std::move(meta))}, node.stack),
          0};
}

std::string GraphRewriter::fresh_name(std::string stem) {
  if (names_.empty()) {
    for (uint32_t i = 0; i < old_.num_nodes(); ++i) names_.insert(old_.node(NodeId(i)).name);
  }
  std::string name = stem;
  for (int number = 1; !names_.insert(name).second; ++number)
    name = stem + "_" + std::to_string(number);
  return name;
}

Value GraphRewriter::map(Value old_value) const {
  const Value value = map_[old_value];
  LITZ_CHECK(value.valid(),
             "a pass left out '" + old_.node(old_value.node).name + "', which is used further on");
  return value;
}

Argument GraphRewriter::map(const Argument& old_argument) const {
  if (old_argument.is_value()) return map(old_argument.get<Value>());
  if (old_argument.is_list()) return map(old_argument.get<ArgumentList>());
  return old_argument;
}

std::vector<Argument> GraphRewriter::map(const std::vector<Argument>& old_arguments) const {
  std::vector<Argument> result;
  result.reserve(old_arguments.size());
  for (const Argument& argument : old_arguments) result.push_back(map(argument));
  return result;
}

Graph GraphRewriter::finish() {
  result_.set_outputs(map(old_.outputs()));
  result_.set_free_layouts(old_.free_layouts());
  return std::move(result_);
}

}  // namespace litz
