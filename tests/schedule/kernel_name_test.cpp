#include "schedule/kernel_name.h"

#include <gtest/gtest.h>

#include "plan_of.h"

namespace litz {
namespace {

std::vector<std::string> names_of(const Plan& plan) {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < plan.kernels.size(); ++i)
    names.push_back(kernel_name(plan.kernels[KernelId(i)].ops, i));
  return names;
}

TEST(KernelName, OpsComeInOrderAndOnce) {
  const std::vector<KernelOp> ops = {
      {"aten::add"}, {"aten::relu"}, {"aten::add"}, {"aten::_softmax", false}, {"aten::__and__"}};
  EXPECT_EQ(kernel_name(ops, 12), "litz_add_relu_softmax_and_k12");
  EXPECT_EQ(kernel_name({}, 0), "litz_k0");
  const std::vector<KernelOp> strange = {{"mine::Grün-2"}};
  EXPECT_EQ(kernel_name(strange, 0), "litz_gr_n_2_k0");
}

TEST(KernelName, LongOnesKeepWhatIsMoreThanElementwise) {
  std::vector<KernelOp> ops;
  for (const char* name : {"sigmoid", "reciprocal", "bitwise_not", "hardtanh", "sinh"})
    ops.push_back({name});
  ops.push_back({"sum", false});
  EXPECT_EQ(kernel_name(ops, 3), "litz_sigmoid_reciprocal_bitwise_not_sum_k3");
  EXPECT_LE(kernel_name(ops, 99999999).size(), kKernelNameLength);
  const std::vector<KernelOp> endless = {{std::string(200, 'x'), false}, {"add"}};
  EXPECT_EQ(kernel_name(endless, 7).size(), kKernelNameLength);
}

TEST(KernelName, WithoutAGraphScalarOperationsGiveTheName) {
  const std::string text = program_text(
      "x: f32[8, 600] input; e: f32[8, 600]; s: f32[8]; c: f16[8, 600]; t: f32[600, 8]", R"(
  pointwise e[d0 < 8, d1 < 600] {
    t0 = load x[d0, d1]
    t1 = exp t0
    yield t1
  }
  reduction s[d0 < 8] over [d1 < 600] sum {
    t0 = load e[d0, d1]
    yield t0
  }
  pointwise c[d0 < 8, d1 < 600] {
    t0 = load x[d0, d1]
    t1 = cast t0 to f16
    yield t1
  }
  pointwise t[d0 < 600, d1 < 8] {
    t0 = load x[d1, d0]
    yield t0
  }
)",
      "s c t");
  ScheduleOptions options;
  EXPECT_EQ(names_of(plan_of(text, options)),
            (std::vector<std::string>{"litz_exp_sum_cast_k0", "litz_copy_k1"}));
}

}  // namespace
}  // namespace litz
