// Every plan of a kernel's threads that autotuning tries computes what the first one does.
#include <gtest/gtest.h>

#include <cmath>

#include "../schedule/plan_of.h"
#include "codegen/cuda/cuda_artifact.h"
#include "cuda_on_host.h"

namespace litz {
namespace {

using Floats = std::vector<float>;

int64_t elements(const Plan& plan, BufferId id) {
  return storage_elements(*plan.program, plan.program->buffer(id)).constant();
}

// What the kernel leaves in its buffers, of numbers that are no powers of two.
std::vector<Floats> run(const Plan& plan, const SimtProgram& program, size_t kernel,
                        const testing::CudaOnHost& device) {
  const SimtKernel& printed = program.kernels[kernel].printed;
  Floats scratch(static_cast<size_t>(printed.scratch_bytes / 4 + 1), NAN);
  std::vector<Floats> memory;
  std::vector<void*> pointers = {scratch.data()};
  for (BufferId id : printed.buffers) {
    memory.emplace_back(static_cast<size_t>(elements(plan, id)), NAN);
    if (plan.program->buffer(id).kind != BufferKind::kInput) continue;
    for (size_t i = 0; i < memory.back().size(); ++i)
      memory.back()[i] = static_cast<float>((5 * i) % 23) / 7 - 1;
  }
  for (Floats& floats : memory) pointers.push_back(floats.data());
  EXPECT_EQ(device.run(kernel, pointers), "") << printed.tile;
  return memory;
}

void expect_close(const std::vector<Floats>& left, const std::vector<Floats>& right,
                  const std::string& tile) {
  ASSERT_EQ(left.size(), right.size());
  for (size_t buffer = 0; buffer < left.size(); ++buffer) {
    for (size_t i = 0; i < left[buffer].size(); ++i) {
      const float expected = left[buffer][i];
      const float error = std::abs(right[buffer][i] - expected);
      ASSERT_LE(error, 1e-4f * std::max(1.0f, std::abs(expected)))
          << tile << ": buffer " << buffer << ", element " << i;
    }
  }
}

// Tiles of the variants of the plan's only kernel.
std::vector<std::string> check(const std::string& text, const ScheduleOptions& options = {}) {
  const Plan plan = plan_of(text, options);
  const SimtProgram program = print_cuda_program(plan);
  EXPECT_EQ(program.kernels.size(), 1u);
  const std::vector<Floats> expected = run(plan, program, 0, testing::CudaOnHost(program));
  std::vector<std::string> tiles = {program.kernels[0].printed.tile};
  const SimtVariants variants = print_cuda_variants(plan, program, {0});
  const testing::CudaOnHost device(variants.program);
  for (size_t i = 0; i < variants.of.size(); ++i) {
    tiles.push_back(variants.program.kernels[i].printed.tile);
    expect_close(expected, run(plan, variants.program, i, device), tiles.back());
  }
  return tiles;
}

std::string sizes(const std::string& text, const std::string& rows, const std::string& columns) {
  std::string result = text;
  for (const auto& [name, value] : {std::pair("ROWS", rows), {"COLUMNS", columns}}) {
    for (size_t at = result.find(name); at != result.npos; at = result.find(name, at))
      result.replace(at, std::string(name).size(), value);
  }
  return result;
}

std::string softmax(const std::string& rows, const std::string& columns) {
  return sizes(program_text("x: f32[ROWS, COLUMNS] input; m s: f32[ROWS]; e y: f32[ROWS, COLUMNS]",
                            R"(
  reduction m[d0 < ROWS] over [d1 < COLUMNS] max {
    t0 = load x[d0, d1]
    yield t0
  }
  pointwise e[d0 < ROWS, d1 < COLUMNS] {
    t0 = load x[d0, d1]
    t1 = load m[d0]
    t2 = sub t0, t1
    t3 = exp t2
    yield t3
  }
  reduction s[d0 < ROWS] over [d1 < COLUMNS] sum {
    t0 = load e[d0, d1]
    yield t0
  }
  pointwise y[d0 < ROWS, d1 < COLUMNS] {
    t0 = load e[d0, d1]
    t1 = load s[d0]
    t2 = div t0, t1
    yield t2
  }
)",
                            "y"),
               rows, columns);
}

std::string sum(const std::string& rows, const std::string& columns, const std::string& load) {
  return sizes(program_text("x: f32[ROWS, COLUMNS] input; y: f32[ROWS]", R"(
  reduction y[d0 < ROWS] over [d1 < COLUMNS] sum {
    t0 = load )" + load + R"(
    yield t0
  }
)",
                            "y"),
               rows, columns);
}

