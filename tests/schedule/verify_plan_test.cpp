#include "schedule/verify_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan_of.h"
#include "support/error.h"

namespace litz {
namespace {

// Three kernels: a and b live in the workspace, y is the output.
Plan chain() { return plan_of(backward_chain(), apart()); }

Plan row_sums() {
  return plan_of(R"(program() {
  buffer x: f32[8, 8] input 0
  buffer s: f32[8]
  buffer y: f32[8, 8]
  inputs (x = tensor x)
  reduction s[d0 < 8] over [d1 < 8] sum {
    t0 = load x[d0, d1]
    yield t0
  }
)" + binary("y", "d0 < 8, d1 < 8", "add", "x[d0, d1]", "s[d0]") +
                 "  return (tensor y, tensor s)\n}\n");
}

// Whether some fault has this number.
testing::AssertionResult has_fault(const Plan& plan, int number) {
  std::string all;
  const std::string start = "S" + std::to_string(number) + ": ";
  for (const std::string& fault : find_plan_faults(plan)) {
    if (fault.starts_with(start)) return testing::AssertionSuccess();
    all += "\n" + fault;
  }
  return testing::AssertionFailure() << "no fault " << number << " among" << all;
}

TEST(VerifyPlan, WhatTheSchedulerMakesIsValid) {
  EXPECT_TRUE(find_plan_faults(chain()).empty());
  EXPECT_TRUE(find_plan_faults(row_sums()).empty());
}

TEST(VerifyPlan, AnOutputWithoutElementsIsWrittenByNobody) {
  const Plan plan = plan_of(
      program_text("x: f32[0] input; y: f32[0]", unary("y", "d0 < 0", "exp", "x[d0]"), "y"));
  EXPECT_TRUE(plan.steps.empty());
  EXPECT_TRUE(find_plan_faults(plan).empty());
}

TEST(VerifyPlan, ThrowsWithTheNumber) {
  Plan plan = chain();
  plan.steps.pop_back();
  try {
    verify_plan(plan);
    FAIL() << "it is valid";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("S6: plan: kernel 2 never runs"), std::string::npos);
  }
}

TEST(VerifyPlan, Loops) {
  Plan plan = chain();
  plan.kernels[KernelId(0)].num_stages = 2;
  EXPECT_TRUE(has_fault(plan, 1));
  plan = chain();
  plan.kernels[KernelId(0)].outer.push_back(plan.kernels[KernelId(0)].outer[0]);
  EXPECT_TRUE(has_fault(plan, 1));
}

TEST(VerifyPlan, Coordinates) {
  Plan plan = chain();
  IndexContext& context = plan.program->indices();
  plan.kernels[KernelId(0)].stores[0].offset = context.variable(5, context.constant(64));
  EXPECT_TRUE(has_fault(plan, 2));
}

TEST(VerifyPlan, Stages) {
  Plan plan = row_sums();
  Kernel& kernel = plan.kernels[KernelId(0)];
  for (KernelStore& store : kernel.stores) {
    if (store.inner) store.stage = 0;
  }
  EXPECT_TRUE(has_fault(plan, 3));
  plan = row_sums();
  for (KernelStore& store : plan.kernels[KernelId(0)].stores) store.inner = false;
  EXPECT_TRUE(has_fault(plan, 3));
}

TEST(VerifyPlan, ReductionsOverTheOuterLoops) {
  // The sum of each column, which nobody but a store after the loops uses.
  const auto joined = [] {
    Plan plan = row_sums();
    Kernel& kernel = plan.kernels[KernelId(0)];
    ExprContext& exprs = plan.program->exprs();
    KernelReduction sum = kernel.reductions[0];
    sum.over_outer = true;
    kernel.reductions.push_back(sum);
    for (KernelStore& store : kernel.stores) {
      if (store.inner) continue;
      store.after_outer = true;
      store.offset = kernel.inner[0].variable;
      store.value = exprs.reduced(1, DType::kFloat32);
    }
    return plan;
  };
  EXPECT_TRUE(find_plan_faults(joined()).empty());
  const auto broken = [&](auto change) {
    Plan plan = joined();
    change(plan.kernels[KernelId(0)], plan.program->exprs());
    return has_fault(plan, 3);
  };
  const auto last = [](Kernel& kernel) -> KernelStore& {
    return *std::find_if(kernel.stores.begin(), kernel.stores.end(),
                         [](const KernelStore& s) { return s.after_outer; });
  };
  EXPECT_TRUE(
      broken([](Kernel& k, ExprContext&) { k.reductions[1].kind = ReductionKind::kArgMax; }));
  EXPECT_TRUE(broken([](Kernel& k, ExprContext&) { k.reductions[1].running = true; }));
  EXPECT_TRUE(broken([&](Kernel& k, ExprContext&) { last(k).inner = true; }));
  EXPECT_TRUE(broken([&](Kernel& k, ExprContext&) { last(k).after_outer = false; }));
  EXPECT_TRUE(broken([&](Kernel& k, ExprContext&) { last(k).offset = k.outer[0].variable; }));
  EXPECT_TRUE(broken(
      [&](Kernel& k, ExprContext& exprs) { last(k).value = exprs.reduced(0, DType::kFloat32); }));
  EXPECT_TRUE(broken([&](Kernel& k, ExprContext& exprs) {
    last(k).value = exprs.cast(exprs.index_value(k.outer[0].variable), DType::kFloat32);
  }));
  EXPECT_TRUE(broken([&](Kernel& k, ExprContext& exprs) {
    for (KernelStore& s : k.stores) {
      if (s.inner) s.value = exprs.reduced(1, DType::kFloat32);
    }
  }));
}

