// What reductions, normalizations, indexing and pools lower to: the operations that the scheduler
// gets to see, what is refused, and which indices are errors. Their values are checked against
// eager in cases_test.cpp.
#include <gtest/gtest.h>

#include "../ir/test_host.h"
#include "graph/parse_graph.h"
#include "ir/print_program.h"
#include "ir/verify_program.h"
#include "lowering/lowering.h"

namespace litz {
namespace {

LoweringResult lower(std::string_view text) {
  LoweringResult result = lower_graph(parse_graph(text), {});
  verify_program(result.program);
  return result;
}

// "reduction max", "pointwise", "scatter add", "scan sum", "library", in order.
std::vector<std::string> operations_of(const Program& program) {
  struct Name {
    std::string operator()(const Pointwise&) const { return "pointwise"; }
    std::string operator()(const Reduction& r) const {
      return "reduction " + std::string(to_string(r.kind));
    }
    std::string operator()(const Scan& s) const { return "scan " + std::string(to_string(s.kind)); }
    std::string operator()(const Scatter& s) const {
      return "scatter " + std::string(to_string(s.mode));
    }
    std::string operator()(const Attention&) const { return "attention"; }
    std::string operator()(const ExternKernel&) const { return "library"; }
  };
  std::vector<std::string> names;
  for (const Operation& operation : program.operations())
    names.push_back(std::visit(Name{}, operation.v));
  return names;
}

using Names = std::vector<std::string>;

Names operations_of(std::string_view text) { return operations_of(lower(text).program); }

// The reason why the only op of the graph stays a library call.
std::string refusal(std::string_view text) {
  const LoweringResult result = lower(text);
  return result.fallbacks.size() == 1 ? result.fallbacks[0].reason : "no refusal";
}

TEST(ReductionStructure, SumIsOneReductionInTheResultDtype) {
  EXPECT_EQ(operations_of("graph(%x: f32[4, 5]) { %s: f32[4] = aten::sum.dim_IntList(%x, [1]) "
                          "return (%s) }"),
            Names{"reduction sum"});
  const LoweringResult ints = lower(
      "graph(%x: i32[4, 5]) { %s: i64[4, 1] = aten::sum.dim_IntList(%x, [-1], true) return (%s) }");
  const auto& reduction = std::get<Reduction>(ints.program.operations()[OperationId(0)].v);
  EXPECT_EQ(reduction.value.dtype(), DType::kInt64);
}

TEST(ReductionStructure, HalvesAddUpInFloat32AndAreRoundedOnce) {
  const LoweringResult result =
      lower("graph(%x: bf16[4, 5]) { %s: bf16[4] = aten::sum.dim_IntList(%x, [1]) return (%s) }");
  EXPECT_EQ(operations_of(result.program), (Names{"reduction sum", "pointwise"}));
  const auto& reduction = std::get<Reduction>(result.program.operations()[OperationId(0)].v);
  EXPECT_EQ(reduction.value.dtype(), DType::kFloat32);
}

TEST(ReductionStructure, NoMaximumOfNothing) {
  EXPECT_EQ(refusal("graph(%x: f32[0, 5]) { %m: f32[5] = aten::amax(%x, [0]) return (%m) }"),
            "it reduces over no element, which is an error in eager");
}

TEST(ReductionStructure, SymbolicMeanDividesByTheSize) {
  const LoweringResult result = lower(
      "graph(s0: int[2, inf], %x: f32[s0, 3]) { %m: f32[3] = aten::mean.dim(%x, [0]) return (%m) "
      "}");
  EXPECT_NE(to_string(result.program).find("index s0"), std::string::npos);
}

TEST(NormalizationStructure, SoftmaxTakesTheExponentialOnce) {
  EXPECT_EQ(operations_of("graph(%x: f32[4, 5]) { %y: f32[4, 5] = aten::_softmax(%x, -1, false) "
                          "return (%y) }"),
            (Names{"reduction max", "pointwise", "reduction sum", "pointwise"}));
}

TEST(NormalizationStructure, LayerNormTakesTwoPasses) {
  EXPECT_EQ(operations_of("graph(%x: f32[4, 5], %w: f32[5]) { %n:0: f32[4, 5], %n:1: f32[4, 1], "
                          "%n:2: f32[4, 1] = aten::native_layer_norm(%x, [5], %w, none, 1e-05) "
                          "return (%n:0) }"),
            (Names{"reduction sum", "reduction sum", "pointwise", "pointwise", "pointwise"}));
}

TEST(NormalizationStructure, BatchNormThatWritesItsStatisticsIsRefused) {
  EXPECT_EQ(refusal("graph(%x: f32[4, 5], %m: f32[5], %v: f32[5]) { %n:0: f32[4, 5], %n:1: f32[5], "
                    "%n:2: f32[5] = aten::native_batch_norm(%x, none, none, %m, %v, true, 0.1, "
                    "1e-05) return (%n:0) }"),
            "it updates running statistics in place");
}

TEST(IndexingStructure, EmbeddingGradientIsAScatter) {
  EXPECT_EQ(operations_of("graph(%g: f32[3, 4], %i: i64[3]) { %w: f32[9, 4] = "
                          "aten::embedding_dense_backward(%g, %i, 9, -1, false) return (%w) }"),
            Names{"scatter add"});
}

TEST(IndexingStructure, AMaskWithOneValueIsPointwise) {
  EXPECT_EQ(operations_of("graph(%x: f32[3, 4], %m: bool[3], %v: f32[]) { %y: f32[3, 4] = "
                          "aten::index_put(%x, [%m], %v) return (%y) }"),
            Names{"pointwise"});
  EXPECT_EQ(refusal("graph(%x: f32[3, 4], %m: bool[3], %v: f32[2, 4]) { %y: f32[3, 4] = "
                    "aten::index_put(%x, [%m], %v) return (%y) }"),
            "a mask chooses among several values");
}

TEST(PoolingStructure, WindowsInsideTheInputAreNotMasked) {
  const LoweringResult result = lower(
      "graph(%x: f32[2, 3, 8, 8]) { %y: f32[2, 3, 4, 4] = aten::avg_pool2d(%x, [2, 2]) return (%y) "
      "}");
  EXPECT_EQ(operations_of(result.program), Names{"pointwise"});
  EXPECT_EQ(to_string(result.program).find("masked"), std::string::npos);
}

TEST(PoolingStructure, LargeWindowsAreReductions) {
  EXPECT_EQ(operations_of("graph(%x: f32[2, 3, 7, 7]) { %y: f32[2, 3, 1, 1] = "
                          "aten::_adaptive_avg_pool2d(%x, [1, 1]) return (%y) }"),
            (Names{"reduction sum", "pointwise"}));
}

// ---- checks of indices ----

// The status of a run with `x` = 0, 1, 2, ... of sizes [3, 2] and one index.
int status_with_index(std::string_view body, int64_t index) {
  const LoweringResult result =
      lower("graph(%x: f32[3, 2], %i: i64[1]) {" + std::string(body) + "}");
  EXPECT_TRUE(result.fallbacks.empty());
  TestRun run(to_string(result.program));
  run.input<float>(DType::kFloat32, {3, 2}, {0, 1, 2, 3, 4, 5});
  run.input<int64_t>(DType::kInt64, {1}, {index});
  return run.run();
}

TEST(IndexChecks, EmbeddingAndIndexSelectRefuseNegativeIndices) {
  for (const char* body : {"%y: f32[1, 2] = aten::embedding(%x, %i) return (%y)",
                           "%y: f32[1, 2] = aten::index_select(%x, 0, %i) return (%y)"}) {
    EXPECT_EQ(status_with_index(body, 2), LITZ_OK);
    EXPECT_EQ(status_with_index(body, 3), LITZ_INDEX_OUT_OF_RANGE);
    EXPECT_EQ(status_with_index(body, -1), LITZ_INDEX_OUT_OF_RANGE);
  }
}

TEST(IndexChecks, IndexAndIndexFillCountFromTheEnd) {
  for (const char* body :
       {"%y: f32[1, 2] = aten::index.Tensor(%x, [%i]) return (%y)",
        "%y: f32[3, 2] = aten::index_fill.int_Scalar(%x, 0, %i, 7) return (%y)"}) {
    EXPECT_EQ(status_with_index(body, -3), LITZ_OK);
    EXPECT_EQ(status_with_index(body, -4), LITZ_INDEX_OUT_OF_RANGE);
    EXPECT_EQ(status_with_index(body, 3), LITZ_INDEX_OUT_OF_RANGE);
  }
}

TEST(IndexChecks, AnUnusedLookUpStillFails) {
  EXPECT_EQ(status_with_index("%y: f32[1, 2] = aten::embedding(%x, %i) %z: f32[1, 2] = "
                              "aten::mul.Tensor(%y, 0) return (%z)",
                              3),
            LITZ_INDEX_OUT_OF_RANGE);
}

}  // namespace
}  // namespace litz
