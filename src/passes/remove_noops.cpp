#include "passes/remove_noops.h"

#include <algorithm>
#include <iterator>

#include "graph/alias_analysis.h"
#include "passes/graph_rewriter.h"

namespace litz {
namespace {

constexpr std::string_view kCopies[] = {
    "aten::_to_copy",
    "aten::clone",
    "aten::lift_fresh_copy",
    "prims::convert_element_type",
};

// Annotated as views, but with equal metadata not always the same tensor: aten::to may be told to
// copy, a negative view changes the elements.
constexpr std::string_view kNeverNoops[] = {"aten::_neg_view", "aten::to"};

template <size_t N>
bool contains(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool is_view(const OpSchema& schema) {
  if (schema.name == "aten::_unsafe_view") return true;
  return !schema.mutates() && schema.returns.size() == 1 && !schema.returns[0].alias_set.empty() &&
         schema.returns[0].alias_set == schema.arguments[0].alias_set &&
         !contains(kNeverNoops, schema.name);
}

bool asks_for_pinned_memory(const Node& node) {
  const int position = node.schema->find("pin_memory");
  return position >= 0 && node.arguments[position] == Argument(true);
}

class Remover {
 public:
  explicit Remover(const Graph& graph)
      : graph_(graph), aliases_(graph), rewriter_(graph), stands_for_(graph), is_output_(graph) {
    for (const Argument& output : graph.outputs()) {
      for_each_value(output, [&](Value value) { is_output_[value] = true; });
    }
  }

  Graph run() {
    for (uint32_t i = 0; i < graph_.num_nodes(); ++i) {
      const NodeId id(i);
      if (!is_noop(id)) {
        rewriter_.copy(id);
        continue;
      }
      const Value source = graph_.node(id).arguments[0].get<Value>();
      rewriter_.replace({id, 0}, rewriter_.map(source));
      const Value storage = aliases_.storage({id, 0});
      if (storage == Value{id, 0}) stands_for_[storage] = origin(source);
    }
    return rewriter_.finish();
  }

 private:
  bool is_noop(NodeId id) const {
    const Node& node = graph_.node(id);
    if (node.kind != NodeKind::kCall || node.outputs.size() != 1 || node.arguments.empty() ||
        !node.arguments[0].is_value())
      return false;
    const Value source = node.arguments[0].get<Value>();
    const ValueMeta& meta = node.outputs[0];
    if (!meta.is_tensor() || meta != graph_.meta(source) ||
        meta.tensor.layout != TensorLayout::kStrided ||
        category(meta.tensor.dtype) == DTypeCategory::kComplex)  // may differ in the conjugate bit
      return false;
    if (is_view(*node.schema)) return !is_output_[Value{id, 0}];
    return contains(kCopies, node.schema->name) && !asks_for_pinned_memory(node) &&
           nobody_can_tell(id, source);
  }

  bool nobody_can_tell(NodeId id, Value source) const {
    const Value copy{id, 0};
    return !aliases_.is_visible(copy) && !aliases_.is_written(copy) &&
           !aliases_.is_written_between(origin(source), id, aliases_.last_use(copy));
  }

  // The storage that the value looks into once the removed copies are gone.
  Value origin(Value value) const {
    const Value storage = aliases_.storage(value);
    return stands_for_[storage].valid() ? stands_for_[storage] : storage;
  }

  const Graph& graph_;
  AliasAnalysis aliases_;
  GraphRewriter rewriter_;
  ValueMap<Value> stands_for_;  // by storage of a removed copy: its origin
  ValueMap<char> is_output_;
};

}  // namespace

Graph remove_noops(const Graph& graph) { return Remover(graph).run(); }

}  // namespace litz
