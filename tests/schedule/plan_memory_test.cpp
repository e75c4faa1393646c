#include "schedule/plan_memory.h"

#include <gtest/gtest.h>

#include "plan_of.h"

namespace litz {
namespace {

// A chain in which every value is read backwards, so that none can be written in place.
std::string reversing_chain() {
  return program_text(
      "x: f32[64] input; a b c y: f32[64]",
      unary("a", "d0 < 64", "exp", "x[d0]") + unary("b", "d0 < 64", "sin", "a[-d0 + 63]") +
          unary("c", "d0 < 64", "exp", "b[-d0 + 63]") + unary("y", "d0 < 64", "sin", "c[-d0 + 63]"),
      "y");
}

TEST(PlanMemory, WhatIsReadNoMoreIsReused) {
  const Plan plan = plan_of(reversing_chain(), apart());
  EXPECT_EQ(offset_of(plan, "a"), 0);
  EXPECT_EQ(offset_of(plan, "b"), 256) << "a is still read while b is written";
  EXPECT_EQ(offset_of(plan, "c"), 0);
  EXPECT_EQ(plan.workspace_bytes.constant(), 512);
  EXPECT_EQ(storage_of(plan, "y").kind, Storage::Kind::kOutput);
}

TEST(PlanMemory, ReuseCanBeSwitchedOff) {
  ScheduleOptions options = apart();
  options.reuse_memory = false;
  const Plan plan = plan_of(reversing_chain(), options);
  EXPECT_EQ(plan.workspace_bytes.constant(), 768);
}

TEST(PlanMemory, AnElementIsWrittenOverTheOneItIsMadeFrom) {
  const Plan plan = plan_of(
      program_text("x: f32[64] input; a b y: f32[64]",
                   unary("a", "d0 < 64", "exp", "x[d0]") + unary("b", "d0 < 64", "sin", "a[d0]") +
                       unary("y", "d0 < 64", "sin", "b[d0]"),
                   "y"),
      apart());
  EXPECT_EQ(offset_of(plan, "a"), 0);
  EXPECT_EQ(offset_of(plan, "b"), 0);
  EXPECT_EQ(plan.workspace_bytes.constant(), 256);
}

// Two results of one kernel from two dying operands: each takes the place of one.
TEST(PlanMemory, ResultsTakeTheirOperandsPlaces) {
  ScheduleOptions options;
  options.inline_producers = false;
  const Plan plan = plan_of(R"(program() {
  buffer x: f32[64] input 0
  buffer m: f32[64] extern
  buffer a: f32[64]
  buffer b: f32[64]
  buffer c: f32[64]
  buffer y: f32[64]
  buffer z: f32[64]
  inputs (x = tensor x)
)" + unary("a", "d0 < 64", "exp", "x[-d0 + 63]") +
                                R"(
  extern "aten::sort" {
    argument tensor a
    result tensor m
  }
)" + binary("b", "d0 < 64", "add", "a[d0]", "m[d0]") +
                                binary("c", "d0 < 64", "sub", "a[d0]", "m[d0]") +
                                R"(
  extern "aten::first" {
    argument tensor b
    argument tensor c
    side_effects
  }
  return ()
}
)",
                            options);
  EXPECT_EQ(written_by_step(plan),
            (std::vector<std::string>{"a", "aten::sort", "b c", "aten::first"}));
  EXPECT_EQ(offset_of(plan, "b"), offset_of(plan, "a"));
  EXPECT_EQ(storage_of(plan, "c").kind, Storage::Kind::kTaken) << "of what the library returned";
  EXPECT_EQ(plan.workspace_bytes.constant(), 256);
}

TEST(PlanMemory, WhatALibraryOpMayShareIsNobodysToTake) {
  // The op may return its argument, or what it keeps.
  const Plan plan = plan_of(program_text("x: f32[64] input; m: f32[64] extern; a b y: f32[64]",
                                         unary("a", "d0 < 64", "exp", "x[d0]") + R"(
  extern "mine::first" {
    argument tensor a
    result tensor m
    results_may_alias
    side_effects
  }
)" + unary("b", "d0 < 64", "sin", "a[d0]") + binary("y", "d0 < 64", "add", "m[d0]", "b[-d0 + 63]"),
                                         "y"),
                            apart());
  EXPECT_EQ(storage_of(plan, "b").kind, Storage::Kind::kWorkspace);
  EXPECT_NE(offset_of(plan, "b"), offset_of(plan, "a"));
}

TEST(PlanMemory, WhatIsReadElsewhereOrLaterIsNoDonor) {
  // b reads a at its own element and at another; c reads a later.
  const Plan plan = plan_of(program_text("x: f32[64] input; a b y: f32[64]",
                                         unary("a", "d0 < 64", "exp", "x[d0]") +
                                             binary("b", "d0 < 64", "add", "a[d0]", "a[-d0 + 63]") +
                                             unary("y", "d0 < 64", "sin", "b[-d0 + 63]"),
                                         "y"),
                            apart());
  EXPECT_NE(offset_of(plan, "b"), offset_of(plan, "a"));
  const Plan later = plan_of(
      program_text("x: f32[64] input; a b y: f32[64]",
                   unary("a", "d0 < 64", "exp", "x[d0]") + unary("b", "d0 < 64", "sin", "a[d0]") +
                       binary("y", "d0 < 64", "add", "a[d0]", "b[d0]"),
                   "y"),
      apart());
  EXPECT_NE(offset_of(later, "b"), offset_of(later, "a"));
}

