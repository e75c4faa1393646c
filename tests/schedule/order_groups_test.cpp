#include "schedule/order_groups.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan_of.h"

namespace litz {
namespace {

// Large values, all of which are made before the first one is summed up.
TEST(OrderGroups, WhoReadsAValueLastRunsAtOnce) {
  constexpr int kValues = 8;
  std::string text = "program() {\n  buffer x: f32[1024] input 0\n";
  std::string results;
  for (int i = 0; i < kValues; ++i) {
    const std::string n = std::to_string(i);
    text += "  buffer big" + n + ": f32[1024]\n  buffer sum" + n + ": f32[]\n";
    results += (i == 0 ? "tensor sum" : ", tensor sum") + n;
  }
  text += "  inputs (x = tensor x)\n";
  for (int i = 0; i < kValues; ++i) {
    text += unary("big" + std::to_string(i), "d0 < 1024", i % 2 == 0 ? "exp" : "sin", "x[d0]");
  }
  for (int i = 0; i < kValues; ++i) {
    const std::string n = std::to_string(i);
    text += "  reduction sum" + n + "[] over [d0 < 1024] sum {\n    t0 = load big" + n +
            "[d0]\n    yield t0\n  }\n";
  }
  const Plan plan = plan_of(text + "  return (" + results + ")\n}\n", apart());
  EXPECT_EQ(plan.steps.size(), 2u * kValues);
  EXPECT_EQ(plan.workspace_bytes.constant(), 4096) << "one large value at a time";
}

TEST(OrderGroups, OtherwiseTheProgramsOrderHolds) {
  const Plan plan = plan_of(
      program_text("x: f32[8] input; a b c: f32[8]",
                   unary("a", "d0 < 8", "exp", "x[d0]") + unary("b", "d0 < 8", "sin", "x[d0]") +
                       unary("c", "d0 < 8", "cos", "x[d0]"),
                   "c b a"),
      apart());
  EXPECT_EQ(written_by_step(plan), (std::vector<std::string>{"a", "b", "c"}));
}

// Random numbers are drawn in the program's order, whatever would free memory.
TEST(OrderGroups, LibraryOpsWithEffectsKeepTheirOrder) {
  std::string text = "program() {\n  buffer x: f32[8] input 0\n";
  for (int i = 0; i < 4; ++i) text += "  buffer r" + std::to_string(i) + ": f32[8] extern\n";
  text += "  inputs (x = tensor x)\n";
  for (int i = 0; i < 4; ++i) {
    text += "  extern \"draw" + std::to_string(i) +
            "\" {\n    argument tensor x\n    result tensor r" + std::to_string(i) +
            "\n    side_effects\n  }\n";
  }
  const Plan plan = plan_of(text + "  return (tensor r3, tensor r0)\n}\n");
  EXPECT_EQ(written_by_step(plan), (std::vector<std::string>{"draw0", "draw1", "draw2", "draw3"}));
}

}  // namespace
}  // namespace litz
