// What a graph becomes as a whole: windows, mutated inputs, symbolic sizes, fallbacks. What each op
// computes is tested by cases_test.cpp.
#include "lowering/lowering.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "../ir/test_host.h"
#include "graph/parse_graph.h"
#include "graph/verify_graph.h"
#include "ir/print_program.h"
#include "ir/verify_program.h"
#include "passes/pack_weights.h"

namespace litz {
namespace {

LoweringResult lower(std::string_view text, const LoweringOptions& options = {}) {
  const Graph graph = parse_graph(text);
  verify_graph(graph);
  LoweringResult lowered = lower_graph(graph, options);
  verify_program(lowered.program);
  return lowered;
}

std::string lower_to_text(std::string_view text) {
  const LoweringResult lowered = lower(text);
  EXPECT_TRUE(lowered.fallbacks.empty()) << lowered.fallbacks[0].op << lowered.fallbacks[0].reason;
  return to_string(lowered.program);
}

size_t count_operations(std::string_view graph) { return lower(graph).program.operations().size(); }

TEST(Lowering, EveryRowNamesAnOp) {
  const SchemaRegistry schemas;
  for (const std::span<const LoweringRow> family :
       {pointwise_lowerings(), view_lowerings(), creation_lowerings(), join_lowerings(),
        reduction_lowerings(), normalization_lowerings(), activation_lowerings(),
        indexing_lowerings(), pooling_lowerings(), library_lowerings()}) {
    for (const LoweringRow& row : family) {
      // What a pass calls where a front end declares it.
      const bool is_packed =
          std::any_of(std::begin(kPackedConvolutions), std::end(kPackedConvolutions),
                      [&](const PackedConvolution& form) { return form.op == row.op; });
      EXPECT_NE(schemas.find(row.op) != nullptr, is_packed) << row.op;
      EXPECT_EQ(find_lowering(row.op), row.function) << row.op;
    }
  }
}

TEST(Lowering, ViewsMakeNoOperations) {
  EXPECT_EQ(count_operations(R"(graph(%x: f32[4, 6]) {
  %t: f32[6, 4]{1, 6} = aten::t(%x)
  %s: f32[3, 4]{2, 6} offset(1) = aten::slice.Tensor(%t, 0, 1, 6, 2)
  %e: f32[2, 3, 4]{0, 2, 6} offset(1) = aten::expand(%s, [2, 3, 4])
  %v: f32[24] = aten::view(%x, [24])
  %w: f32[2, 12] = aten::view(%v, [2, 12])
  return (%t, %s, %w)
})"),
            0u);
}

TEST(Lowering, OutputsAreWindowsOfMemory) {
  const LoweringResult lowered = lower(R"(graph(%x: f32[4, 6]) {
  %t: f32[6, 4]{1, 6} = aten::t(%x)
  %s: f32[3, 4]{2, 6} offset(1) = aten::slice.Tensor(%t, 0, 1, 6, 2)
  return (%s)
})");
  const auto& view = std::get<BufferView>(lowered.program.outputs[0].v);
  EXPECT_EQ(view.buffer, lowered.program.inputs[0].buffer);
  EXPECT_TRUE(view.strides[0].is_constant(2));
  EXPECT_TRUE(view.strides[1].is_constant(6));
  EXPECT_TRUE(view.offset.is_constant(1));
}

