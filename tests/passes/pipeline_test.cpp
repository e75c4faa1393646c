#include "passes/pipeline.h"

#include <gtest/gtest.h>
#include <algorithm>

#include <chrono>

#include "graph/bind_arguments.h"
#include "graph/print_graph.h"
#include "graph/verify_graph.h"

namespace litz {
namespace {

using Clock = std::chrono::steady_clock;

TensorMeta vector_meta(IndexContext& context) {
  TensorMeta meta;
  meta.sizes = {context.size_symbol("s0", {2, ValueRange::kMax})};
  meta.strides = {context.constant(1)};
  meta.offset = context.constant(0);
  return meta;
}

// The worst of everything: copies of copies, equal calls that must stay apart because each is
// written, equal outputs, dead code.
Graph make_graph(uint32_t length) {
  Graph graph;
  const ValueMeta meta = ValueMeta::of(vector_meta(graph.context()));
  const OpSchema& add = *graph.schemas().find("aten::add.Tensor");
  const OpSchema& clone = *graph.schemas().find("aten::clone");
  const OpSchema& zeros = *graph.schemas().find("aten::zeros_like");
  const OpSchema& copy = *graph.schemas().find("aten::copy_");
  Value last{graph.add_input("x", meta), 0};
  std::vector<Argument> outputs;
  auto call = [&](const char* name, uint32_t i, const OpSchema& schema,
                  std::vector<Argument> arguments) {
    return Value{graph.add_call(name + std::to_string(i), schema,
                                bind_arguments(schema, std::move(arguments)), {meta}),
                 0};
  };
  for (uint32_t i = 0; i < length; ++i) {
    const Value copied = call("clone", i, clone, {last});
    const Value again = call("again", i, clone, {copied});
    const Value made = call("zeros", i, zeros, {Value{NodeId(0), 0}});
    call("write", i, copy, {made, again});
    call("dead", i, add, {made, again});
    outputs.push_back(call("equal", i, add, {Value{NodeId(0), 0}, int64_t{1}}));
    last = call("sum", i, add, {again, made});
  }
  outputs.push_back(last);
  graph.set_outputs(std::move(outputs));
  return graph;
}

double run_all(const Graph& input) {
  const auto start = Clock::now();
  Graph graph = input;
  for (const GraphPass& pass : graph_passes()) graph = pass.function(graph, PassOptions{});
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  verify_graph(graph);
  return seconds;
}

TEST(Pipeline, FindsPassesByName) {
  for (const GraphPass& pass : graph_passes()) {
    EXPECT_EQ(find_graph_pass(pass.name), &pass);
    EXPECT_FALSE(pass.doc.empty());
  }
  EXPECT_EQ(find_graph_pass("no_such_pass"), nullptr);
}

TEST(Pipeline, PassesSettle) {
  Graph graph = make_graph(20);
  for (int round = 0; round < 2; ++round) {
    for (const GraphPass& pass : graph_passes()) graph = pass.function(graph, PassOptions{});
  }
  const std::string settled = to_string(graph);
  for (const GraphPass& pass : graph_passes()) {
    EXPECT_EQ(to_string(pass.function(graph, PassOptions{})), settled) << pass.name;
  }
}

TEST(Pipeline, OldGraphIsUntouched) {
  const Graph graph = make_graph(5);
  const std::string before = to_string(graph);
  run_all(graph);
  EXPECT_EQ(to_string(graph), before);
}

// Quadratic behaviour would make the large graph 64 times slower than the small one, not 8 times;
// the best of three runs keeps other processes out of the measurement.
TEST(Pipeline, TimeIsNearlyLinear) {
  auto best = [](uint32_t length) {
    const Graph graph = make_graph(length);
    double seconds = run_all(graph);
    for (int i = 0; i < 2; ++i) seconds = std::min(seconds, run_all(graph));
    return seconds;
  };
  const double small = best(1800);
  const double large = best(14400);  // about 100,000 nodes
  EXPECT_LT(large, 30 * small);
}

}  // namespace
}  // namespace litz
