// Each invariant is broken once, in the one way that it can be.
#include "graph/verify_graph.h"

#include <gtest/gtest.h>

#include <functional>

#include "graph/bind_arguments.h"
#include "graph/parse_graph.h"
#include "support/error.h"

namespace litz {
namespace {

constexpr std::string_view kText = R"(graph(s0: int[2, inf], %x: f32[s0, 4], %n: int(s0)) {
  %c: f32[2] = constant(1.0, 2.0)
  %sin: f32[s0, 4] = aten::sin(%x)  # model.py:3
  %view: f32[4*s0] = aten::view(%sin, [4*s0])
  return (%view, none, 2)
})";

const NodeId kInput(0), kConstant(2), kSin(3), kView(4);

void expect_broken(int invariant, const std::function<void(Graph&)>& edit) {
  Graph graph = parse_graph(kText);
  verify_graph(graph);
  edit(graph);
  try {
    verify_graph(graph);
    ADD_FAILURE() << "invariant " << invariant << " holds";
  } catch (const InternalError& error) {
    const std::string expected = "graph invariant " + std::to_string(invariant) + ":";
    EXPECT_EQ(std::string(error.what()).substr(0, expected.size()), expected) << error.what();
  }
}

TEST(VerifyGraph, InputsComeFirst) {
  expect_broken(1, [](Graph& g) { g.add_input("late", g.node(kInput).outputs[0]); });
}

TEST(VerifyGraph, NamesAreUnique) {
  expect_broken(2, [](Graph& g) { g.node(kSin).name = "x"; });
  expect_broken(2, [](Graph& g) { g.node(kSin).name = ""; });
}

TEST(VerifyGraph, CallsFollowTheirSchema) {
  expect_broken(3, [](Graph& g) { g.node(kSin).schema = nullptr; });
  expect_broken(3, [](Graph& g) { g.node(kSin).arguments.clear(); });
}

TEST(VerifyGraph, ValuesAreDefinedBefore) {
  expect_broken(4, [](Graph& g) { g.node(kSin).arguments[0] = Value{kView, 0}; });
  expect_broken(4, [](Graph& g) { g.node(kSin).arguments[0] = Value{kInput, 1}; });
  expect_broken(4, [](Graph& g) { g.node(kSin).arguments[0] = Value(); });
  expect_broken(4, [](Graph& g) { g.set_outputs({Value{NodeId(99), 0}}); });
}

TEST(VerifyGraph, ArgumentsAreStoredAsTheirTypeAsks) {
  expect_broken(5, [](Graph& g) { g.node(kSin).arguments[0] = std::string("x"); });
  expect_broken(5, [](Graph& g) {
    g.node(kView).arguments[1] = ArgumentList{Argument(g.context().constant(4))};
  });
  expect_broken(
      5, [](Graph& g) { g.node(kView).arguments[1] = ArgumentList{Argument(Value{kInput, 0})}; });
}

TEST(VerifyGraph, ResultsFollowTheSchema) {
  expect_broken(6, [](Graph& g) { g.node(kView).outputs.emplace_back(); });
  expect_broken(6, [](Graph& g) { g.node(kView).outputs.clear(); });
  expect_broken(
      6, [](Graph& g) { g.node(kView).outputs[0] = ValueMeta::of(g.context().constant(1)); });
}

TEST(VerifyGraph, TensorsAreComplete) {
  expect_broken(7, [](Graph& g) { g.node(kSin).outputs[0].tensor.strides.pop_back(); });
  expect_broken(7, [](Graph& g) { g.node(kSin).outputs[0].tensor.offset = Index(); });
  expect_broken(7, [](Graph& g) { g.node(kSin).outputs[0].tensor.device = "a b"; });
}

TEST(VerifyGraph, ExpressionsAreOverSizeSymbols) {
  IndexContext other;
  expect_broken(8, [](Graph& g) {
    g.node(kSin).outputs[0].tensor.sizes[0] = g.context().variable(0, g.context().constant(4));
  });
  expect_broken(8, [&](Graph& g) { g.node(kSin).outputs[0].tensor.sizes[0] = other.constant(4); });
  expect_broken(8, [](Graph& g) { g.node(kSin).outputs[0].tensor.sizes[0] = Index(); });
  expect_broken(
      8, [](Graph& g) { g.node(kSin).outputs[0].tensor.sizes[0] = g.context().constant(-1); });
  expect_broken(8, [](Graph& g) {
    g.node(kView).arguments[1] = ArgumentList{Argument(g.context().size_symbol("a b"))};
  });
}

TEST(VerifyGraph, InputsAndConstantsHaveOneResult) {
  expect_broken(9, [](Graph& g) { g.node(kInput).outputs[0] = {}; });
  expect_broken(9, [](Graph& g) { g.node(kConstant).arguments.emplace_back(); });
}

TEST(VerifyGraph, ConstantsHoldTheirElements) {
  expect_broken(10, [](Graph& g) { g.node(kConstant).constant_bytes.pop_back(); });
  expect_broken(10, [](Graph& g) {
    g.node(kConstant).outputs[0].tensor.strides[0] = g.context().constant(2);
  });
  expect_broken(10, [](Graph& g) {
    g.node(kConstant).outputs[0].tensor.sizes[0] = g.context().size_symbol("s0");
  });
}

TEST(VerifyGraph, OutputsAreValuesOrScalars) {
  expect_broken(11, [](Graph& g) { g.set_outputs({ArgumentList{}}); });
  expect_broken(11, [](Graph& g) { g.set_outputs({std::string("x")}); });
}

TEST(VerifyGraph, FreeLayoutsAreOfTensors) {
  expect_broken(12, [](Graph& g) { g.set_free_layouts({1}); });
  expect_broken(12, [](Graph& g) { g.set_free_layouts({3}); });
  expect_broken(12, [](Graph& g) { g.set_free_layouts({0, 0}); });
}

TEST(VerifyGraph, ViewsKeepTheElements) {
  const std::string text =
      "graph(%x: f32[6, 4]) {\n  %y: f32[3, 8] = aten::view(%x, [3, 8])\n  return (%y)\n}";
  Graph graph = parse_graph(text);
  verify_graph(graph);
  graph.node(NodeId(1)).outputs[0].tensor.sizes[0] = graph.context().size_symbol("s0");
  verify_graph(graph);
  graph.node(NodeId(1)).outputs[0].tensor.sizes[0] = graph.context().constant(4);
  EXPECT_THROW(verify_graph(graph), InternalError);
}

TEST(VerifyGraph, NamesTheNodeAndTheUsersLine) {
  Graph graph = parse_graph(kText);
  graph.node(kSin).outputs.clear();
  try {
    verify_graph(graph);
    ADD_FAILURE();
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(),
                 "graph invariant 6: 0 results for 1 of the schema, in node 'sin' (aten::sin) from "
                 "model.py:3");
  }
}

}  // namespace
}  // namespace litz