TEST(SimtVariants, Elements) {
  EXPECT_GE(check(program_text("x: f32[5003] input; y: f32[5003]",
                               unary("y", "d0 < 5003", "abs", "x[d0]"), "y"))
                .size(),
            8u);
  check(program_text("x: f32[24, 13, 8] input; y: f32[24, 8]",
                     unary("y", "d0 < 24, d1 < 8", "neg", "x[d0, 5, d1]"), "y"));
}

TEST(SimtVariants, Turned) {
  const std::vector<std::string> tiles =
      check(program_text("x: f32[70, 50] input; y: f32[50, 70]",
                         unary("y", "d0 < 50, d1 < 70", "neg", "x[d1, d0]"), "y"));
  EXPECT_GE(tiles.size(), 3u);
  EXPECT_NE(tiles[1].find("turned"), std::string::npos) << tiles[1];
}

TEST(SimtVariants, Rows) {
  for (const auto& [rows, columns] : {std::pair("300", "12"),
                                      {"37", "60"},
                                      {"40", "1000"},
                                      {"5", "4096"},
                                      {"70", "2048"},
                                      {"3", "5001"}}) {
    EXPECT_GE(check(softmax(rows, columns)).size(), 3u) << columns;
    check(sum(rows, columns, "x[d0, d1]"));
  }
}

TEST(SimtVariants, RowsThatAreShared) {
  std::string tiles;
  for (const std::string& tile : check(sum("2", "70000", "x[d0, d1]"))) tiles += tile + "\n";
  EXPECT_NE(tiles.find("parts"), std::string::npos) << tiles;
}

TEST(SimtVariants, Columns) {
  std::string text = sum("130", "300", "x[d1, d0]");
  text.replace(text.find("f32[130, 300]"), 13, "f32[300, 130]");
  const std::vector<std::string> tiles = check(text);
  EXPECT_GE(tiles.size(), 5u);
  EXPECT_NE(tiles[0].find("columns"), std::string::npos) << tiles[0];
}

TEST(SimtVariants, SeveralKernelsOfALaunch) {
  ScheduleOptions options;
  options.combined_iterations = int64_t{1} << 20;
  const std::string text = program_text(
      "x: f32[5003] input; y: f32[60, 500] input; a: f32[5003]; b: f32[60]",
      unary("a", "d0 < 5003", "neg", "x[d0]") +
          "  reduction b[d0 < 60] over [d1 < 500] sum {\n    t0 = load y[d0, d1]\n    yield t0\n  "
          "}\n",
      "a b");
  EXPECT_GE(check(text, options).size(), 3u);
}

TEST(SimtVariants, SumsOfColumnsOnTheWay) {
  ScheduleOptions options;
  options.few_rows = 0;
  options.column_sums = {.elements = 4096, .programs = 16, .least_rows = 256};
  for (const char* columns : {"256", "65"}) {
    const std::vector<std::string> tiles = check(
        sizes(program_text("x: f32[ROWS, COLUMNS] input; m: f32[ROWS]; y: f32[ROWS, COLUMNS]; "
                           "c: f32[COLUMNS]",
                           R"(
  reduction m[d0 < ROWS] over [d1 < COLUMNS] sum {
    t0 = load x[d0, d1]
    yield t0
  }
)" + binary("y", "d0 < ROWS, d1 < COLUMNS", "sub", "x[d0, d1]", "m[d0]") +
                               R"(
  reduction c[d0 < COLUMNS] over [d1 < ROWS] sum {
    t0 = load x[d1, d0]
    t1 = mul t0, t0
    yield t1
  }
)",
                           "y c"),
              "2100", columns),
        options);
    EXPECT_GE(tiles.size(), 3u);
    EXPECT_NE(tiles[0].find("rows a block"), std::string::npos) << tiles[0];
  }
}

}  // namespace
}  // namespace litz
