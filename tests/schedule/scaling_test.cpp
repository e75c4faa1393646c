// Scheduling takes time in proportion to the program.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "ir/parse_program.h"
#include "plan_of.h"

namespace litz {
namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Layers of a residual network of small ops: products, biases, activations, row sums.
std::string layers(int count) {
  std::string buffers = "  buffer v0: f32[32, 32] input 0\n  buffer w: f32[32, 32] input 1\n";
  std::string operations;
  for (int i = 1; i <= count; ++i) {
    const std::string n = std::to_string(i);
    const std::string before = "v" + std::to_string(i - 1);
    buffers += "  buffer m" + n + ": f32[32, 32] extern\n  buffer a" + n +
               ": f32[32, 32]\n  buffer s" + n + ": f32[32]\n  buffer v" + n + ": f32[32, 32]\n";
    operations +=
        "  extern \"aten::mm\" {\n    argument tensor " + before +
        "\n    argument tensor w\n    result tensor m" + n + "\n  }\n" +
        binary("a" + n, "d0 < 32, d1 < 32", "add", "m" + n + "[d0, d1]", before + "[d0, d1]") +
        "  reduction s" + n + "[d0 < 32] over [d1 < 32] sum {\n    t0 = load a" + n +
        "[d0, d1]\n    yield t0\n  }\n" +
        binary("v" + n, "d0 < 32, d1 < 32", "sub", "a" + n + "[d0, d1]", "s" + n + "[d0]");
  }
  return "program() {\n" + buffers + "  inputs (v0 = tensor v0, w = tensor w)\n" + operations +
         "  return (tensor v" + std::to_string(count) + ")\n}\n";
}

// One value with many readers.
std::string readers(int count) {
  std::string buffers = "  buffer x: f32[64] input 0\n  buffer a: f32[64]\n";
  std::string operations = unary("a", "d0 < 64", "lgamma", "x[d0]");
  std::string results;
  for (int i = 0; i < count; ++i) {
    const std::string n = "r" + std::to_string(i);
    buffers += "  buffer " + n + ": f32[64]\n";
    operations += unary(n, "d0 < 64", i % 2 == 0 ? "exp" : "sin", "a[-d0 + 63]");
    results += (i == 0 ? "tensor " : ", tensor ") + n;
  }
  return "program() {\n" + buffers + "  inputs (x = tensor x)\n" + operations + "  return (" +
         results + ")\n}\n";
}

// One library op with many arguments.
std::string arguments(int count) {
  std::string buffers = "  buffer x: f32[64] input 0\n  buffer c: f32[64] extern\n";
  std::string operations;
  std::string list;
  for (int i = 0; i < count; ++i) {
    const std::string n = "r" + std::to_string(i);
    buffers += "  buffer " + n + ": f32[64]\n";
    operations +=
        unary(n, "d0 < 64", "exp", "x[" + std::string(i % 2 == 0 ? "d0" : "-d0 + 63") + "]");
    list += (i == 0 ? "tensor " : ", tensor ") + n;
  }
  return "program() {\n" + buffers + "  inputs (x = tensor x)\n" + operations +
         "  extern \"sum_all\" {\n    argument [" + list +
         "]\n    result tensor c\n  }\n  return (tensor c)\n}\n";
}

double seconds_for(const std::string& text) {
  double best = 1e9;
  for (int round = 0; round < 3; ++round) {
    const auto program = std::make_shared<Program>(parse_program(text));
    const double begin = cpu_seconds();
    ScheduleOptions options;
    options.combined_iterations = 1 << 20;
    schedule_program(program, options);
    best = std::min(best, cpu_seconds() - begin);
  }
  return best;
}

TEST(Scaling, EightTimesTheProgramTakesAboutEightTimesAsLong) {
  for (const auto make : {layers, readers, arguments}) {
    const double small = seconds_for(make(500));
    const double large = seconds_for(make(4000));
    // Quadratic would be 64 times.
    EXPECT_LT(large, 24 * small) << small << " s and " << large << " s";
  }
}

}  // namespace
}  // namespace litz
