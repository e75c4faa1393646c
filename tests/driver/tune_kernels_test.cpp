// On the fake CUDA driver a kernel takes a microsecond for each of its programs.
#include "driver/tune_kernels.h"

#include "driver/tunable_cuda.h"
#include "driver/tunable_triton.h"
#include "fake_cuda_test.h"
#include "plan_of.h"

namespace litz {
namespace {

class TuneKernelsTest : public FakeCudaTest {
 protected:
  void SetUp() override {
    FakeCudaTest::SetUp();
    tools_.driver = driver_;
    tools_.arch = "sm_90";
    tools_.seconds = 60;
  }

  void take(Result<Tuned> tuned) {
    log_ = tuned ? tuned->log : "";
    fault_ = tuned ? "" : tuned.reason();
    finished_ = tuned && tuned->is_finished;
    replaced_ = tuned ? tuned->replaced : 0;
  }

  TuningTools tools_;
  Plan plan_;
  std::string log_;
  std::string fault_;
  bool finished_ = false;
  size_t replaced_ = 0;
};

class TuneTritonTest : public TuneKernelsTest {
 protected:
  void SetUp() override {
    TuneKernelsTest::SetUp();
    compile_ = [](const TritonProgram& program) -> Result<std::vector<TritonImage>> {
      return images_of(program);
    };
  }

  static std::vector<TritonImage> images_of(const TritonProgram& program) {
    std::vector<TritonImage> images;
    for (const TritonProgram::Function& f : program.functions)
      images.push_back({"image of " + f.name, 0, f.warps * 32, 2});
    return images;
  }

  // Prints the plan's only kernel and tunes it.
  void tune(const std::string& program) {
    plan_ = plan_of(program);
    Result<TritonProgram> printed = print_triton_program(plan_);
    ASSERT_TRUE(printed) << printed.reason();
    program_ = std::move(*printed);
    ASSERT_EQ(program_.kernels.size(), 1u);
    before_ = programs();
    images_ = images_of(program_);
    take(tune());
  }
  Result<Tuned> tune() {
    TunableTriton kernels(plan_, program_, images_, compile_);
    return tune_kernels(plan_, kernels, tools_);
  }
  // Of the kernel's only function; 0 where they are known only at run time.
  int64_t programs() const {
    const Index programs = program_.kernels[0].printed.functions[0].programs;
    return programs.is_constant() ? programs.constant() : 0;
  }

