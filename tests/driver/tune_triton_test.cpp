// On the fake CUDA driver a kernel takes a microsecond for each of its programs.
#include "driver/tune_triton.h"

#include "fake_cuda_test.h"
#include "plan_of.h"

namespace litz {
namespace {

class TuneTritonTest : public FakeCudaTest {
 protected:
  void SetUp() override {
    FakeCudaTest::SetUp();
    tools_.driver = driver_;
    tools_.arch = "sm_90";
    tools_.seconds = 60;
    tools_.compile = [](const TritonProgram& program) -> Result<std::vector<TritonImage>> {
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
    Result<Tuned> tuned = tune_triton(plan_, program_, images_, tools_);
    log_ = tuned ? tuned->log : "";
    fault_ = tuned ? "" : tuned.reason();
    finished_ = tuned && tuned->is_finished;
  }
  // Of the kernel's only function; 0 where they are known only at run time.
  int64_t programs() const {
    const Index programs = program_.kernels[0].printed.functions[0].programs;
    return programs.is_constant() ? programs.constant() : 0;
  }

  TuningTools tools_;
  Plan plan_;
  TritonProgram program_;
  std::vector<TritonImage> images_;
  int64_t before_ = 0;
  std::string log_;
  std::string fault_;
  bool finished_ = false;
};

const std::string kAbs = program_text("x: f32[4194304] input; y: f32[4194304]",
                                      unary("y", "d0 < 4194304", "abs", "x[d0]"), "y");

TEST_F(TuneTritonTest, TakesTheFastestTile) {
  tune(kAbs);
  EXPECT_EQ(fault_, "");
  EXPECT_TRUE(finished_);
  EXPECT_EQ(programs() * 4, before_) << log_;
  EXPECT_NE(log_.find("k0: "), log_.npos) << log_;
  // The image, the function and the text are those of the tile.
  const std::string& name = program_.functions[0].name;
  EXPECT_TRUE(name.starts_with("k0_")) << name;
  EXPECT_EQ(images_[0].bytes, "image of " + name);
  EXPECT_NE(program_.text().find("def " + name + "("), std::string::npos);
  EXPECT_EQ(program_.text().find("def k0("), std::string::npos);
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
  const Result<Tuned> tuned = tune_triton(plan_, program_, images_, tools_);
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
  tools_.compile = [](const TritonProgram& variants) -> Result<std::vector<TritonImage>> {
    std::vector<TritonImage> images = images_of(variants);
    for (const TritonProgram::Kernel& kernel : variants.kernels) {
      if (kernel.printed.functions[0].programs.constant() < 4194304 / 1024)
        images[kernel.first].bytes.clear();
    }
    return images;
  };
  tune(kAbs);
  EXPECT_EQ(programs(), before_);
  EXPECT_EQ(images_[0].bytes, "image of k0");
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
  tools_.compile = [](const TritonProgram&) -> Result<std::vector<TritonImage>> {
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

}  // namespace
}  // namespace litz
