#include "codegen/cpp/vector_plan.h"

#include <gtest/gtest.h>

#include "../schedule/plan_of.h"

namespace litz {
namespace {

constexpr int kAvx512Bytes = 64;

VectorPlan vectors_of(const std::string& program, int vector_bytes = kAvx512Bytes) {
  const Plan plan = plan_of(program);
  KernelAnalysis analysis(plan.kernels[KernelId(0)]);
  return plan_vectors(analysis, *plan.program, vector_bytes);
}

std::string elementwise(const std::string& dtype, const std::string& size,
                        const std::string& op = "exp") {
  return "program() {\n  buffer x: " + dtype + "[" + size + "] input 0\n  buffer y: " + dtype +
         "[" + size + "]\n  inputs (x = tensor x)\n" +
         unary("y", size == "1" ? "0 < 1" : "d0 < " + size, op, size == "1" ? "x[0]" : "x[d0]") +
         "  return (tensor y)\n}\n";
}

std::string sums(const std::string& loops, const std::string& over, const std::string& position) {
  return "program() {\n  buffer x: f32[64, 96] input 0\n  buffer s: f32[" + loops +
         "]\n  inputs (x = tensor x)\n  reduction s[d0 < " + loops + "] over [d1 < " + over +
         "] sum {\n    t0 = load x[" + position + "]\n    yield t0\n  }\n  return (tensor s)\n}\n";
}

TEST(VectorPlan, LanesFillARegister) {
  EXPECT_EQ(vectors_of(elementwise("f32", "1000")).lanes, 16);
  EXPECT_EQ(vectors_of(elementwise("f64", "1000")).lanes, 8);
  EXPECT_EQ(vectors_of(elementwise("f32", "1000"), 32).lanes, 8);
  EXPECT_EQ(vectors_of(elementwise("i8", "1000", "neg")).lanes, 64);
}

TEST(VectorPlan, RowsAreSummedAlongTheirElementsAndColumnsSideBySide) {
  const VectorPlan rows = vectors_of(sums("64", "96", "d0, d1"));
  EXPECT_FALSE(rows.outer);
  EXPECT_EQ(rows.loop, 1u);
  const VectorPlan columns = vectors_of(sums("96", "64", "d1, d0"));
  EXPECT_TRUE(columns.outer);
  EXPECT_EQ(columns.loop, 0u);
}

TEST(VectorPlan, ALoopOfOneIterationIsNone) {
  EXPECT_EQ(vectors_of(elementwise("f32", "1")).loop, VectorPlan::kNone);
}

// Each element of a scan needs the one before.
TEST(VectorPlan, AScanIsNotVectorizedAlongItself) {
  const VectorPlan plan = vectors_of(R"(program() {
  buffer x: f32[64, 96] input 0
  buffer y: f32[64, 96]
  inputs (x = tensor x)
  scan y[d0 < 64, d1 < 96] axis 1 sum {
    t0 = load x[d0, d1]
    yield t0
  }
  return (tensor y)
}
)");
  EXPECT_TRUE(plan.loop == VectorPlan::kNone || plan.outer);
}

// Lanes that may hit one element cannot add to it at once.
TEST(VectorPlan, AScatterToRuntimePositionsIsScalar) {
  const Plan plan = plan_of(R"(program() {
  buffer x: f32[64] input 0
  buffer i: i64[64] input 1
  buffer y: f32[8]
  inputs (x = tensor x, i = tensor i)
  scatter y from [d0 < 8] {
    yield 0.0: f32
  } then [d0 < 64] add {
    t0 = load i[d0]
    t1 = check_index t0 < 8
    t2 = load x[d0]
    target [i0] with (i0 < 8 = t1)
    yield t2
  }
  return (tensor y)
}
)");
  ASSERT_EQ(plan.kernels.size(), 2u);
  KernelAnalysis analysis(plan.kernels[KernelId(1)]);
  EXPECT_EQ(plan_vectors(analysis, *plan.program, kAvx512Bytes).loop, VectorPlan::kNone);
}

}  // namespace
}  // namespace litz