  CompileTriton compile_;
  TritonProgram program_;
  std::vector<TritonImage> images_;
  int64_t before_ = 0;
};

const std::string kAbs = program_text("x: f32[4194304] input; y: f32[4194304]",
                                      unary("y", "d0 < 4194304", "abs", "x[d0]"), "y");

TEST_F(TuneTritonTest, TakesTheFastestTile) {
  tune(kAbs);
  EXPECT_EQ(fault_, "");
  EXPECT_TRUE(finished_);
  EXPECT_EQ(programs() * 4, before_) << log_;
  EXPECT_TRUE(log_.starts_with("litz_abs_k0: ")) << log_;
  // The image, the function and the text are those of the tile.
  const std::string& name = program_.functions[0].name;
  EXPECT_TRUE(name.starts_with("litz_abs_k0_")) << name;
  EXPECT_EQ(images_[0].bytes, "image of " + name);
  EXPECT_NE(program_.text().find("def " + name + "("), std::string::npos);
  EXPECT_EQ(program_.text().find("def litz_abs_k0("), std::string::npos);
}

// What a call passes is what the kernel takes, whatever its tile.
TEST_F(TuneTritonTest, ArgumentsHaveOneOrder) {
  plan_ = plan_of(
      program_text("x r g: f32[512, 8192] input; h: f32[512, 8192]; m: f32[512]; y: f32[512, 8192]",
                   R"(
  pointwise h[d0 < 512, d1 < 8192] {
    t0 = load x[d0, d1]
    t1 = load r[d0, d1]
    t2 = add t0, t1
    yield t2
  }
  reduction m[d0 < 512] over [d1 < 8192] sum {
    t0 = load h[d0, d1]
    yield t0
  }
  pointwise y[d0 < 512, d1 < 8192] {
    t0 = load h[d0, d1]
    t1 = load m[d0]
    t2 = sub t0, t1
    t3 = load g[d0, d1]
    t4 = mul t2, t3
    yield t4
  }
)",
                   "h y"));
  const Result<TritonProgram> printed = print_triton_program(plan_);
  ASSERT_TRUE(printed) << printed.reason();
  ASSERT_EQ(printed->kernels.size(), 1u);
  const TritonVariants variants = print_triton_variants(plan_, *printed, {0});
  ASSERT_GT(variants.of.size(), 3u);
  for (const TritonProgram::Kernel& variant : variants.program.kernels)
    EXPECT_EQ(variant.printed.buffers, printed->kernels[0].printed.buffers) << variant.printed.tile;
}

// Of a product whose factors two programs share there is a variant with one function instead of
// two.
TEST_F(TuneTritonTest, AVariantMayHaveFewerFunctions) {
  ScheduleOptions options;
  options.matrix_products = true;
  plan_ =
      plan_of(program_text("a: f16[512, 3072] input; b: f16[1024, 3072] input; x: f32[4096] input; "
                           "p: f32[512, 1024]; y: f32[4096]",
                           R"(
  reduction p[d0 < 512, d1 < 1024] over [d2 < 3072] sum product {
    t0 = load a[d0, d2]
    t1 = cast t0 to f32
    t2 = load b[d1, d2]
    t3 = cast t2 to f32
    t4 = mul t1, t3
    yield t4
  }
)" + unary("y", "d0 < 4096", "abs", "x[d0]"),
                           "p y"),
              options);
  Result<TritonProgram> printed = print_triton_program(plan_);
  ASSERT_TRUE(printed) << printed.reason();
  program_ = std::move(*printed);
  ASSERT_EQ(program_.kernels.size(), 2u);
  ASSERT_EQ(program_.functions.size(), 3u) << program_.text();
  images_ = images_of(program_);
  const Result<Tuned> tuned = tune();
  ASSERT_TRUE(tuned) << tuned.reason();
  ASSERT_EQ(program_.functions.size(), 2u) << tuned->log;
  ASSERT_EQ(images_.size(), 2u);
  for (const TritonProgram::Kernel& kernel : program_.kernels) {
    const std::string& name = program_.functions[kernel.first].name;
    EXPECT_EQ(name, kernel.name);
    EXPECT_EQ(images_[kernel.first].bytes, "image of " + name);
  }
}

TEST_F(TuneTritonTest, KeepsTheTileWhereNoneIsFaster) {
  // Those with fewer programs cannot be compiled.
  compile_ = [](const TritonProgram& variants) -> Result<std::vector<TritonImage>> {
    std::vector<TritonImage> images = images_of(variants);
    for (const TritonProgram::Kernel& kernel : variants.kernels) {
      if (kernel.printed.functions[0].programs.constant() < 4194304 / 1024)
        images[kernel.first].bytes.clear();
    }
    return images;
  };
  tune(kAbs);
  EXPECT_EQ(programs(), before_);
  EXPECT_EQ(images_[0].bytes, "image of litz_abs_k0");
  EXPECT_NE(log_.find(": stays"), log_.npos) << log_;
}

TEST_F(TuneTritonTest, StopsWhenTheTimeIsOver) {
  tools_.seconds = 0;
  tune(kAbs);
  EXPECT_EQ(fault_, "");
  EXPECT_FALSE(finished_);
  EXPECT_EQ(programs(), before_);
}

