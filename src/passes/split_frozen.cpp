#include "passes/split_frozen.h"

#include <algorithm>

#include "graph/alias_analysis.h"
#include "passes/frozen_values.h"
#include "passes/graph_rewriter.h"

namespace litz {
namespace {

class Splitter {
 public:
  explicit Splitter(const Graph& graph)
      : graph_(graph),
        aliases_(graph),
        values_(graph, aliases_),
        moves_(graph.num_nodes()),
        stays_(graph.num_nodes()),
        is_needed_(graph.num_nodes()),
        is_used_(graph),
        is_computed_(graph) {
    for (uint32_t i = 0; i < graph.num_nodes(); ++i) moves_[i] = moves(NodeId(i));
    find_uses();
  }

  SplitGraph run() {
    std::vector<uint32_t> frozen_inputs;
    Graph frozen = frozen_part(frozen_inputs);
    std::vector<SplitGraph::Source> rest_inputs;
    Graph rest = rest_part(rest_inputs);
    return {std::move(frozen), std::move(frozen_inputs), std::move(rest), std::move(rest_inputs)};
  }

 private:
  bool moves(NodeId id) const {
    const Node& node = graph_.node(id);
    if (node.kind != NodeKind::kCall) return false;
    for (uint32_t k = 0; k < node.outputs.size(); ++k) {
      const Value value{id, k};
      if (!node.outputs[k].is_tensor()) continue;
      if (!values_.depends_on_input(value) || aliases_.is_visible(value)) return false;
    }
    return !node.outputs.empty();
  }

  bool is_frozen(NodeId id) const {
    const Node& node = graph_.node(id);
    return node.kind != NodeKind::kInput && !node.outputs.empty() && values_.is_frozen({id, 0});
  }

  bool is_any_used(NodeId id) const {
    for (uint32_t k = 0; k < graph_.node(id).outputs.size(); ++k) {
      if (is_used_[{id, k}]) return true;
    }
    return false;
  }

  // What the rest reads, and from there back what the frozen part has to compute.
  void find_uses() {
    const auto use = [&](Value value) {
      is_used_[value] = true;
      if (moves_[value.node.value] && !is_computed_[value]) {
        is_computed_[value] = true;
        computed_.push_back(value);
        is_needed_[value.node.value] = true;
      }
    };
    for (const Argument& output : graph_.outputs()) for_each_value(output, use);
    for (uint32_t i = static_cast<uint32_t>(graph_.num_nodes()); i-- > 0;) {
      stays_[i] = !moves_[i] && (!is_frozen(NodeId(i)) || is_any_used(NodeId(i)));
      if (!stays_[i]) continue;
      for (const Argument& argument : graph_.node(NodeId(i)).arguments)
        for_each_value(argument, use);
    }
    std::reverse(computed_.begin(), computed_.end());
    for (uint32_t i = static_cast<uint32_t>(graph_.num_nodes()); i-- > 0;) {
      if (!is_needed_[i]) continue;
      for (const Argument& argument : graph_.node(NodeId(i)).arguments)
        for_each_value(argument, [&](Value value) { is_needed_[value.node.value] = true; });
    }
  }

  Graph frozen_part(std::vector<uint32_t>& positions) const {
    GraphRewriter rewriter(graph_);
    for (uint32_t position = 0; position < graph_.inputs().size(); ++position) {
      const NodeId input = graph_.inputs()[position];
      if (is_needed_[input.value]) positions.push_back(position);
    }
    for (uint32_t i = 0; i < graph_.num_nodes(); ++i) {
      if (is_needed_[i]) rewriter.copy(NodeId(i));
    }
    std::vector<Argument> outputs;
    for (Value value : computed_) outputs.emplace_back(rewriter.map(value));
    rewriter.result().set_outputs(std::move(outputs));
    return std::move(rewriter.result());
  }

  Graph rest_part(std::vector<SplitGraph::Source>& sources) const {
    GraphRewriter rewriter(graph_);
    for (uint32_t position = 0; position < graph_.inputs().size(); ++position) {
      const NodeId id = graph_.inputs()[position];
      const Node& input = graph_.node(id);
      if (input.is_frozen && !is_used_[{id, 0}]) continue;
      sources.push_back({false, position});
      rewriter.replace({id, 0}, {rewriter.result().add_input(input.name, input.outputs[0]), 0});
    }
    for (uint32_t k = 0; k < computed_.size(); ++k) {
      const Value value = computed_[k];
      sources.push_back({true, k});
      const std::string name = value.output == 0
                                   ? graph_.node(value.node).name
                                   : rewriter.fresh_name(graph_.node(value.node).name);
      rewriter.replace(value, {rewriter.result().add_input(name, graph_.meta(value)), 0});
    }
    for (uint32_t i = 0; i < graph_.num_nodes(); ++i) {
      if (graph_.node(NodeId(i)).kind != NodeKind::kInput && stays_[i]) rewriter.copy(NodeId(i));
    }
    return rewriter.finish();
  }

  const Graph& graph_;
  const AliasAnalysis aliases_;
  const FrozenValues values_;
  std::vector<char> moves_;      // by node: only the frozen part has it
  std::vector<char> stays_;      // by node: the rest has it
  std::vector<char> is_needed_;  // by node: the frozen part has it
  ValueMap<char> is_used_;       // the rest reads it
  ValueMap<char> is_computed_;
  std::vector<Value> computed_;  // what the frozen part hands over
};

}  // namespace

SplitGraph split_frozen(const Graph& graph) { return Splitter(graph).run(); }

}  // namespace litz
