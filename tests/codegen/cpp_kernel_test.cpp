#include <gtest/gtest.h>

#include "../schedule/plan_of.h"
#include "codegen/cpp/cpp_kernel.h"

namespace litz {
namespace {

// b takes the place of a, which dies with the kernel, and c is made from a: c's value has to be
// computed before b is stored.
TEST(StoreOrder, ValuesAreComputedBeforeAnythingIsStored) {
  ScheduleOptions options;
  options.inline_producers = false;
  const Plan plan = plan_of(R"(program() {
  buffer x: f32[64] input 0
  buffer m: f32[64] extern
  buffer a: f32[64]
  buffer b: f32[64]
  buffer c: f32[64]
  inputs (x = tensor x)
)" + unary("a", "d0 < 64", "exp", "x[-d0 + 63]") +
                                R"(
  extern "aten::sort" {
    argument tensor a
    result tensor m
  }
)" + unary("b", "d0 < 64", "neg", "m[d0]") +
                                binary("c", "d0 < 64", "sub", "m[d0]", "a[d0]") +
                                R"(
  extern "aten::look" {
    argument tensor b
    argument tensor c
    side_effects
  }
  return ()
}
)",
                            options);
  ASSERT_EQ(written_by_step(plan)[2], "b c");
  ASSERT_EQ(storage_of(plan, "b").kind, Storage::Kind::kTaken) << "of m, which c reads, too";
  PreludeTarget target;
  target.avx2 = true;
  target.vector_bytes = 32;
  Prelude prelude(target);
  const std::string text =
      print_cpp_kernel(*plan.program, plan.kernels[KernelId(1)], prelude, target).text;
  const size_t last_load = text.rfind(prelude.load(DType::kFloat32, 8) + "(");
  const size_t first_store = text.find(prelude.store(DType::kFloat32, 8) + "(");
  ASSERT_NE(last_load, text.npos) << text;
  ASSERT_NE(first_store, text.npos) << text;
  EXPECT_LT(last_load, first_store) << text;
}

// A check in front of a loop that may have no iterations asks whether it has any.
TEST(HoistedChecks, AskWhetherTheirLoopRuns) {
  const auto kernel_text = [](const std::string& symbol) {
    const Plan plan = plan_of("program(s0: size[" + symbol + R"(, inf]) {
  buffer x: i64[8, s0] input 0
  buffer b: i64[8] input 1
  buffer y: i64[8]
  inputs (x = tensor x, b = tensor b)
  reduction y[d0 < 8] over [d1 < s0] sum {
    t0 = load x[d0, d1]
    t1 = load b[d0]
    t2 = check_divisor t1
    t3 = floor_div t0, t2
    yield t3
  }
  return (tensor y)
}
)");
    Prelude prelude{PreludeTarget{}};
    return print_cpp_kernel(*plan.program, plan.kernels[KernelId(0)], prelude, PreludeTarget{})
        .text;
  };
  EXPECT_NE(kernel_text("0").find(" == 0 && (n0 > 0)) "), std::string::npos) << kernel_text("0");
  EXPECT_NE(kernel_text("2").find(" == 0) "), std::string::npos) << kernel_text("2");
}

}  // namespace
}  // namespace litz
