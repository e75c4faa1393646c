#include "passes/split_frozen.h"

#include <gtest/gtest.h>

#include "graph/parse_graph.h"
#include "graph/print_graph.h"
#include "graph/verify_graph.h"

namespace litz {
namespace {

std::vector<std::pair<bool, uint32_t>> sources(const SplitGraph& split) {
  std::vector<std::pair<bool, uint32_t>> found;
  for (const SplitGraph::Source& source : split.rest_inputs)
    found.emplace_back(source.is_computed, source.position);
  return found;
}

TEST(SplitFrozen, SaysWhereInputsComeFrom) {
  const Graph graph = parse_graph(R"(
graph(frozen %a: f32[4], %x: f32[4], frozen %b: f32[4], frozen %c: f32[4], %y: f32[4]) {
  %exp: f32[4] = aten::exp(%b)
  %sin: f32[4] = aten::sin(%a)
  %mul: f32[4] = aten::mul.Tensor(%x, %sin)
  %add: f32[4] = aten::add.Tensor(%mul, %exp)
  %sub: f32[4] = aten::sub.Tensor(%add, %a)
  return (%sub)
}
)");
  const SplitGraph split = split_frozen(graph);
  verify_graph(split.frozen);
  verify_graph(split.rest);
  EXPECT_EQ(split.frozen_inputs, (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(split.frozen.inputs().size(), 2U);
  EXPECT_EQ(split.frozen.outputs().size(), 2U);
  // %a, which the rest reads itself, %x, and %y, which nobody reads but every call brings; then
  // what is computed.
  EXPECT_EQ(sources(split), (std::vector<std::pair<bool, uint32_t>>{
                                {false, 0}, {false, 1}, {false, 4}, {true, 0}, {true, 1}}));
  EXPECT_EQ(split.rest.inputs().size(), 5U);
  for (NodeId input : split.rest.inputs()) EXPECT_FALSE(split.rest.node(input).is_frozen);
}

TEST(SplitFrozen, LeavesAGraphWithoutFrozenInputsAsItIs) {
  const Graph graph = parse_graph(R"(
graph(%x: f32[4]) {
  %exp: f32[4] = aten::exp(%x)
  return (%exp)
}
)");
  const SplitGraph split = split_frozen(graph);
  EXPECT_TRUE(split.frozen.outputs().empty());
  EXPECT_TRUE(split.frozen_inputs.empty());
  EXPECT_EQ(to_string(split.rest), to_string(graph));
}

}  // namespace
}  // namespace litz