TEST(PlanMemory, ARowsResultDoesNotOverwriteWhatALaterStageReads) {
  const Plan plan =
      plan_of(program_text("x: f32[8, 8] input; a: f32[8, 8]; s: f32[8]; b y: f32[8, 8]",
                           unary("a", "d0 < 8, d1 < 8", "exp", "x[-d0 + 7, d1]") +
                               R"(
  extern "aten::look" {
    argument tensor a
    side_effects
  }
  reduction s[d0 < 8] over [d1 < 8] sum {
    t0 = load a[d0, d1]
    yield t0
  }
)" + binary("b", "d0 < 8, d1 < 8", "add", "a[d0, d1]", "s[d0]") +
                               R"(
  extern "aten::look" {
    argument tensor b
    side_effects
  }
)" + unary("y", "d0 < 8, d1 < 8", "exp", "b[-d0 + 7, d1]"),
                           "y"));
  EXPECT_NE(offset_of(plan, "b"), offset_of(plan, "a"));
}

TEST(PlanMemory, FreeNeighboursMerge) {
  const Plan plan = plan_of(
      program_text("x: f32[64] input; a b r: f32[64]; c y: f32[128]",
                   unary("a", "d0 < 64", "exp", "x[d0]") + unary("b", "d0 < 64", "sin", "x[d0]") +
                       binary("r", "d0 < 64", "add", "a[-d0 + 63]", "b[-d0 + 63]") +
                       unary("c", "d0 < 128", "exp", "r[floor_div(d0, 2)]") +
                       unary("y", "d0 < 128", "sin", "c[-d0 + 127]"),
                   "y"),
      apart());
  EXPECT_EQ(offset_of(plan, "r"), 512);
  EXPECT_EQ(offset_of(plan, "c"), 0);
  EXPECT_EQ(plan.workspace_bytes.constant(), 768);
}

TEST(PlanMemory, TheLastBlockGrows) {
  const Plan plan = plan_of(
      program_text("x: f32[64] input; p a o: f32[64]; c y: f32[128]",
                   unary("p", "d0 < 64", "exp", "x[d0]") + unary("a", "d0 < 64", "sin", "x[d0]") +
                       unary("o", "d0 < 64", "exp", "a[-d0 + 63]") +
                       unary("c", "d0 < 128", "exp", "p[floor_div(d0, 2)]") +
                       binary("y", "d0 < 128", "add", "c[-d0 + 127]", "p[floor_div(d0, 2)]"),
                   "y o"),
      apart());
  EXPECT_EQ(offset_of(plan, "a"), 256);
  EXPECT_EQ(offset_of(plan, "c"), 256);
  EXPECT_EQ(plan.workspace_bytes.constant(), 768);
}

TEST(PlanMemory, EqualSymbolicSizesShare) {
  const Plan plan =
      plan_of(R"(program(s0: size[2, inf]) {
  buffer x: f32[s0] input 0
  buffer a: f32[s0]
  buffer b: f32[s0]
  buffer c: f32[s0]
  buffer y: f32[s0]
  inputs (x = tensor x)
)" + unary("a", "d0 < s0", "exp", "x[d0]") +
                  unary("b", "d0 < s0", "sin", "a[s0 - 1 - d0]") +
                  unary("c", "d0 < s0", "exp", "b[s0 - 1 - d0]") +
                  unary("y", "d0 < s0", "sin", "c[s0 - 1 - d0]") + "  return (tensor y)\n}\n",
              apart());
  EXPECT_EQ(storage_of(plan, "c").offset_bytes, storage_of(plan, "a").offset_bytes);
  EXPECT_NE(storage_of(plan, "b").offset_bytes, storage_of(plan, "a").offset_bytes);
}

TEST(PlanMemory, AnUnusedLibraryOpHasNoMemory) {
  const Plan plan = plan_of(R"(program() {
  buffer x: f32[4, 4] input 0
  buffer unused: f32[4, 4] extern
  buffer y: f32[4, 4]
  inputs (x = tensor x)
  extern "aten::mm" {
    argument tensor x
    argument tensor x
    result tensor unused
  }
)" + unary("y", "d0 < 4, d1 < 4", "exp", "x[d0, d1]") +
                            "  return (tensor y)\n}\n");
  EXPECT_EQ(written_by_step(plan), std::vector<std::string>{"y"});
  EXPECT_EQ(storage_of(plan, "unused").kind, Storage::Kind::kNone);
}

}  // namespace
}  // namespace litz