TEST_F(TuneTritonTest, SaysWhatFails) {
  compile_ = [](const TritonProgram&) -> Result<std::vector<TritonImage>> {
    return Unsupported{"Triton's process ended"};
  };
  tune(kAbs);
  EXPECT_EQ(fault_, "Triton's process ended");
  EXPECT_EQ(programs(), before_);

  tools_.device = 0;
  fail("cuMemAlloc", CudaDriver::kOutOfMemory);
  tune(kAbs);
  EXPECT_NE(fault_.find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << fault_;
  EXPECT_EQ(programs(), before_);
}

TEST_F(TuneTritonTest, LeavesKernelsOfUnknownSizesAlone) {
  std::string text =
      program_text("x: f32[s0] input; y: f32[s0]", unary("y", "d0 < s0", "abs", "x[d0]"), "y");
  text.replace(text.find("program()"), 9, "program(s0: size[2, inf])");
  tune(text);
  EXPECT_EQ(fault_, "");
  EXPECT_EQ(log_, "");
}

class TuneCudaTest : public TuneKernelsTest {
 protected:
  void tune(const std::string& program) {
    plan_ = plan_of(program);
    program_ = print_cuda_program(plan_);
    ASSERT_EQ(program_.kernels.size(), 1u);
    before_ = launches();
    TunableCuda kernels(plan_, program_, images_, compile_);
    take(tune_kernels(plan_, kernels, tools_));
  }
  const std::vector<SimtKernel::Launch>& launches() const {
    return program_.kernels[0].printed.launches;
  }
  static int64_t blocks(const std::vector<SimtKernel::Launch>& launches) {
    int64_t total = 0;
    for (const SimtKernel::Launch& launch : launches)
      total += launch.blocks.constant() * launch.splits;
    return total;
  }

  CompileCuda compile_ = [this](SimtProgram& program) {
    variants_ = program.text();
    return std::vector<std::string>(split_cuda_program(program, 3).size(), "an image");
  };
  const std::vector<std::string> images_ = {"an image"};
  SimtProgram program_;
  std::vector<SimtKernel::Launch> before_;
  std::string variants_;
};

TEST_F(TuneCudaTest, TakesTheFastestPlan) {
  tune(kAbs);
  EXPECT_EQ(fault_, "");
  EXPECT_TRUE(finished_);
  EXPECT_EQ(replaced_, 1u);
  EXPECT_TRUE(log_.starts_with("litz_abs_k0: 256 threads, 4 elements at once 4096.00 us; "))
      << log_;
  EXPECT_EQ(blocks(launches()) * 4, blocks(before_)) << log_;
  EXPECT_TRUE(log_.ends_with(": 1024 threads, 4 elements at once\n")) << log_;
  // The name stays; the program has what all plans use.
  EXPECT_EQ(program_.kernels[0].name, "litz_abs_k0");
  EXPECT_NE(program_.text().find("__launch_bounds__(1024) litz_abs_k0("), std::string::npos);
  EXPECT_NE(program_.prelude.text().find("f32x8"), std::string::npos);
  EXPECT_NE(program_.host_text().find("grid, 1024, 0, arguments"), std::string::npos)
      << program_.host_text();
}

TEST_F(TuneCudaTest, KeepsThePlanWhereNoOtherCompiles) {
  const CompileCuda works = compile_;
  compile_ = [&](SimtProgram& program) { return std::vector<std::string>(works(program).size()); };
  tune(kAbs);
  EXPECT_EQ(fault_, "NVRTC compiles none of their variants");
  EXPECT_EQ(blocks(launches()), blocks(before_));
}

// A row that several blocks share has a second function, another plan may have none: what is
// launched and loaded is one list.
TEST_F(TuneCudaTest, RowsThatAreSplitMayBeWhole) {
  tune(program_text("x: f32[65536, 64] input; y: f32[]", R"(
  reduction y[] over [d0 < 65536, d1 < 64] sum {
    t0 = load x[d0, d1]
    yield t0
  }
)",
                    "y"));
  EXPECT_EQ(fault_, "");
  ASSERT_EQ(before_.size(), 2u);
  ASSERT_EQ(launches().size(), 1u) << log_;
  EXPECT_EQ(functions_of(program_).size(), 1u);
  EXPECT_EQ(program_.scratch_bytes(), 0);
  // Not all of them are launched as one function.
  EXPECT_NE(variants_.find("_finish("), std::string::npos);
}

