#include "codegen/common/kernel_analysis.h"

#include <gtest/gtest.h>

#include "../schedule/plan_of.h"

namespace litz {
namespace {

// One kernel over d0 < 8 and, inside, d1 < 16: s and y of x and w.
Plan softmax_like() {
  return plan_of(R"(program() {
  buffer x: f32[8, 16] input 0
  buffer w: f32[8] input 1
  buffer s: f32[8]
  buffer y: f32[8, 16]
  inputs (x = tensor x, w = tensor w)
  reduction s[d0 < 8] over [d1 < 16] sum {
    t0 = load x[d0, d1]
    t1 = load w[d0]
    t2 = mul t0, t1
    yield t2
  }
)" + binary("y", "d0 < 8, d1 < 16", "div", "x[d0, d1]", "s[d0]") +
                 "  return (tensor y)\n}\n");
}

TEST(KernelAnalysis, ValuesVaryAlongTheLoopsTheyDependOn) {
  const Plan plan = softmax_like();
  const Kernel& kernel = plan.kernels[KernelId(0)];
  KernelAnalysis analysis(kernel);
  ASSERT_EQ(analysis.num_loops(), 2u);
  EXPECT_EQ(analysis.outer_mask(), 1u);
  EXPECT_EQ(analysis.inner_mask(), 2u);
  const Expr product = kernel.reductions[0].value;
  EXPECT_EQ(analysis.depends(product), 3u);
  // The operands: x along both loops, w along the outer one.
  const LoopMask operands =
      analysis.depends(product.operand(0)) ^ analysis.depends(product.operand(1));
  EXPECT_EQ(operands, 2u);
  // A finished reduction exists once in an iteration of the outer loops.
  const Expr reduced = plan.program->exprs().reduced(0, DType::kFloat32);
  EXPECT_EQ(analysis.depends(reduced), 1u | kIterationBit);
  const Expr constant = plan.program->exprs().constant(DType::kFloat32, 2.5);
  EXPECT_EQ(analysis.depends(constant), 0u);
}

TEST(KernelAnalysis, MemoryIsWalked) {
  const Plan plan = softmax_like();
  KernelAnalysis analysis(plan.kernels[KernelId(0)]);
  const Index outer = analysis.variable(0);
  const Index inner = analysis.variable(1);
  using Walk = KernelAnalysis::Walk;
  EXPECT_EQ(analysis.walk(outer * 16 + inner, 1), Walk::kContiguous);
  EXPECT_EQ(analysis.walk(outer * 16 + inner, 0), Walk::kStrided);
  EXPECT_EQ(analysis.walk(outer, 1), Walk::kStill);
  EXPECT_EQ(analysis.walk(inner * -1 + 15, 1), Walk::kStrided);
  EXPECT_EQ(analysis.walk(floor_div(inner, plan.program->indices().constant(2)), 1),
            Walk::kIrregular);
}

TEST(KernelAnalysis, RootsAreThoseOfTheirStage) {
  const Plan plan = softmax_like();
  KernelAnalysis analysis(plan.kernels[KernelId(0)]);
  ASSERT_EQ(analysis.kernel().num_stages, 2u);
  EXPECT_EQ(analysis.stage_roots(0), std::vector<Expr>{analysis.kernel().reductions[0].value});
  EXPECT_EQ(analysis.stage_roots(1), std::vector<Expr>{analysis.kernel().stores[0].value});
  EXPECT_TRUE(analysis.outer_roots().empty()) << "s is read in the kernel alone";
}

TEST(KernelAnalysis, HoistedValuesAreFree) {
  const Plan plan = softmax_like();
  KernelAnalysis analysis(plan.kernels[KernelId(0)]);
  const std::vector<Expr> roots = analysis.stage_roots(0);
  const KernelAnalysis::Work inner = analysis.work(roots, analysis.inner_mask());
  const KernelAnalysis::Work all =
      analysis.work(roots, analysis.inner_mask() | analysis.outer_mask());
  EXPECT_EQ(inner.bytes, 4) << "x, and not w";
  EXPECT_EQ(all.bytes, 8);
  EXPECT_LT(inner.operations, all.operations);
}

}  // namespace
}  // namespace litz
