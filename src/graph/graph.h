// The ATen-level FX graph: what AOTAutograd or torch.export hands over, after functionalization.
//
// A Graph is a list of nodes in execution order: inputs first, then constants and calls. A node is
// an input, a call of a library op by schema name, or a constant tensor. A node may have several
// results; a `Value` names one of them (FX's getitem nodes do not exist here). Where an op returns
// lists of tensors (split), the elements are results of their own: the results of a node are its
// schema's returns with lists flattened. Calls carry all their arguments in schema order, defaults
// filled in, so that lowering addresses arguments by position or by schema name.
//
// Every tensor result carries metadata as eager computes it: dtype, symbolic sizes and strides,
// storage offset, device. Which results are views of which values follows from the schemas; see
// graph/alias_analysis.h. Sizes are made of size symbols of the graph's IndexContext only.
//
// Inputs that the graph mutates appear as calls of aten::copy_, usually at its end; calls run in
// the order of the list, so a value read before and after such a call may differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/argument.h"
#include "graph/op_schema.h"
#include "graph/schema_registry.h"
#include "support/dtype.h"
#include "support/ids.h"
#include "symbolic/index.h"

namespace litz {

enum class TensorLayout : uint8_t {
  kStrided,
  kOther
};  // kOther: sparse, quantized, mkldnn, nested

struct TensorMeta {
  DType dtype = DType::kFloat32;
  std::vector<Index> sizes;
  std::vector<Index> strides;
  Index offset;                // storage offset in elements
  std::string device = "cpu";  // as torch prints it
  TensorLayout layout = TensorLayout::kStrided;
  friend bool operator==(const TensorMeta&, const TensorMeta&) = default;
};

// What a result is: a tensor, an integer known as an expression of the size symbols, another
// scalar, or nothing (an optional result that is absent, such as a gradient that nobody asked for).
struct ValueMeta {
  enum class Kind : uint8_t { kNone, kTensor, kInt, kOtherScalar };
  Kind kind = Kind::kNone;
  TensorMeta tensor;  // kTensor
  Index integer;      // kInt

  static ValueMeta of(TensorMeta tensor) { return {Kind::kTensor, std::move(tensor), {}}; }
  static ValueMeta of(Index integer) { return {Kind::kInt, {}, integer}; }
  static ValueMeta other_scalar() { return {Kind::kOtherScalar, {}, {}}; }
  bool is_tensor() const { return kind == Kind::kTensor; }
  friend bool operator==(const ValueMeta&, const ValueMeta&) = default;
};

enum class NodeKind : uint8_t { kInput, kConstant, kCall };

struct Node {
  NodeKind kind = NodeKind::kCall;
  bool is_frozen = false;                 // kInput: it rarely changes from call to call
  std::string name;                       // FX name, unique in the graph
  const OpSchema* schema = nullptr;       // kCall
  std::vector<Argument> arguments;        // kCall, one for each schema argument
  std::vector<ValueMeta> outputs;         // an input or a constant has exactly one
  std::string stack;                      // kCall: the Python line that the user wrote,
                                          // "model.py:12 in forward, x = self.fc(x)"; may be empty
  std::vector<std::byte> constant_bytes;  // kConstant: the elements, row-major, host byte order
};

// The argument of a call by its name, which the schema has.
const Argument& argument(const Node& call, std::string_view name);

// A node as messages and comments name it: "softmax: model.py:12 in forward".
std::string node_origin(const std::string& name, const std::string& stack);

class Graph {
 public:
  explicit Graph(std::shared_ptr<IndexContext> context = std::make_shared<IndexContext>());
  // An empty graph that shares the context and the schemas of another one.
  static Graph like(const Graph& other);

  IndexContext& context() const { return *context_; }
  const std::shared_ptr<IndexContext>& shared_context() const { return context_; }

  // A frozen input is the same tensor with the same elements at most calls: a parameter.
  NodeId add_input(std::string name, ValueMeta meta, bool is_frozen = false);
  NodeId add_constant(std::string name, TensorMeta meta, std::vector<std::byte> bytes);
  // The arguments as bind_arguments gives them.
  NodeId add_call(std::string name, const OpSchema& schema, std::vector<Argument> arguments,
                  std::vector<ValueMeta> outputs, std::string stack = {});
  // Outputs in order; a Value, None or a scalar.
  void set_outputs(std::vector<Argument> outputs) { outputs_ = std::move(outputs); }
  // Positions of outputs, ascending, that may get other strides than eager's: tensors that a
  // forward graph saves for its backward graph, which nobody else looks at.
  void set_free_layouts(std::vector<uint32_t> outputs) { free_layouts_ = std::move(outputs); }

  const Node& node(NodeId id) const { return nodes_[id]; }
  Node& node(NodeId id) { return nodes_[id]; }
  size_t num_nodes() const { return nodes_.size(); }
  bool contains(Value value) const {
    return nodes_.contains(value.node) && value.output < nodes_[value.node].outputs.size();
  }
  const std::vector<NodeId>& inputs() const { return inputs_; }
  const std::vector<Argument>& outputs() const { return outputs_; }
  const std::vector<uint32_t>& free_layouts() const { return free_layouts_; }
  const ValueMeta& meta(Value value) const { return nodes_[value.node].outputs[value.output]; }
  const TensorMeta& tensor(Value value) const;  // requires a tensor

  // The size symbols in metadata and arguments, each once, in order of id.
  std::vector<Index> symbols() const;

  SchemaRegistry& schemas() { return *schemas_; }
  const SchemaRegistry& schemas() const { return *schemas_; }

 private:
  std::shared_ptr<IndexContext> context_;
  std::shared_ptr<SchemaRegistry> schemas_;  // owns the schemas that the calls refer to
  IdVector<NodeId, Node> nodes_;
  std::vector<NodeId> inputs_;
  std::vector<Argument> outputs_;
  std::vector<uint32_t> free_layouts_;
};

}  // namespace litz
