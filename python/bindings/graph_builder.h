// Builds a Graph from the nodes of a torch.fx.GraphModule. The Python package walks the module and
// hands over one node after the other; reading arguments and metadata is done here, because it is
// most of the work and has to be fast.
#pragma once

#include <nanobind/nanobind.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "tensor_access.h"

namespace litz {

// Why a whole graph cannot be compiled, in words that may follow "because". Python's
// UnsupportedGraph.
class UnsupportedGraph : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class GraphBuilder {
 public:
  GraphBuilder();
  // A graph that is complete, on that device.
  GraphBuilder(Graph graph, std::string device);

  // Declares a size symbol. Expressions over undeclared ones are data-dependent: unsupported.
  void symbol(const std::string& name, int64_t lo, int64_t hi);

  // A graph input: `example` is its tensor, real or fake, or its int or SymInt. A frozen one is a
  // tensor that rarely changes from call to call.
  void input(nanobind::handle node, const std::string& name, nanobind::handle example,
             bool is_frozen);
  // A call of an op. Arguments may hold fx nodes given earlier; `example` is what the call returns.
  void call(nanobind::handle node, const std::string& name, const std::string& op,
            const std::string& schema, nanobind::handle args, nanobind::handle kwargs,
            nanobind::handle example, const std::string& stack);
  // A node whose result is integer arithmetic on sizes: it becomes an expression where it is used.
  void integer(nanobind::handle node, nanobind::handle example);
  // operator.getitem.
  void item(nanobind::handle node, nanobind::handle source, int64_t index);
  // A node that may be there but not be used by anything that is compiled.
  void unusable(nanobind::handle node, const std::string& reason);
  void output(nanobind::handle values, std::vector<uint32_t> free_layouts);

  // The device of every tensor, as torch prints it; of a graph without CUDA tensors "cpu".
  const std::string& device() const { return device_; }

  const Graph& graph() const { return graph_; }
  Graph& graph() { return graph_; }

 private:
  // What an fx node stands for: one value, a structure of them, or the reason why it is neither.
  struct Binding {
    Argument value;
    std::vector<Binding> items;
    bool is_sequence = false;
    std::string unusable;
  };

  Binding bind_results(nanobind::handle example, NodeId node, std::vector<ValueMeta>* metas);
  const Binding& find(nanobind::handle node) const;
  Argument to_argument(nanobind::handle object);
  ArgumentList to_list(nanobind::handle sequence);
  ValueMeta meta_of(nanobind::handle example);
  TensorMeta tensor_meta(nanobind::handle tensor);
  void take_device(const std::string& device);
  Index integer_of(nanobind::handle value);
  Index expression(nanobind::handle sym_int);
  std::vector<Index> integers_of(nanobind::handle sequence);
  bool is_node(nanobind::handle object) const;
  Argument torch_constant(nanobind::handle object) const;

  const TensorAccess& access_;
  Graph graph_;
  std::string device_ = "cpu";
  bool has_tensor_ = false;
  std::unordered_map<std::string, Index> symbols_;
  std::unordered_map<PyObject*, Binding> bindings_;  // by fx node
  nanobind::list nodes_;                             // keeps the keys of bindings_ alive
  nanobind::dict expressions_;                       // sympy expression -> position in expression_
  std::vector<Index> expression_;
  nanobind::object node_type_;
  nanobind::object sym_int_type_;
  nanobind::object device_type_;
  nanobind::object cpu_device_;
  nanobind::object fake_tensor_type_;
};

}  // namespace litz
