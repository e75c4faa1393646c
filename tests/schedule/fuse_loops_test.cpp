#include "schedule/fuse_loops.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan_of.h"

namespace litz {
namespace {

using Steps = std::vector<std::string>;

ScheduleOptions without_inlining() {
  ScheduleOptions options;
  options.inline_producers = false;
  return options;
}

bool says(const Plan& plan, const std::string& reason) {
  return std::any_of(plan.not_fused.begin(), plan.not_fused.end(),
                     [&](const NotFused& pair) { return pair.reason == reason; });
}

std::string row_sum(const std::string& name, const std::string& of) {
  return "  reduction " + name + "[d0 < 64] over [d1 < 32] sum {\n    t0 = load " + of +
         "[d0, d1]\n    yield t0\n  }\n";
}

TEST(FuseLoops, AValueStaysInARegister) {
  const Plan plan = plan_of(
      program_text("x: f32[64] input; a y: f32[64]",
                   unary("a", "d0 < 64", "exp", "x[d0]") + unary("y", "d0 < 64", "sin", "a[d0]"),
                   "y"),
      without_inlining());
  EXPECT_EQ(written_by_step(plan), Steps{"y"});
  EXPECT_EQ(storage_of(plan, "a").kind, Storage::Kind::kNone);
  EXPECT_EQ(plan.kernels[KernelId(0)].bytes_saved.constant(), 2 * 256);
}

TEST(FuseLoops, SoftmaxIsOneKernelOfThreeStages) {
  const Plan plan =
      plan_of(program_text("x: f32[64, 32] input; e: f32[64, 32]; s: f32[64]; y: f32[64, 32]",
                           unary("e", "d0 < 64, d1 < 32", "exp", "x[d0, d1]") + row_sum("s", "e") +
                               binary("y", "d0 < 64, d1 < 32", "div", "e[d0, d1]", "s[d0]"),
                           "y"),
              without_inlining());
  ASSERT_EQ(written_by_step(plan), Steps{"y"});
  EXPECT_EQ(plan.kernels[KernelId(0)].num_stages, 2u);
}

TEST(FuseLoops, SumsOfExponentialsGoAlongWithTheMaximum) {
  const std::string softmax = program_text(
      "x: f32[4, 131072] input; m: f32[4]; e: f32[4, 131072]; s: f32[4]; y: f32[4, 131072]",
      R"(  reduction m[d0 < 4] over [d1 < 131072] max {
    t0 = load x[d0, d1]
    yield t0
  }
  pointwise e[d0 < 4, d1 < 131072] {
    t0 = load x[d0, d1]
    t1 = load m[d0]
    t2 = sub t0, t1
    t3 = exp t2
    yield t3
  }
  reduction s[d0 < 4] over [d1 < 131072] sum {
    t0 = load e[d0, d1]
    yield t0
  }
)" + binary("y", "d0 < 4, d1 < 131072", "div", "e[d0, d1]", "s[d0]"),
      "y");
  ScheduleOptions options;
  options.few_rows = 3;
  EXPECT_EQ(written_by_step(plan_of(softmax, options)), Steps{"y"});
  options.online_sums = true;
  EXPECT_EQ(written_by_step(plan_of(softmax, options)), Steps{"y"});
  options.few_rows = 4;
  EXPECT_EQ(written_by_step(plan_of(softmax, options)), (Steps{"m s", "y"}));
  options.online_sums = false;
  EXPECT_EQ(written_by_step(plan_of(softmax, options)), (Steps{"m", "e s", "y"}));
}

TEST(FuseLoops, ReadersOfTheSameMemoryShareALoop) {
  const std::string buffers = R"(program() {
  buffer x: f32[64] input 0
  buffer w: f32[32] input 1
  buffer y: f32[64]
  buffer z: f32[64]
  buffer v: f32[32]
  inputs (x = tensor x, w = tensor w)
)";
  const Plan plan = plan_of(
      buffers + unary("y", "d0 < 64", "exp", "x[d0]") + unary("z", "d0 < 64", "sin", "x[d0]") +
      unary("v", "d0 < 32", "sin", "w[d0]") + "  return (tensor y, tensor z, tensor v)\n}\n");
  EXPECT_EQ(written_by_step(plan), (Steps{"y z", "v"}));
}

TEST(FuseLoops, OtherLoopsAreAnotherKernel) {
  // Backwards: an element is needed before it is computed.
  const Plan plan = plan_of(program_text("x: f32[64] input; a y: f32[64]",
                                         unary("a", "d0 < 64", "exp", "x[d0]") +
                                             binary("y", "d0 < 64", "add", "a[d0]", "a[-d0 + 63]"),
                                         "y"),
                            without_inlining());
  EXPECT_EQ(written_by_step(plan), (Steps{"a", "y"}));
  EXPECT_TRUE(says(plan, "it reads a value at another position than it is computed at"));
}

TEST(FuseLoops, AReshapeFuses) {
  const Plan plan = plan_of(program_text("x: f32[64] input; a: f32[64]; y: f32[8, 8]",
                                         unary("a", "d0 < 64", "exp", "x[d0]") +
                                             unary("y", "d0 < 8, d1 < 8", "sin", "a[8*d0 + d1]"),
                                         "y"),
                            without_inlining());
  EXPECT_EQ(written_by_step(plan), Steps{"y"});
}