TEST(Lowering, ReshapeThatEagerCopiesIsCopied) {
  TestRun run(lower_to_text(R"(graph(%x: f32[2, 3]) {
  %t: f32[3, 2]{1, 3} = aten::t(%x)
  %r: f32[6] = aten::reshape(%t, [6])
  return (%r)
})"));
  run.input<float>(DType::kFloat32, {2, 3}, {1, 2, 3, 4, 5, 6});
  ASSERT_EQ(run.run(), LITZ_OK) << run.host.message;
  EXPECT_EQ(run.output<float>(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
}

TEST(Lowering, AnOffsetOfTheInputIsNotCountedTwice) {
  TestRun run(lower_to_text(R"(graph(%x: f32[2, 2]{3, 1} offset(7)) {
  %a: f32[2]{3} offset(8) = aten::as_strided(%x, [2], [3], 8)
  %r: f32[2]{3} offset(8) = aten::select.int(%x, 1, 1)
  %sum: f32[2] = aten::add.Tensor(%a, %r)
  return (%sum)
})"));
  run.strided_input<float>(DType::kFloat32, {2, 2}, {3, 1}, {1, 2, 3, 4, 5});
  ASSERT_EQ(run.run(), LITZ_OK) << run.host.message;
  EXPECT_EQ(run.output<float>(), (std::vector<float>{4, 10}));
}

// ---- mutated inputs ----

TEST(Lowering, MutatedInputIsWrittenDirectly) {
  constexpr std::string_view kGraph = R"(graph(%x: f32[3]) {
  %y: f32[3] = aten::add.Tensor(%x, 1)
  %z: f32[3] = aten::mul.Tensor(%x, 2)
  %w: f32[3] = aten::copy_(%x, %y)
  return (%z)
})";
  EXPECT_EQ(count_operations(kGraph), 3u);
  TestRun run(lower_to_text(kGraph));
  run.input<float>(DType::kFloat32, {3}, {1, 2, 3});
  ASSERT_EQ(run.run(), LITZ_OK) << run.host.message;
  EXPECT_EQ(run.output<float>(), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(run.input_values<float>(0), (std::vector<float>{2, 3, 4}));
}

TEST(Lowering, ReadsAfterAMutationSeeIt) {
  TestRun run(lower_to_text(R"(graph(%x: f32[3]) {
  %v: f32[3, 1] = aten::view(%x, [3, 1])
  %y: f32[3] = aten::add.Tensor(%x, 1)
  %w: f32[3] = aten::copy_(%x, %y)
  %a: f32[3] = aten::mul.Tensor(%x, 2)
  %b: f32[3, 1] = aten::mul.Tensor(%v, 3)
  %c: f32[3] = aten::mul.Tensor(%w, 4)
  return (%a, %b, %c, %x)
})"));
  run.input<float>(DType::kFloat32, {3}, {1, 2, 3});
  ASSERT_EQ(run.run(), LITZ_OK) << run.host.message;
  EXPECT_EQ(run.output<float>(0), (std::vector<float>{4, 6, 8}));
  EXPECT_EQ(run.output<float>(1), (std::vector<float>{6, 9, 12}));
  EXPECT_EQ(run.output<float>(2), (std::vector<float>{8, 12, 16}));
  EXPECT_EQ(run.value(3).kind, LITZ_SAME_INPUT);
  EXPECT_EQ(run.value(3).u.i, 0);
  EXPECT_EQ(run.input_values<float>(0), (std::vector<float>{2, 3, 4}));
}

TEST(Lowering, MutationByItsOwnTranspose) {
  TestRun run(lower_to_text(R"(graph(%x: f32[2, 2]) {
  %t: f32[2, 2]{1, 2} = aten::t(%x)
  %w: f32[2, 2] = aten::copy_(%x, %t)
  return ()
})"));
  run.input<float>(DType::kFloat32, {2, 2}, {1, 2, 3, 4});
  ASSERT_EQ(run.run(), LITZ_OK) << run.host.message;
  EXPECT_EQ(run.input_values<float>(0), (std::vector<float>{1, 3, 2, 4}));
}

TEST(Lowering, InputsThatAreSwapped) {
  TestRun run(lower_to_text(R"(graph(%x: f32[2], %y: f32[2]) {
  %old: f32[2] = aten::clone(%x)
  %a: f32[2] = aten::copy_(%x, %y)
  %b: f32[2] = aten::copy_(%y, %old)
  return ()
})"));
  run.input<float>(DType::kFloat32, {2}, {1, 2}).input<float>(DType::kFloat32, {2}, {3, 4});
  ASSERT_EQ(run.run(), LITZ_OK) << run.host.message;
  EXPECT_EQ(run.input_values<float>(0), (std::vector<float>{3, 4}));
  EXPECT_EQ(run.input_values<float>(1), (std::vector<float>{1, 2}));
}

TEST(Lowering, CopyOfAnInputKeepsTheOldElements) {
  TestRun run(lower_to_text(R"(graph(%x: f32[2, 2]) {
  %t: f32[2, 2]{1, 2} = aten::t(%x)
  %r: f32[4] = aten::reshape(%t, [4])
  %y: f32[2, 2] = aten::neg(%x)
  %w: f32[2, 2] = aten::copy_(%x, %y)
  return (%r)
})"));
  run.input<float>(DType::kFloat32, {2, 2}, {1, 2, 3, 4});
  ASSERT_EQ(run.run(), LITZ_OK) << run.host.message;
  EXPECT_EQ(run.output<float>(), (std::vector<float>{1, 3, 2, 4}));
  EXPECT_EQ(run.input_values<float>(0), (std::vector<float>{-1, -2, -3, -4}));
}

// ---- symbolic sizes ----

TEST(Lowering, SymbolicSizes) {
  TestRun run(lower_to_text(R"(graph(s0: int[2, inf], %x: f32[s0, 4], %n: int(s0)) {
  %cat: f32[2*s0, 4] = aten::cat([%x, %x])
  %rest: f32[s0 - 1, 4] offset(4) = aten::slice.Tensor(%x, 0, 1, 9223372036854775807)
  %tail: f32[2, 4]{4, 1} offset(4*s0 - 8) = aten::slice.Tensor(%x, 0, -2, 9223372036854775807)
  %flat: f32[4*s0] = aten::view(%x, [4*s0])
  %split: f32[s0, 2, 2] = aten::view(%flat, [s0, 2, 2])
  %t: f32[4, s0]{1, 4} = aten::t(%x)
  %joined: f32[4*s0] = aten::reshape(%t, [4*s0])
  %scaled: f32[s0, 4] = aten::mul.Tensor(%x, %n)
  %range: i64[s0] = aten::arange(%n)
  %flip: f32[s0, 4] = aten::flip(%x, [0])
  %roll: f32[s0, 4] = aten::roll(%x, [1], [0])
  %pad: f32[s0 + 1, 4] = aten::constant_pad_nd(%x, [0, 0, 0, 1], 9)
  %repeat: f32[2*s0, 4] = aten::repeat(%x, [2, 1])
  return (%cat, %rest, %tail, %split, %joined, %scaled, %range, %flip, %roll, %pad, %repeat)
})"));
  run.input<float>(DType::kFloat32, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}).integer(2);
  ASSERT_EQ(run.run(), LITZ_OK) << run.host.message;
  using Floats = std::vector<float>;
  EXPECT_EQ(run.output<float>(0), (Floats{1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(run.output<float>(1), (Floats{5, 6, 7, 8}));
  EXPECT_EQ(run.output<float>(2), (Floats{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(run.output<float>(3), (Floats{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(run.output<float>(4), (Floats{1, 5, 2, 6, 3, 7, 4, 8}));
  EXPECT_EQ(run.output<float>(5), (Floats{2, 4, 6, 8, 10, 12, 14, 16}));
  EXPECT_EQ(run.output<int64_t>(6), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(run.output<float>(7), (Floats{5, 6, 7, 8, 1, 2, 3, 4}));
  EXPECT_EQ(run.output<float>(8), (Floats{5, 6, 7, 8, 1, 2, 3, 4}));
  EXPECT_EQ(run.output<float>(9), (Floats{1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9}));
  EXPECT_EQ(run.output<float>(10), (Floats{1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}));
}

// ---- library calls ----

TEST(Lowering, LibraryOpsAreNoFallbacks) {
  const LoweringResult lowered = lower(R"(graph(%a: f32[2, 3], %b: f32[3, 2]) {
  %mm: f32[2, 2] = aten::mm(%a, %b)
  %relu: f32[2, 2] = aten::relu(%mm)
  return (%relu)
})");
  EXPECT_TRUE(lowered.fallbacks.empty());
  ASSERT_EQ(lowered.program.operations().size(), 2u);
  const auto& mm = std::get<ExternKernel>(lowered.program.operations()[OperationId(0)].v);
  EXPECT_EQ(mm.name, "aten::mm");
  EXPECT_EQ(mm.reason, "");
}

TEST(Lowering, FallbacksNameTheReason) {
  LoweringOptions options;
  options.random_in_kernels = false;
  const LoweringResult lowered = lower(R"(graph(%x: f32[4]) {
  %d:0: f32[4], %d:1: bool[4] = aten::native_dropout(%x, 0.5, true)  # model.py:3 in forward, drop(x)
  return (%d:0)
})",
                                       options);
  ASSERT_EQ(lowered.fallbacks.size(), 1u);
  EXPECT_EQ(lowered.fallbacks[0].op, "aten::native_dropout");
  EXPECT_EQ(lowered.fallbacks[0].reason, "an option asks for eager's random numbers");
  EXPECT_EQ(lowered.fallbacks[0].stack, "model.py:3 in forward, drop(x)");
}

TEST(Lowering, LibraryResultsThatNobodyUsesAreNotAskedFor) {
  LoweringOptions options;
  options.random_in_kernels = false;
  const LoweringResult lowered = lower(R"(graph(%x: f32[4]) {
  %d:0: f32[4], %d:1: bool[4] = aten::native_dropout(%x, 0.5, true)
  return (%d:0)
})",
                                       options);
  const auto& dropout = std::get<ExternKernel>(lowered.program.operations()[OperationId(0)].v);
  ASSERT_EQ(dropout.outputs.size(), 2u);
  EXPECT_TRUE(dropout.outputs[0].valid());
  EXPECT_FALSE(dropout.outputs[1].valid());
  EXPECT_EQ(lowered.program.buffers().size(), 2u);
}

TEST(Lowering, ResultsThatOverlapThemselvesAreTheLibrarys) {
  const LoweringResult lowered = lower(R"(graph(%x: f32[8], %y: f32[4]) {
  %w: f32[3, 4]{2, 1} = aten::as_strided(%x, [3, 4], [2, 1])
  %s: f32[3, 4]{2, 1} = aten::select_scatter(%w, %y, 0, 1)
  %e: f32[3, 4] = aten::exp(%w)
  return (%s, %e)
})");
  ASSERT_EQ(lowered.fallbacks.size(), 1u);
  EXPECT_EQ(lowered.fallbacks[0].op, "aten::select_scatter");
  EXPECT_EQ(lowered.fallbacks[0].reason, "elements of its result may share memory");
}

TEST(Lowering, OtherDTypesGoToTheLibrary) {
  const LoweringResult lowered = lower(R"(graph(%x: c64[4], %y: u16[4]) {
  %a: c64[4] = aten::add.Tensor(%x, %x)
  %b: f32[4] = aten::_to_copy(%y, dtype=f32)
  %c: c64[8] = aten::cat([%a, %x])
  return (%a, %b, %c)
})");
  EXPECT_EQ(lowered.fallbacks.size(), 3u);
}

TEST(Lowering, OptionsAskForTheLibrary) {
  constexpr std::string_view kGraph = R"(graph(%x: f32[4]) {
  %a: f32[4] = aten::add.Tensor(%x, %x)
  %b: f32[4] = aten::relu(%a)
  return (%b)
})";
  LoweringOptions everything;
  everything.fallback_everything = true;
  EXPECT_EQ(lower(kGraph, everything).fallbacks.size(), 2u);
  LoweringOptions one;
  one.fallback_ops = {"aten::relu"};
  const LoweringResult lowered = lower(kGraph, one);
  ASSERT_EQ(lowered.fallbacks.size(), 1u);
  EXPECT_EQ(lowered.fallbacks[0].op, "aten::relu");
}

TEST(Lowering, SumWithZeroIsNotFolded) {
  TestRun run(lower_to_text(R"(graph(%x: f32[1]) {
  %a: f32[1] = aten::add.Tensor(%x, 0)
  return (%a)
})"));
  run.input<float>(DType::kFloat32, {1}, {-0.0f});
  ASSERT_EQ(run.run(), LITZ_OK) << run.host.message;
  EXPECT_FALSE(std::signbit(run.output<float>()[0]));
}

}  // namespace
}  // namespace litz
