#include "graph/graph.h"

#include <unordered_set>

#include "support/error.h"

namespace litz {

const Argument& argument(const Node& call, std::string_view name) {
  const int position = call.schema->find(name);
  LITZ_CHECK(position >= 0, call.schema->full_name() + " has no argument " + std::string(name));
  return call.arguments[static_cast<size_t>(position)];
}

std::string node_origin(const std::string& name, const std::string& stack) {
  return stack.empty() ? name : name + ": " + stack;
}

Graph::Graph(std::shared_ptr<IndexContext> context)
    : context_(std::move(context)), schemas_(std::make_shared<SchemaRegistry>()) {}

Graph Graph::like(const Graph& other) {
  Graph result(other.context_);
  result.schemas_ = other.schemas_;
  return result;
}

NodeId Graph::add_input(std::string name, ValueMeta meta, bool is_frozen) {
  Node node;
  node.kind = NodeKind::kInput;
  node.is_frozen = is_frozen;
  node.name = std::move(name);
  node.outputs.push_back(std::move(meta));
  inputs_.push_back(nodes_.push_back(std::move(node)));
  return inputs_.back();
}

NodeId Graph::add_constant(std::string name, TensorMeta meta, std::vector<std::byte> bytes) {
  Node node;
  node.kind = NodeKind::kConstant;
  node.name = std::move(name);
  node.outputs.push_back(ValueMeta::of(std::move(meta)));
  node.constant_bytes = std::move(bytes);
  return nodes_.push_back(std::move(node));
}

NodeId Graph::add_call(std::string name, const OpSchema& schema, std::vector<Argument> arguments,
                       std::vector<ValueMeta> outputs, std::string stack) {
  LITZ_CHECK(arguments.size() == schema.arguments.size(),
             "call '" + name + "' of " + schema.full_name() + " has " +
                 std::to_string(arguments.size()) + " arguments, the schema has " +
                 std::to_string(schema.arguments.size()));
  Node node;
  node.name = std::move(name);
  node.schema = &schema;
  node.arguments = std::move(arguments);
  node.outputs = std::move(outputs);
  node.stack = std::move(stack);
  return nodes_.push_back(std::move(node));
}

const TensorMeta& Graph::tensor(Value value) const {
  const ValueMeta& meta = this->meta(value);
  LITZ_CHECK(meta.is_tensor(), "result " + std::to_string(value.output) + " of '" +
                                   nodes_[value.node].name + "' is not a tensor");
  return meta.tensor;
}

std::vector<Index> Graph::symbols() const {
  // Most metadata repeats a few expressions, so each one is searched once.
  std::unordered_set<Index> expressions;
  std::vector<Index> found;
  auto add = [&](Index index) {
    if (index.valid() && !index.is_constant() && expressions.insert(index).second)
      found.push_back(index);
  };
  for (const Node& node : nodes_) {
    for (const ValueMeta& meta : node.outputs) {
      add(meta.integer);
      add(meta.tensor.offset);
      for (const Index size : meta.tensor.sizes) add(size);
      for (const Index stride : meta.tensor.strides) add(stride);
    }
    for (const Argument& argument : node.arguments) for_each_index(argument, add);
  }
  for (const Argument& output : outputs_) for_each_index(output, add);
  return free_symbols(found);
}

}  // namespace litz