TEST(FuseLoops, KernelsStopGrowing) {
  std::string text = "program() {\n  buffer v0: f32[64] input 0\n";
  for (int i = 1; i <= 12; ++i) text += "  buffer v" + std::to_string(i) + ": f32[64]\n";
  text += "  inputs (v0 = tensor v0)\n";
  for (int i = 1; i <= 12; ++i) {
    text += unary("v" + std::to_string(i), "d0 < 64", i % 2 == 0 ? "exp" : "sin",
                  "v" + std::to_string(i - 1) + "[d0]");
  }
  text += "  return (tensor v12)\n}\n";
  ScheduleOptions options = without_inlining();
  EXPECT_EQ(plan_of(text, options).kernels.size(), 1u);
  options.max_kernel_nodes = 4;
  const Plan plan = plan_of(text, options);
  EXPECT_EQ(plan.kernels.size(), 3u);
  EXPECT_TRUE(says(plan, "the kernel is large enough already"));
}

// Every pass over a row does again what the passes before did.
TEST(FuseLoops, RowsAreWalkedABoundedNumberOfTimes) {
  std::string text = "program() {\n  buffer v0: f32[64, 32] input 0\n";
  std::string operations;
  for (int i = 1; i <= 6; ++i) {
    const std::string n = std::to_string(i);
    const std::string before = "v" + std::to_string(i - 1);
    text += "  buffer s" + n + ": f32[64]\n  buffer v" + n + ": f32[64, 32]\n";
    operations += row_sum("s" + n, before) +
                  binary("v" + n, "d0 < 64, d1 < 32", "sub", before + "[d0, d1]", "s" + n + "[d0]");
  }
  text += "  inputs (v0 = tensor v0)\n" + operations + "  return (tensor v6)\n}\n";
  const Plan plan = plan_of(text, without_inlining());
  EXPECT_EQ(plan.kernels.size(), 2u);
  for (const Kernel& kernel : plan.kernels) EXPECT_LE(kernel.num_stages, 5u);
  EXPECT_TRUE(says(plan, "the rows are walked often enough already"));
}

// y = x / sum(x) along rows.
Plan plan_of_rows(int64_t rows, int64_t length) {
  const std::string r = std::to_string(rows);
  const std::string n = std::to_string(length);
  return plan_of("program() {\n  buffer x: f32[" + r + ", " + n + "] input 0\n  buffer s: f32[" +
                 r + "]\n  buffer y: f32[" + r + ", " + n + "]\n  inputs (x = tensor x)\n" +
                 "  reduction s[d0 < " + r + "] over [d1 < " + n +
                 "] sum {\n    t0 = load x[d0, d1]\n    yield t0\n  }\n" +
                 binary("y", "d0 < " + r + ", d1 < " + n, "div", "x[d0, d1]", "s[d0]") +
                 "  return (tensor y)\n}\n");
}

TEST(FuseLoops, LongRowsAreNotWalkedTwice) {
  const Plan plan = plan_of_rows(1000, 1048576);
  EXPECT_EQ(written_by_step(plan), (Steps{"s", "y"}));
  EXPECT_TRUE(says(plan, "the rows are too long to be walked twice"));
}

// Nobody else could help with the second walk.
TEST(FuseLoops, FewLongRowsAreWalkedOnceByAKernel) {
  EXPECT_EQ(plan_of_rows(4, 65536).kernels.size(), 2u);
  EXPECT_EQ(plan_of_rows(5, 65536).kernels.size(), 1u);
  EXPECT_EQ(plan_of_rows(4, 65535).kernels.size(), 1u);
}

// c reads a, and m, which is made from a: in a's kernel it would wait for itself.
TEST(FuseLoops, NoCircles) {
  const Plan plan =
      plan_of(program_text("x: f32[8, 8] input; a: f32[8, 8]; m: f32[8, 8] extern; c: f32[8, 8]",
                           unary("a", "d0 < 8, d1 < 8", "exp", "x[d0, d1]") +
                               R"(
  extern "aten::mm" {
    argument tensor a
    argument tensor a
    result tensor m
  }
)" + binary("c", "d0 < 8, d1 < 8", "add", "a[d0, d1]", "m[d0, d1]"),
                           "c"),
              without_inlining());
  EXPECT_EQ(written_by_step(plan), (Steps{"a", "aten::mm", "c"}));
  EXPECT_TRUE(says(plan, "another value that it needs is computed later"));
}

// y needs the old x.
TEST(FuseLoops, OverwritingWaitsForTheReaders) {
  const Plan plan = plan_of(program_text(
      "x: f32[64] input; y: f32[64]",
      unary("y", "d0 < 64", "exp", "x[-d0 + 63]") + unary("x", "d0 < 64", "sin", "x[d0]"), "y"));
  EXPECT_EQ(written_by_step(plan), (Steps{"y", "x"}));
}

}  // namespace
}  // namespace litz
