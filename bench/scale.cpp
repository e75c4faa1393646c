// Times lowering, scheduling and code generation of large graphs that are built through the C++ builder.
//
//   litz-scale chain 10000      prints one line of JSON: nodes, kernels, seconds by stage, microseconds a node
//
// Shapes: "chain" (each node reads the one before, every tenth a reduction over rows), "wide" (independent chains of three nodes).
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "codegen/cpp/cpp_artifact.h"
#include "graph/graph.h"
#include "lowering/lowering.h"
#include "passes/pipeline.h"
#include "schedule/schedule.h"

namespace litz {
namespace {

TensorMeta matrix(IndexContext& context, int64_t rows, int64_t columns) {
  TensorMeta meta;
  meta.dtype = DType::kFloat32;
  meta.sizes = {context.constant(rows), context.constant(columns)};
  meta.strides = {context.constant(columns), context.constant(1)};
  meta.offset = context.constant(0);
  return meta;
}

class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}

  Value unary(const char* op, Value x) {
    return call(op, {Argument(x)}, graph_.tensor(x));
  }
  Value add(Value a, Value b) {
    return call("aten::add.Tensor", {Argument(a), Argument(b), Argument(int64_t{1})}, graph_.tensor(a));
  }
  Value row_sum(Value x) {
    TensorMeta meta = matrix(graph_.context(), graph_.tensor(x).sizes[0].constant(), 1);
    return call("aten::sum.dim_IntList", {Argument(x), Argument(ArgumentList{Argument(int64_t{1})}), Argument(true), Argument()}, meta);
  }

 private:
  Value call(const char* op, std::vector<Argument> arguments, TensorMeta meta) {
    const OpSchema* schema = graph_.schemas().find(op);
    if (schema == nullptr) throw std::runtime_error(std::string("no schema for ") + op);
    const NodeId id = graph_.add_call("n" + std::to_string(graph_.num_nodes()), *schema, std::move(arguments), {ValueMeta::of(std::move(meta))});
    return {id, 0};
  }
  Graph& graph_;
};

Graph build(const std::string& shape, int nodes) {
  Graph graph;
  Builder builder(graph);
  const TensorMeta meta = matrix(graph.context(), 64, 128);
  const NodeId x = graph.add_input("x", ValueMeta::of(meta));
  const char* unary[] = {"aten::sigmoid", "aten::tanh", "aten::neg", "aten::exp"};
  std::vector<Argument> outputs;
  if (shape == "chain") {
    Value value{x, 0};
    for (int i = 0; i < nodes; ++i) {
      if (i % 10 == 8) {
        value = builder.add(value, builder.row_sum(value));
        ++i;
      } else {
        value = builder.unary(unary[i % 4], value);
      }
    }
    outputs.emplace_back(value);
  } else {
    for (int i = 0; i < nodes / 3; ++i) {
      const Value a = builder.unary(unary[i % 4], {x, 0});
      outputs.emplace_back(builder.add(builder.unary("aten::tanh", a), {x, 0}));
    }
  }
  graph.set_outputs(std::move(outputs));
  return graph;
}

template <class Stage>
auto timed(double& seconds, const Stage& stage) {
  const auto begin = std::chrono::steady_clock::now();
  auto result = stage();
  seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

int run(const std::string& shape, int nodes) {
  const Graph graph = build(shape, nodes);
  double lower = 0;
  double schedule = 0;
  double print = 0;
  auto program = timed(lower, [&] { return std::make_shared<const Program>(std::move(lower_graph(graph, {}).program)); });
  const Plan plan = timed(schedule, [&] { return schedule_program(program, {}); });
  CppArtifactOptions options;
  options.target.avx2 = options.target.fma = options.target.f16c = true;
  options.target.vector_bytes = 32;
  options.units = 2;
  const CppSources sources = timed(print, [&] { return print_cpp_artifact(plan, options); });
  const double total = lower + schedule + print;
  std::printf("{\"shape\": \"%s\", \"nodes\": %d, \"kernels\": %zu, \"lower\": %.4f, \"schedule\": %.4f, \"print\": %.4f, \"us_per_node\": %.2f}\n",
              shape.c_str(), nodes, plan.kernels.size(), lower, schedule, print, 1e6 * total / nodes);
  return 0;
}

}  // namespace
}  // namespace litz

int main(int argc, char** argv) {
  if (argc != 3 || (std::string(argv[1]) != "chain" && std::string(argv[1]) != "wide") || std::atoi(argv[2]) < 3) {
    std::fprintf(stderr, "usage: litz-scale chain|wide NODES\n");
    return 2;
  }
  return litz::run(argv[1], std::atoi(argv[2]));
}
