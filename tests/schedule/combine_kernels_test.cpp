#include "schedule/combine_kernels.h"

#include <gtest/gtest.h>

#include "plan_of.h"
#include "schedule/verify_plan.h"

namespace litz {
namespace {

using Names = std::vector<std::string>;

ScheduleOptions at_once(int64_t iterations = 1000) {
  ScheduleOptions options = apart();
  options.combined_iterations = iterations;
  return options;
}

TEST(CombineKernels, IndependentOnesRunAtOnce) {
  const std::string text = program_text(
      "x: f32[4] input; y: f32[5] input; a: f32[4]; b: f32[5]",
      unary("a", "d0 < 4", "sin", "x[d0]") + unary("b", "d0 < 5", "sin", "y[d0]"), "a b");
  EXPECT_EQ(written_by_step(plan_of(text, at_once())), Names{"a | b"});
  EXPECT_EQ(written_by_step(plan_of(text, apart())), (Names{"a", "b"}));
  // The second one has five iterations.
  EXPECT_EQ(written_by_step(plan_of(text, at_once(4))), (Names{"a", "b"}));
  ScheduleOptions off = at_once();
  off.combine_kernels = false;
  EXPECT_EQ(written_by_step(plan_of(text, off)), (Names{"a", "b"}));
}

TEST(CombineKernels, WhatReadsAResultComesLater) {
  const std::string text = program_text(
      "x: f32[64] input; y: f32[64] input; a b c d: f32[64]",
      unary("a", "d0 < 64", "sin", "x[d0]") + unary("b", "d0 < 64", "sin", "a[-d0 + 63]") +
          unary("c", "d0 < 64", "exp", "y[d0]") + unary("d", "d0 < 64", "exp", "c[-d0 + 63]"),
      "b d");
  EXPECT_EQ(written_by_step(plan_of(text, at_once())), (Names{"a | c", "b | d"}));
}

TEST(CombineKernels, WhatOverwritesAnInputComesLater) {
  const std::string text = program_text("x: f32[64] input; a b: f32[64]",
                                        unary("a", "d0 < 64", "sin", "x[-d0 + 63]") +
                                            unary("b", "d0 < 64", "exp", "x[-d0 + 63]") +
                                            unary("x", "d0 < 64", "cos", "b[d0]"),
                                        "a b");
  EXPECT_EQ(written_by_step(plan_of(text, at_once())), (Names{"a | b", "x"}));
}

TEST(CombineKernels, NothingMovesPastALibraryOp) {
  const std::string text = program_text("x: f32[64] input; m: f32[64] extern; a b c: f32[64]",
                                        unary("a", "d0 < 64", "sin", "x[d0]") +
                                            "  extern \"aten::sort\" {\n    argument tensor x\n"
                                            "    result tensor m\n  }\n" +
                                            unary("b", "d0 < 64", "exp", "x[d0]") +
                                            unary("c", "d0 < 64", "exp", "m[d0]"),
                                        "a b c");
  EXPECT_EQ(written_by_step(plan_of(text, at_once())), (Names{"a", "aten::sort", "c | b"}));
}

// x, then the values named, of 64 elements each, and what they are made of.
Plan plan_of_readers(const std::string& readers, const std::string& results) {
  return plan_of(program_text("x: f32[64] input; m: f32[64] extern; a b c: f32[64]",
                              unary("a", "d0 < 64", "exp", "x[-d0 + 63]") +
                                  "  extern \"aten::sort\" {\n    argument tensor a\n"
                                  "    result tensor m\n  }\n" +
                                  readers +
                                  "  extern \"aten::first\" {\n    argument tensor b\n"
                                  "    argument tensor c\n    side_effects\n  }\n",
                              results),
                 at_once());
}

TEST(CombineKernels, OnlyItsOwnOperandIsOverwritten) {
  // Both read a, which dies: one may be done before the other begins.
  const Plan both = plan_of_readers(
      unary("b", "d0 < 64", "sin", "a[d0]") + unary("c", "d0 < 64", "cos", "a[d0]"), "");
  EXPECT_EQ(written_by_step(both), (Names{"a", "b | c", "aten::first"}));
  EXPECT_NE(offset_of(both, "b"), offset_of(both, "a"));
  EXPECT_NE(offset_of(both, "c"), offset_of(both, "a"));
  EXPECT_NE(offset_of(both, "c"), offset_of(both, "b"));

  Plan one = plan_of_readers(
      unary("b", "d0 < 64", "sin", "a[d0]") + unary("c", "d0 < 64", "cos", "m[d0]"), "");
  EXPECT_EQ(written_by_step(one), (Names{"a", "aten::sort", "c | b", "aten::first"}));
  EXPECT_EQ(offset_of(one, "b"), offset_of(one, "a"));
  EXPECT_NE(offset_of(one, "c"), offset_of(one, "a"));
  EXPECT_TRUE(find_plan_faults(one).empty());
  // The neighbour in place of a.
  std::swap(one.storage[buffer_named(one, "b")], one.storage[buffer_named(one, "c")]);
  ASSERT_FALSE(find_plan_faults(one).empty());
  for (const std::string& fault : find_plan_faults(one)) EXPECT_TRUE(fault.starts_with("S9"));
}

TEST(CombineKernels, TheVerifierFindsWhatDepends) {
  Plan plan = plan_of(
      program_text("x: f32[64] input; a b: f32[64]",
                   unary("a", "d0 < 64", "sin", "x[d0]") + unary("b", "d0 < 64", "sin", "a[d0]"),
                   "a b"),
      apart());
  ASSERT_EQ(plan.steps.size(), 2u);
  plan.steps = {{KernelSet{{KernelId(0), KernelId(1)}}}};
  const std::vector<std::string> faults = find_plan_faults(plan);
  ASSERT_FALSE(faults.empty());
  EXPECT_EQ(faults[0], "S6: step 0: a is read and written at once");
}

}  // namespace
}  // namespace litz
