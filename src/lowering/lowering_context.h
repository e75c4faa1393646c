// The state of one lowering: the program so far, and what every value of the graph became.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "graph/graph.h"
#include "graph/value_map.h"
#include "lowering/lowering.h"

namespace litz {

class LoweringContext {
 public:
  LoweringContext(const Graph& graph, const LoweringOptions& options);

  LoweringResult run();

  const Graph& graph() const { return graph_; }
  Program& program() { return program_; }

  const TensorValue& tensor(Value value) const;
  void set(Value value, TensorValue tensor);
  void set_index(Value value, Index index);

  // Makes sure that a value lies in memory as eager has it, by a copy where it does not, and gives
  // that window.
  BufferView strided(const TensorValue& value, const TensorMeta& meta);

  // Whether the value is strided as eager's metadata says.
  static bool has_strides(const TensorValue& value, const TensorMeta& meta);

  // OpCall::overwrite_input for the call `id`.
  std::optional<Unsupported> overwrite_input(NodeId id, const TensorValue& target,
                                             const OpCall::Body& body);

  // The element of a value at a position, in its dtype; `runtime_indices` stand for i0, i1, ... in
  // the position. Zero where the value is known to be empty: no such element is ever used.
  Expr load(const TensorValue& value, std::span<const Index> position,
            std::span<const Expr> runtime_indices = {});

  // A whole buffer as a value.
  TensorValue whole(BufferId buffer) const;
  TensorValue add_pointwise(Buffer buffer, const OpCall::Body& body);

  // Where the storage of a buffer begins in eager's terms: an input may be a window of a larger
  // storage.
  Index storage_offset(BufferId buffer) const;

  bool draws_in_kernels() const { return options_.random_in_kernels; }
  Expr draw_seed(const std::string& device);

  // Adds an operation that comes from the node at hand.
  OperationId add(decltype(Operation::v) operation) {
    return program_.add_operation({std::move(operation), origin_, op_});
  }
  std::string fresh_name(std::string_view stem);

 private:
  void add_input(NodeId id);
  void add_constant(NodeId id);
  void lower_call(NodeId id);
  // Why no lowering can take the arguments of a call; empty where one may.
  std::string argument_obstacle(const Node& node) const;
  void call_library(NodeId id, std::string reason);
  // ---- linear_layers.cpp ----
  // Lowers a matrix product that had better be more or other than the library's call.
  bool lower_product(NodeId id);
  bool multiply_vector(NodeId id);
  static void set_product(OpCall& call, const TensorValue& left, const TensorValue& right,
                          bool of_matrices);
  static std::pair<TensorValue, TensorValue> factors_of(const OpCall& call);
  bool apply_activation(NodeId id);
  bool add_bias_apart(NodeId id);
  std::optional<NodeId> only_user(Value value, bool (*wanted)(const Node&)) const;
  bool feeds_kernels(Value value) const;
  BufferId multiply(NodeId id, std::string_view op, std::string_view schema,
                    std::initializer_list<std::string_view> names,
                    std::vector<ExternArgument> more);
  // A call of the library for the call `id`, with one result; its buffer.
  BufferId add_library_call(NodeId id, std::string_view op, std::string_view schema,
                            std::vector<ExternArgument> arguments, const TensorMeta& meta);
  // ---- cpu_products.cpp ----
  bool compute_product_on_cpu(NodeId id);  // one that lower_product has looked at
  // Lowers a product whose weight lies in panels (graph/packed_linear.h).
  bool compute_packed_product(NodeId id);
  // Lowers a convolution whose weight the graph's passes have laid out for kernels.
  bool compute_convolution_on_cpu(NodeId id);
  // ---- product_kernels.cpp ----
  // Lowers the product to a kernel, where that can be and what was measured, else the model, says
  // so.
  bool compute_product(NodeId id, bool by_model);
  bool can_be_kernel(const TensorValue& left, const TensorValue& right) const;
  bool pays_as_kernel(Value value, const TensorValue& left, const TensorValue& right) const;
  bool is_of_bytes(Value value) const;
  KernelCandidate describe_product(NodeId id, const TensorValue& left,
                                   const TensorValue& right) const;
  // Whether it is a kernel: what was measured, else the model says so.
  bool choose(KernelCandidate& candidate, bool by_model) const;
  // With a comma in front of each.
  std::string names_of_readers(NodeId id) const;
  // The calls that alone read the value, each the one before.
  std::vector<NodeId> elementwise_readers(Value value) const;
  bool feeds_cheap_elementwise(Value value) const;
  bool is_written(BufferId buffer) const;
  // ---- attention.cpp ----
  // Lowers attention that had better be a kernel than the library's call.
  bool lower_attention(NodeId id);
  struct AttentionForm {
    std::string_view bias;        // the name of the argument; empty: the op has none
    bool aligns_ends = false;     // where it is causal
    bool has_logarithms = false;  // of sums of exponentials, for gradients
    bool is_measured = false;     // whether it is a kernel; else it is one
    bool by_model = false;        // what it is where nothing was measured
  };
  bool add_attention(OpCall& call, const AttentionForm& form);
  KernelCandidate describe_attention(OpCall& call, std::string_view bias) const;
  // ---- padded_products.cpp ----
  bool pad_product(NodeId id);
  TensorValue padded(OpCall& call, const TensorValue& value, size_t fast,
                     std::array<int64_t, 2> sizes);
  ExternArgument extern_argument(const Argument& argument);
  void add_outputs();
  // Some operation after the call may read the buffer.
  bool is_read_after(NodeId id, BufferId buffer) const;
  // Values that look into one buffer look into another one of the same sizes and strides instead.
  void redirect(BufferId from, BufferId to);

  const Graph& graph_;
  const LoweringOptions& options_;
  Program program_;
  ValueMap<std::variant<std::monostate, TensorValue, Index>> values_;
  ValueMap<std::vector<NodeId>> users_;  // each once
  ValueMap<char> is_output_;
  std::unordered_map<uint32_t, Index> storage_offsets_;  // by buffer; absent means 0
  std::unordered_map<uint32_t, BufferId> overwritten_;   // input by the buffer of its new elements
  std::unordered_map<std::string, uint32_t> names_;
  std::unordered_map<std::string, TensorValue> padded_;  // by what is padded, and to what
  std::unordered_set<NodeId> applied_;  // calls that what makes their operand does as well
  BufferId seeds_;                      // once a kernel draws random numbers
  OperationId draws_seeds_;
  std::vector<LoweringNote> fallbacks_;
  std::vector<KernelCandidate> candidates_;
  std::vector<NodeId> mutations_;  // calls that write to an argument
  std::string origin_;
  std::string op_;  // of the node: "aten::relu"
};

// Whether the result is memory of an argument.
bool is_view(const OpSchema& schema);

// For the library family: makes the call an ExternKernel on purpose, without a reason to report.
std::optional<Unsupported> lower_to_library(OpCall& call);

}  // namespace litz
