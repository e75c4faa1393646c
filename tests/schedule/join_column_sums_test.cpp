#include "schedule/join_column_sums.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan_of.h"

namespace litz {
namespace {

using Steps = std::vector<std::string>;

ScheduleOptions joining() {
  ScheduleOptions options;
  options.few_rows = 0;
  options.column_sums = {.elements = 4096, .programs = 16, .least_rows = 256};
  return options;
}

std::string sum(const std::string& name, const std::string& loops, const std::string& over,
                const std::string& value) {
  return "  reduction " + name + "[" + loops + "] over [" + over + "] sum {\n" + value + "  }\n";
}

// The square of an element.
std::string square(const std::string& load) {
  return "    t0 = load " + load + "\n    t1 = mul t0, t0\n    yield t1\n";
}

// Rows of x minus their sums, and sums of squares for each column, as many rows as said.
std::string rows_and_columns(int64_t rows, int64_t length,
                             const std::string& column_element = "x[d1, d0]") {
  const std::string r = std::to_string(rows);
  const std::string n = std::to_string(length);
  return program_text(
      "x: f32[" + r + ", " + n + "] input; m: f32[" + r + "]; y: f32[" + r + ", " + n +
          "]; c: f32[" + n + "]",
      sum("m", "d0 < " + r, "d1 < " + n, "    t0 = load x[d0, d1]\n    yield t0\n") +
          binary("y", "d0 < " + r + ", d1 < " + n, "sub", "x[d0, d1]", "m[d0]") +
          sum("c", "d0 < " + n, "d1 < " + r, square(column_element)),
      "y c");
}

TEST(JoinColumnSums, RowsAreReadOnce) {
  const Plan plan = plan_of(rows_and_columns(512, 64), joining());
  ASSERT_EQ(written_by_step(plan), Steps{"y c"});
  const Kernel& kernel = plan.kernels[KernelId(0)];
  ASSERT_EQ(kernel.reductions.size(), 2u);
  EXPECT_FALSE(kernel.reductions[0].over_outer);
  EXPECT_TRUE(kernel.reductions[1].over_outer);
  EXPECT_TRUE(kernel.stores[1].after_outer);
  EXPECT_EQ(kernel.reads, std::vector<BufferId>{buffer_named(plan, "x")});
  // What it saves: m is in registers, x is not read again.
  EXPECT_EQ(kernel.bytes_saved.constant(), 2 * 512 * 4 + 512 * 64 * 4);
}

TEST(JoinColumnSums, OnlyWhereTheDialectHasThemAndTheOptionIsOn) {
  EXPECT_EQ(written_by_step(plan_of(rows_and_columns(512, 64))), (Steps{"y", "c"}));
  ScheduleOptions off = joining();
  off.join_column_sums = false;
  EXPECT_EQ(written_by_step(plan_of(rows_and_columns(512, 64), off)), (Steps{"y", "c"}));
}

TEST(JoinColumnSums, RowsAreManyAndFitRegisters) {
  EXPECT_EQ(plan_of(rows_and_columns(256, 64), joining()).kernels.size(), 1u);
  EXPECT_EQ(plan_of(rows_and_columns(255, 64), joining()).kernels.size(), 2u);
  // With its sum a row is twice as long.
  EXPECT_EQ(plan_of(rows_and_columns(512, 2048), joining()).kernels.size(), 1u);
  EXPECT_EQ(plan_of(rows_and_columns(512, 2049), joining()).kernels.size(), 2u);
}

TEST(JoinColumnSums, PartialSumsAreFewBesideWhatIsSaved) {
  ScheduleOptions options = joining();
  // A row of x is saved for each of 512 rows; a partial sum is written and read by 64 programs.
  options.column_sums.programs = 64;
  EXPECT_EQ(plan_of(rows_and_columns(512, 64), options).kernels.size(), 1u);
  options.column_sums.programs = 65;
  EXPECT_EQ(plan_of(rows_and_columns(512, 64), options).kernels.size(), 2u);
}

TEST(JoinColumnSums, ASymbolicNumberOfRowsIsNotJoined) {
  std::string text = rows_and_columns(512, 64);
  for (size_t at; (at = text.find("512")) != std::string::npos;) text.replace(at, 3, "s0");
  text.replace(text.find("program()"), 9, "program(s0: size[2, inf])");
  EXPECT_EQ(plan_of(text, joining()).kernels.size(), 2u);
}

TEST(JoinColumnSums, OtherElementsAreNotShared) {
  EXPECT_EQ(plan_of(rows_and_columns(512, 64, "x[-d1 + 511, d0]"), joining()).kernels.size(), 2u);
  EXPECT_EQ(plan_of(rows_and_columns(512, 64, "x[d1, -d0 + 63]"), joining()).kernels.size(), 2u);
}

TEST(JoinColumnSums, ValuesOfTheRowsAreAtHand) {
  const std::string buffers = "x: f32[512, 64] input; m: f32[512]; y: f32[512, 64]; c: f32[64]";
  const std::string rows =
      sum("m", "d0 < 512", "d1 < 64", "    t0 = load x[d0, d1]\n    yield t0\n") +
      binary("y", "d0 < 512, d1 < 64", "sub", "x[d0, d1]", "m[d0]");
  const auto columns = [&](const std::string& load) {
    return program_text(buffers, rows + sum("c", "d0 < 64", "d1 < 512", square(load)), "y c");
  };
  const Plan plan = plan_of(columns("y[d1, d0]"), joining());
  ASSERT_EQ(written_by_step(plan), Steps{"y c"});
  EXPECT_EQ(plan.kernels[KernelId(0)].reductions[1].stage, 1u);
  // Another row's value is not.
  EXPECT_EQ(plan_of(columns("y[-d1 + 511, d0]"), joining()).kernels.size(), 2u);
}

// s needs y's columns and z needs s: y's kernel cannot wait for s.
TEST(JoinColumnSums, WhatTheRowsNeedStaysInFront) {
  const std::string text = program_text(
      "x: f32[512, 64] input; c: f32[64]; m: f32[512]; y: f32[512, 64]",
      sum("c", "d0 < 64", "d1 < 512", square("x[d1, d0]")) +
          sum("m", "d0 < 512", "d1 < 64",
              "    t0 = load x[d0, d1]\n    t1 = load c[d1]\n    t2 = mul t0, t1\n    yield t2\n") +
          binary("y", "d0 < 512, d1 < 64", "sub", "x[d0, d1]", "m[d0]"),
      "y");
  EXPECT_EQ(written_by_step(plan_of(text, joining())), (Steps{"c", "y"}));
}

// The step between needs the rows and is needed by the sums.
TEST(JoinColumnSums, NothingLiesBetweenThatNeedsOneAndMakesTheOther) {
  const std::string text =
      R"(program() {
  buffer x: f32[512, 64] input 0
  buffer m: f32[512]
  buffer y: f32[512, 64]
  buffer e: f32[64, 512] extern
  buffer c: f32[64]
  inputs (x = tensor x)
)" + sum("m", "d0 < 512", "d1 < 64", "    t0 = load x[d0, d1]\n    yield t0\n") +
      binary("y", "d0 < 512, d1 < 64", "sub", "x[d0, d1]", "m[d0]") +
      R"(  extern "aten::mm" "out" {
    schema "aten::mm(Tensor self, Tensor mat2) -> Tensor"
    node "mm"
    argument tensor y
    argument tensor y as f32[64, 64] strides [1, 1] offset 0
    result tensor e
  }
)" +
      sum("c", "d0 < 64", "d1 < 512",
          "    t0 = load x[d1, d0]\n    t1 = load e[d0, d1]\n    t2 = mul t0, t1\n    yield t2\n") +
      "  return (tensor y, tensor c)\n}\n";
  EXPECT_EQ(written_by_step(plan_of(text, joining())), (Steps{"y", "aten::mm", "c"}));
}

TEST(JoinColumnSums, WhatNobodyElseReadsIsNotStored) {
  // The sums of squares of y, which is no result.
  const Plan plan = plan_of(
      program_text("x: f32[512, 64] input; m: f32[512]; y z: f32[512, 64]; n: f32[512]; c: f32[64]",
                   sum("m", "d0 < 512", "d1 < 64", "    t0 = load x[d0, d1]\n    yield t0\n") +
                       binary("y", "d0 < 512, d1 < 64", "sub", "x[d0, d1]", "m[d0]") +
                       sum("n", "d0 < 512", "d1 < 64", square("y[d0, d1]")) +
                       sum("c", "d0 < 64", "d1 < 512", square("y[d1, d0]")),
                   "n c"),
      joining());
  ASSERT_EQ(written_by_step(plan), Steps{"n c"});
  EXPECT_EQ(storage_of(plan, "y").kind, Storage::Kind::kNone);
}

}  // namespace
}  // namespace litz