TEST_F(TuneCudaTest, EveryKindOfKernelHasOtherPlans) {
  const std::string rows = R"(
  reduction m[d0 < 4096] over [d1 < 1024] max {
    t0 = load x[d0, d1]
    yield t0
  }
  pointwise y[d0 < 4096, d1 < 1024] {
    t0 = load x[d0, d1]
    t1 = load m[d0]
    t2 = sub t0, t1
    yield t2
  }
)";
  const std::string columns = R"(
  reduction y[d0 < 4096] over [d1 < 1024] sum {
    t0 = load x[d1, d0]
    yield t0
  }
)";
  const std::string turned = R"(
  pointwise y[d0 < 4096, d1 < 4096] {
    t0 = load x[d1, d0]
    t1 = exp t0
    yield t1
  }
)";
  const auto variants_of = [&](const std::string& text) {
    plan_ = plan_of(text);
    program_ = print_cuda_program(plan_);
    std::vector<std::string> tiles;
    for (const SimtProgram::Kernel& kernel :
         print_cuda_variants(plan_, program_, {0}).program.kernels) {
      EXPECT_EQ(kernel.printed.buffers, program_.kernels[0].printed.buffers);
      EXPECT_NE(kernel.printed.device_text, program_.kernels[0].printed.device_text);
      tiles.push_back(kernel.printed.tile);
    }
    return tiles;
  };
  for (const std::vector<std::string>& tiles :
       {variants_of(
            program_text("x: f32[4096, 1024] input; m: f32[4096]; y: f32[4096, 1024]", rows, "y")),
        variants_of(program_text("x: f32[1024, 4096] input; y: f32[4096]", columns, "y")),
        variants_of(program_text("x: f32[4096, 4096] input; y: f32[4096, 4096]", turned, "y"))}) {
    EXPECT_GE(tiles.size(), 3u);
    EXPECT_LE(tiles.size(), 14u);
  }
}

// Two kernels of different sizes, launched together.
Plan combined_plan() {
  ScheduleOptions options;
  options.combined_iterations = int64_t{1} << 20;
  return plan_of(program_text("x: f32[500000] input; y: f32[300000] input; a: f32[500000]; "
                              "b: f32[300000]",
                              unary("a", "d0 < 500000", "sin", "x[d0]") +
                                  unary("b", "d0 < 300000", "abs", "y[d0]"),
                              "a b"),
                 options);
}

TEST_F(TuneCudaTest, SeveralKernelsOfALaunchAreTunedTogether) {
  plan_ = combined_plan();
  program_ = print_cuda_program(plan_);
  ASSERT_EQ(program_.kernels.size(), 1u);
  ASSERT_EQ(program_.kernels[0].runs.size(), 2u);
  before_ = launches();
  const std::vector<BufferId> buffers = program_.kernels[0].printed.buffers;
  TunableCuda kernels(plan_, program_, images_, compile_);
  take(tune_kernels(plan_, kernels, tools_));
  EXPECT_EQ(fault_, "");
  EXPECT_EQ(replaced_, 1u);
  EXPECT_LT(blocks(launches()) * 3, blocks(before_)) << log_;
  EXPECT_EQ(program_.kernels[0].printed.buffers, buffers);
  EXPECT_TRUE(program_.kernels[0].printed.takes_array);
  EXPECT_NE(log_.find("litz_sin_abs_k0: 256 threads"), log_.npos) << log_;
}

TEST_F(TuneTritonTest, SeveralKernelsOfALaunchAreTunedTogether) {
  plan_ = combined_plan();
  Result<TritonProgram> printed = print_triton_program(plan_);
  ASSERT_TRUE(printed) << printed.reason();
  program_ = std::move(*printed);
  ASSERT_EQ(program_.kernels.size(), 1u);
  before_ = programs();
  images_ = images_of(program_);
  take(tune());
  EXPECT_EQ(fault_, "");
  EXPECT_EQ(replaced_, 1u);
  EXPECT_LT(programs() * 3, before_) << log_;
  EXPECT_TRUE(program_.kernels[0].printed.is_combined);
  EXPECT_EQ(program_.calls[1].launched_with, KernelId(0));
}

}  // namespace
}  // namespace litz