TEST(VerifyPlan, StoredDtypesAndModes) {
  Plan plan = chain();
  KernelStore& store = plan.kernels[KernelId(0)].stores[0];
  store.value = plan.program->exprs().cast(store.value, DType::kFloat64);
  EXPECT_TRUE(has_fault(plan, 4));
  plan = chain();
  plan.kernels[KernelId(0)].stores[0].mode = StoreMode::kAdd;
  EXPECT_TRUE(has_fault(plan, 4));
}

TEST(VerifyPlan, ReadsAndWrites) {
  Plan plan = chain();
  plan.kernels[KernelId(1)].reads.clear();
  EXPECT_TRUE(has_fault(plan, 5));
}

TEST(VerifyPlan, Steps) {
  Plan plan = chain();
  std::swap(plan.steps[0], plan.steps[1]);
  EXPECT_TRUE(has_fault(plan, 7));
  plan = chain();
  plan.steps.push_back(plan.steps[0]);
  EXPECT_TRUE(has_fault(plan, 6));
}

TEST(VerifyPlan, Storage) {
  Plan plan = chain();
  plan.storage[buffer_named(plan, "b")].kind = Storage::Kind::kNone;
  EXPECT_TRUE(has_fault(plan, 8));
}

TEST(VerifyPlan, SharedBytes) {
  Plan plan = chain();
  // b reads a backwards.
  plan.storage[buffer_named(plan, "b")].offset_bytes =
      plan.storage[buffer_named(plan, "a")].offset_bytes;
  EXPECT_TRUE(has_fault(plan, 9));
  plan = chain();
  plan.storage[buffer_named(plan, "b")].offset_bytes = plan.program->indices().constant(192);
  EXPECT_TRUE(has_fault(plan, 9));
}

TEST(VerifyPlan, TheMemoryOfALibraryCallsResult) {
  const Plan valid = plan_of(R"(program() {
  buffer x: f32[4, 4] input 0
  buffer m: f32[4, 4] extern
  buffer a: f32[4, 4]
  buffer y: f32[4, 4]
  inputs (x = tensor x)
  extern "aten::mm" {
    argument tensor x
    argument tensor x
    result tensor m
  }
)" + unary("a", "d0 < 4, d1 < 4", "exp", "m[d0, d1]") +
                                 unary("y", "d0 < 4, d1 < 4", "sin", "a[-d0 + 3, d1]") +
                                 "  return (tensor y)\n}\n",
                             apart());
  EXPECT_TRUE(find_plan_faults(valid).empty());
  const BufferId m = buffer_named(valid, "m");
  ASSERT_EQ(storage_of(valid, "a").kind, Storage::Kind::kTaken);
  EXPECT_EQ(storage_of(valid, "a").number, m.value);
  EXPECT_EQ(storage_of(valid, "m").last_step, storage_of(valid, "a").last_step);

  Plan plan = valid;
  plan.storage[m].last_step -= 1;
  EXPECT_TRUE(has_fault(plan, 9)) << "released too early";
  plan = valid;
  plan.storage[buffer_named(plan, "a")].number = buffer_named(plan, "x").value;
  EXPECT_TRUE(has_fault(plan, 9)) << "the memory of an input";
  plan = valid;
  plan.storage[buffer_named(plan, "y")] = plan.storage[buffer_named(plan, "a")];
  EXPECT_TRUE(has_fault(plan, 9)) << "y reads a backwards";
}

TEST(VerifyPlan, TheWorkspacesBounds) {
  Plan plan = chain();
  plan.workspace_bytes = plan.program->indices().constant(256);
  EXPECT_TRUE(has_fault(plan, 10));
  plan = chain();
  plan.storage[buffer_named(plan, "b")].offset_bytes = plan.program->indices().constant(260);
  EXPECT_TRUE(has_fault(plan, 10));
}

}  // namespace
}  // namespace litz
