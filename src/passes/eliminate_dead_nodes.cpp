#include "passes/eliminate_dead_nodes.h"

#include <vector>

#include "graph/op_traits.h"
#include "passes/graph_rewriter.h"

namespace litz {
namespace {

bool must_stay(const Graph& graph, const Node& node) {
  return node.kind == NodeKind::kInput ||
         (node.kind == NodeKind::kCall && !cannot_fail(graph, node));
}

std::vector<bool> find_live_nodes(const Graph& graph) {
  std::vector<bool> live(graph.num_nodes(), false);
  auto mark = [&](Value value) { live[value.node.value] = true; };
  for (const Argument& output : graph.outputs()) for_each_value(output, mark);
  for (size_t i = graph.num_nodes(); i-- > 0;) {
    const Node& node = graph.node(NodeId(static_cast<uint32_t>(i)));
    if (must_stay(graph, node)) live[i] = true;
    if (!live[i]) continue;
    for (const Argument& argument : node.arguments) for_each_value(argument, mark);
  }
  return live;
}

}  // namespace

Graph eliminate_dead_nodes(const Graph& graph) {
  const std::vector<bool> live = find_live_nodes(graph);
  GraphRewriter rewriter(graph);
  for (uint32_t i = 0; i < graph.num_nodes(); ++i) {
    if (live[i]) rewriter.copy(NodeId(i));
  }
  return rewriter.finish();
}

}  // namespace litz
