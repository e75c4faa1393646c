#include "driver/interpreted_graph.h"

#include <gtest/gtest.h>

#include <string>

#include "ir/parse_program.h"
#include "runtime/native_host.h"
#include "support/dtype.h"

namespace litz {
namespace {

constexpr const char* kProgram = R"(program(s0: size[2, inf]) {
  buffer x: f32[s0, 3] input 1
  buffer y: f32[2*s0] input 2
  buffer z: f32[s0, 3]
  inputs (n = int s0, x = tensor x, y = tensor y)

  pointwise z[d0 < s0, d1 < 3] {
    t0 = load x[d0, d1]
    t1 = add t0, t0
    yield t1
  }

  pointwise y[d0 < 2*s0] {
    yield 1.0: f32
  }

  return (tensor z, tensor y, int 2*s0)
})";

TEST(InterpretedGraph, DescribesItsInputsAsALibraryDoes) {
  const auto graph = make_interpreted_graph(parse_program(kProgram));
  const LitzArtifact& table = graph->table();
  ASSERT_EQ(table.num_inputs, 3);
  EXPECT_EQ(table.num_outputs, 3);
  EXPECT_EQ(table.num_symbols, 1);
  EXPECT_EQ(table.num_extern_ops, 0);
  EXPECT_EQ(table.inputs[0].kind, LITZ_INT);
  EXPECT_EQ(table.inputs[0].sizes[0], LITZ_SYMBOL_EXTENT(0));
  const LitzInputSpec& x = table.inputs[1];
  EXPECT_STREQ(x.name, "x");
  EXPECT_EQ(x.dtype, static_cast<LitzDType>(DType::kFloat32));
  EXPECT_EQ(x.sizes[0], LITZ_SYMBOL_EXTENT(0));
  EXPECT_EQ(x.sizes[1], 3);
  EXPECT_EQ(x.strides[0], 3);
  EXPECT_EQ(x.is_mutated, 0);
  EXPECT_EQ(table.inputs[2].sizes[0], LITZ_ANY_EXTENT);
  EXPECT_EQ(table.inputs[2].is_mutated, 1);
}

TEST(InterpretedGraph, RunsThroughTheHost) {
  const auto graph = make_interpreted_graph(parse_program(kProgram));
  const auto blocks = std::make_shared<BlockPool>();
  ThreadPool threads(1);
  Frame frame(graph->table());
  float x[6] = {0, 1, 2, 3, 4, 5};
  float y[4] = {};
  const int64_t sizes[] = {2, 3, 4};
  const int64_t strides[] = {3, 1};
  frame.input_tensors[1] = {x, sizes, strides, 2, static_cast<LitzDType>(DType::kFloat32), nullptr};
  frame.input_tensors[2] = {
      y, sizes + 2, strides + 1, 1, static_cast<LitzDType>(DType::kFloat32), nullptr};
  frame.inputs[0] = {.kind = LITZ_INT, .count = 0, .u = {.i = 2}};
  for (size_t i : {1, 2}) {
    frame.inputs[i] = {.kind = LITZ_TENSOR, .count = 0, .u = {.tensor = &frame.input_tensors[i]}};
  }
  ASSERT_EQ(check_inputs(graph->table(), frame), "");
  NativeRun run(blocks, threads);
  ASSERT_EQ(graph->run(run.host(), frame, blocks.get()), LITZ_OK) << run.message();
  const auto* z = static_cast<const float*>(frame.output_tensors[0].data);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(z[i], 2 * x[i]);
  for (float value : y) EXPECT_EQ(value, 1);
  EXPECT_EQ(frame.outputs[1].kind, LITZ_SAME_INPUT);
  EXPECT_EQ(frame.outputs[1].u.i, 2);
  EXPECT_EQ(frame.outputs[2].u.i, 4);
  release_native_tensor(frame.output_tensors[0]);

  frame.inputs[0].u.i = 3;
  EXPECT_NE(check_inputs(graph->table(), frame), "") << "sizes must agree";
}

TEST(InterpretedGraph, ChecksExtentsThatAreExpressions) {
  const auto graph = make_interpreted_graph(parse_program(kProgram));
  const auto blocks = std::make_shared<BlockPool>();
  ThreadPool threads(1);
  Frame frame(graph->table());
  float x[6] = {};
  const int64_t sizes[] = {2, 3, 5};
  const int64_t strides[] = {3, 1};
  for (size_t i : {1, 2}) {
    frame.input_tensors[i] = {x,
                              i == 1 ? sizes : sizes + 2,
                              i == 1 ? strides : strides + 1,
                              i == 1 ? 2 : 1,
                              static_cast<LitzDType>(DType::kFloat32),
                              nullptr};
    frame.inputs[i] = {.kind = LITZ_TENSOR, .count = 0, .u = {.tensor = &frame.input_tensors[i]}};
  }
  frame.inputs[0] = {.kind = LITZ_INT, .count = 0, .u = {.i = 2}};
  ASSERT_EQ(check_inputs(graph->table(), frame), "");
  NativeRun run(blocks, threads);
  EXPECT_NE(graph->run(run.host(), frame, blocks.get()), LITZ_OK);
  EXPECT_NE(run.message().find("input y"), std::string::npos) << run.message();
}

}  // namespace
}  // namespace litz
