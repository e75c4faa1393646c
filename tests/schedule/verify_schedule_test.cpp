#include "schedule/verify_schedule.h"

#include <gtest/gtest.h>

#include "ir/parse_program.h"
#include "plan_of.h"
#include "support/error.h"

namespace litz {
namespace {

// Three groups in a chain, up to and with the step.
ScheduleState chain_after(std::string_view last) {
  ScheduleState state(std::make_shared<Program>(parse_program(backward_chain())));
  for (const ScheduleStep& step : schedule_steps()) {
    step.run(state, apart());
    if (step.name == last) break;
  }
  return state;
}

testing::AssertionResult has_fault(const ScheduleState& state, int number) {
  std::string all;
  const std::string start = "G" + std::to_string(number) + ": ";
  for (const std::string& fault : find_group_faults(state)) {
    if (fault.starts_with(start)) return testing::AssertionSuccess();
    all += "\n" + fault;
  }
  return testing::AssertionFailure() << "no fault " << number << " among" << all;
}

TEST(VerifySchedule, WhatEachStepMakesIsValid) {
  for (const ScheduleStep& step : schedule_steps()) {
    EXPECT_NO_THROW(verify_schedule(chain_after(step.name))) << step.name;
  }
}

TEST(VerifySchedule, Members) {
  ScheduleState state = chain_after("fuse_loops");
  FusionGroup& first = state.fusion->groups[GroupId(0)];
  first.members.push_back(state.fusion->groups[GroupId(1)].members[0]);
  EXPECT_TRUE(has_fault(state, 1)) << "in two groups";
  first.members.clear();
  EXPECT_TRUE(has_fault(state, 1)) << "in none";
  state = chain_after("fuse_loops");
  state.operations.pop_back();
  EXPECT_TRUE(has_fault(state, 1)) << "not to be done";
}

TEST(VerifySchedule, Buffers) {
  ScheduleState state = chain_after("fuse_loops");
  for (GroupId& group : state.fusion->group_of_buffer) {
    if (group == GroupId(1)) group = GroupId(0);
  }
  EXPECT_TRUE(has_fault(state, 2));
}

TEST(VerifySchedule, Predecessors) {
  ScheduleState state = chain_after("fuse_loops");
  state.fusion->groups[GroupId(2)].predecessors.clear();
  EXPECT_TRUE(has_fault(state, 3)) << "does not wait";
  state = chain_after("fuse_loops");
  state.fusion->groups[GroupId(2)].level = 0;
  EXPECT_TRUE(has_fault(state, 3)) << "not above";
}

TEST(VerifySchedule, Order) {
  ScheduleState state = chain_after("order_groups");
  std::swap(state.order[0], state.order[1]);
  EXPECT_TRUE(has_fault(state, 4)) << "too early";
  state = chain_after("order_groups");
  state.order.push_back(state.order[0]);
  EXPECT_TRUE(has_fault(state, 4)) << "twice";
  state = chain_after("order_groups");
  state.order.pop_back();
  EXPECT_TRUE(has_fault(state, 4)) << "never";
}

TEST(VerifySchedule, ThrowsWithTheNumber) {
  ScheduleState state = chain_after("order_groups");
  state.order.pop_back();
  try {
    verify_schedule(state);
    FAIL() << "it is valid";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("G4: group 2: never runs"), std::string::npos);
  }
}

// Before there is storage, kernels and steps are checked all the same.
TEST(VerifySchedule, KernelsBeforeTheirStorage) {
  ScheduleState state = chain_after("build_kernels");
  std::swap(state.plan->steps[0], state.plan->steps[1]);
  EXPECT_THROW(verify_schedule(state), InternalError);
}

}  // namespace
}  // namespace litz
