#include "graph/alias_analysis.h"

#include <gtest/gtest.h>

#include <map>

#include "graph/op_traits.h"
#include "graph/parse_graph.h"

namespace litz {
namespace {

struct Named {
  explicit Named(std::string_view text) : graph(parse_graph(text)), aliases(graph) {
    for (uint32_t i = 0; i < graph.num_nodes(); ++i) ids[graph.node(NodeId(i)).name] = NodeId(i);
  }
  Value value(const std::string& name, uint32_t output = 0) const { return {ids.at(name), output}; }
  bool share(Value a, Value b) const { return aliases.storage(a) == aliases.storage(b); }

  Graph graph;
  AliasAnalysis aliases;
  std::map<std::string, NodeId> ids;
};

TEST(AliasAnalysis, FollowsViews) {
  const Named t(R"(graph(%x: f32[4, 8], %y: f32[4, 8]) {
    %view: f32[32] = aten::view(%x, [32])
    %split:0: f32[16], %split:1: f32[16] offset(16) = aten::split.Tensor(%view, 16)
    %unsafe: f32[4, 4] = aten::_unsafe_view(%split:1, [4, 4])
    %clone: f32[4, 4] = aten::clone(%unsafe)
    %max:0: f32[4], %max:1: i64[4] = aten::max.dim(%clone, 1)
    return (%max)
  })");
  EXPECT_EQ(t.aliases.storage(t.value("unsafe")), t.value("x"));
  EXPECT_TRUE(t.share(t.value("split", 0), t.value("split", 1)));
  EXPECT_FALSE(t.share(t.value("x"), t.value("y")));
  EXPECT_FALSE(t.share(t.value("clone"), t.value("x")));
  EXPECT_FALSE(t.share(t.value("max", 0), t.value("max", 1)));
  EXPECT_TRUE(t.aliases.is_visible(t.value("unsafe")));  // looks into an input
  EXPECT_FALSE(t.aliases.is_visible(t.value("clone")));
  EXPECT_TRUE(t.aliases.is_visible(t.value("max", 0)));
  EXPECT_FALSE(t.aliases.is_visible(t.value("max", 1)));
  EXPECT_EQ(t.aliases.last_use(t.value("x")), t.ids.at("clone"));
  EXPECT_EQ(t.aliases.last_use(t.value("y")), t.ids.at("y"));
}

TEST(AliasAnalysis, FindsWrites) {
  const Named t(R"(graph(%x: f32[4], %y: f32[4]) {
    %view: f32[2, 2] = aten::view(%x, [2, 2])
    %fill: f32[2, 2] = aten::fill_.Scalar(%view, 1)
    %sin: f32[4] = aten::sin(%x)
    %copy: f32[4] = aten::copy_(%x, %y)
    return (%sin)
  })");
  const Value x = t.value("x");
  EXPECT_TRUE(t.aliases.is_written(t.value("view")));
  EXPECT_FALSE(t.aliases.is_written(t.value("y")));
  EXPECT_EQ(t.aliases.writes_before(x, t.ids.at("fill")), 0u);
  EXPECT_EQ(t.aliases.writes_before(x, t.ids.at("sin")), 1u);
  EXPECT_TRUE(t.aliases.is_written_between(x, t.ids.at("view"), t.ids.at("fill")));
  EXPECT_FALSE(t.aliases.is_written_between(x, t.ids.at("fill"), t.ids.at("sin")));
  EXPECT_TRUE(t.aliases.is_written_between(x, t.ids.at("fill"), t.ids.at("copy")));
}

TEST(AliasAnalysis, UnknownOpsMayReturnTheirArguments) {
  const Named t(R"(schema my::op(Tensor x, Tensor y) -> Tensor
    graph(%x: f32[4], %y: f32[4]) {
      %op: f32[4] = my::op(%x, %y)
      return (%op)
    })");
  EXPECT_TRUE(t.share(t.value("op"), t.value("x")));
  EXPECT_TRUE(t.share(t.value("op"), t.value("y")));
}

TEST(AliasAnalysis, SeesWritesThatSchemasHide) {
  const Named t(R"(graph(%x: f32[2, 4], %mean: f32[4], %var: f32[4]) {
    %norm:0: f32[2, 4], %norm:1: f32[4], %norm:2: f32[4] =
        aten::native_batch_norm(%x, none, none, %mean, %var, true, 0.1, 1e-5)
    return (%norm)
  })");
  EXPECT_TRUE(t.aliases.is_written(t.value("mean")));
}

TEST(OpTraits, ListsOfReturnsShareTheResults) {
  const OpSchema one = parse_schema("my::op() -> (Tensor, Tensor[], Tensor)");
  EXPECT_EQ(return_of_output(one, 5, 0), 0u);
  EXPECT_EQ(return_of_output(one, 5, 1), 1u);
  EXPECT_EQ(return_of_output(one, 5, 3), 1u);
  EXPECT_EQ(return_of_output(one, 5, 4), 2u);
  EXPECT_EQ(return_of_output(one, 2, 1), 2u);
  const OpSchema two = parse_schema("my::op() -> (Tensor[], Tensor[])");
  EXPECT_EQ(return_of_output(two, 6, 2), 0u);
  EXPECT_EQ(return_of_output(two, 6, 3), 1u);
}

TEST(OpTraits, ListsAreSortedAndKnown) {
  SchemaRegistry registry;
  for (const char* name : {"aten::sin", "aten::_to_copy", "aten::zeros_like", "aten::cat",
                           "prims::convert_element_type", "aten::view"})
    EXPECT_FALSE(registry.find(name)->mutates());
  EXPECT_TRUE(cannot_fail(*registry.find("aten::add.Tensor")));
  EXPECT_TRUE(cannot_fail(*registry.find("prims::convert_element_type")));
  EXPECT_TRUE(cannot_fail(*registry.find("aten::logical_xor")));
  EXPECT_FALSE(cannot_fail(*registry.find("aten::add_.Tensor")));
  EXPECT_FALSE(cannot_fail(*registry.find("aten::sum.IntList_out")));
  EXPECT_FALSE(cannot_fail(*registry.find("aten::embedding")));
  EXPECT_FALSE(is_pure(*registry.find("aten::empty.memory_format")));
  EXPECT_FALSE(is_pure(*registry.find("aten::native_dropout")));
  EXPECT_FALSE(is_pure(*registry.find("aten::native_batch_norm")));
  EXPECT_TRUE(is_pure(*registry.find("aten::embedding")));
}

}  // namespace
}  // namespace litz
