// The ATen-level FX graph: what AOTAutograd or torch.export hands over, after functionalization.
//
// A Graph is a list of nodes in execution order. A node is an input, a call of a library op by
// schema name, or a constant tensor. A node may have several results; a `Value` names one of them
// (FX's getitem nodes do not exist here). Calls carry all their arguments in schema order, defaults
// filled in, so that lowering addresses arguments by position or by schema name.
//
// Every tensor result carries metadata as eager computes it: dtype, symbolic sizes and strides,
// storage offset, device. Results that are views share the storage of their base: `alias_of` names
// the value whose storage they look into.
//
// The last part are the outputs, and the inputs that the graph mutates appear as calls of
// aten::copy_ at its end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graph/op_schema.h"
#include "support/dtype.h"
#include "support/ids.h"
#include "symbolic/index.h"

namespace litz {

struct NodeTag;
using NodeId = Id<NodeTag>;

// Result number `output` of a node.
struct Value {
  NodeId node;
  uint32_t output = 0;
  bool valid() const { return node.valid(); }
  friend auto operator<=>(const Value&, const Value&) = default;
};

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
};

// What a result is: a tensor, an integer known as an expression of the size symbols, a list of
// tensors (split), another scalar, or nothing.
struct ValueMeta {
  enum class Kind : uint8_t { kNone, kTensor, kInt, kOtherScalar, kTensorList };
  Kind kind = Kind::kNone;
  TensorMeta tensor;  // kTensor
  Index integer;      // kInt
  std::vector<TensorMeta>
      list;  // kTensorList: its elements are Values of their own, outputs 0..n-1 of the node
};

struct Argument;
using ArgumentList = std::vector<Argument>;

struct MemoryFormatArg {
  int value;
};  // torch's numbers: 0 contiguous, 1 preserve, 2 channels_last, 3 channels_last_3d
struct LayoutArg {
  int value;
};
struct DeviceArg {
  std::string value;
};

// One argument of a call. An Index is a symbolic integer.
struct Argument {
  using Variant = std::variant<std::monostate, Value, int64_t, double, bool, Index, std::string,
                               DType, DeviceArg, MemoryFormatArg, LayoutArg, ArgumentList>;
  Variant v;

  Argument() = default;
  template <class T>
  Argument(T value) : v(std::move(value)) {}  // NOLINT: implicit on purpose

  bool is_none() const { return std::holds_alternative<std::monostate>(v); }
  bool is_value() const { return std::holds_alternative<Value>(v); }
  bool is_list() const { return std::holds_alternative<ArgumentList>(v); }
};

enum class NodeKind : uint8_t { kInput, kConstant, kCall };

struct Node {
  NodeKind kind = NodeKind::kCall;
  std::string name;                  // FX name, unique in the graph
  const OpSchema* schema = nullptr;  // kCall
  std::vector<Argument> arguments;   // kCall, one for each schema argument
  std::vector<ValueMeta> outputs;
  std::string stack;  // Python line that the user wrote: "model.py:12 in forward, x = self.fc(x)";
                      // may be empty
  // kConstant: a tensor's elements, row-major, or the number of an extra input the door binds.
  std::vector<std::byte> constant_bytes;
};

class Graph {
 public:
  explicit Graph(std::shared_ptr<IndexContext> context = std::make_shared<IndexContext>());

  IndexContext& context() const { return *context_; }
  const std::shared_ptr<IndexContext>& shared_context() const { return context_; }

  NodeId add_input(std::string name, ValueMeta meta);
  NodeId add_constant(std::string name, TensorMeta meta, std::vector<std::byte> bytes);
  NodeId add_call(std::string name, const OpSchema& schema, std::vector<Argument> arguments,
                  std::vector<ValueMeta> outputs, std::string stack = {});
  // Outputs in order; a Value, None or an integer.
  void set_outputs(std::vector<Argument> outputs) { outputs_ = std::move(outputs); }

  const Node& node(NodeId id) const { return nodes_[id]; }
  Node& node(NodeId id) { return nodes_[id]; }
  size_t num_nodes() const { return nodes_.size(); }
  const std::vector<NodeId>& inputs() const { return inputs_; }
  const std::vector<Argument>& outputs() const { return outputs_; }
  const ValueMeta& meta(Value value) const { return nodes_[value.node].outputs[value.output]; }
  const TensorMeta& tensor(Value value) const;  // requires a tensor

  SchemaRegistry& schemas() { return *schemas_; }
  const SchemaRegistry& schemas() const { return *schemas_; }

 private:
  std::shared_ptr<IndexContext> context_;
  std::shared_ptr<SchemaRegistry> schemas_;  // owns schemas of ops outside the built-in table
  IdVector<NodeId, Node> nodes_;
  std::vector<NodeId> inputs_;
  std::vector<Argument> outputs_;
};

}  // namespace litz
