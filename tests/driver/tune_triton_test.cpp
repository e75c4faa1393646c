// On the fake CUDA driver a kernel takes a microsecond for each of its programs.
#include "driver/tune_triton.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "plan_of.h"

namespace litz {
namespace {

class TuneTritonTest : public ::testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(LITZ_TEST_FAKE_CUDA, RTLD_NOW);
    ASSERT_NE(library_, nullptr) << dlerror();
    function<void()>("fake_cuda_reset")();
    Result<std::shared_ptr<const CudaDriver>> opened = CudaDriver::open(LITZ_TEST_FAKE_CUDA);
    ASSERT_TRUE(opened) << opened.reason();
    tools_.driver = *opened;
    tools_.arch = "sm_90";
    tools_.deadline = deadline_after(0);
    tools_.compile = [this](const TritonProgram& program) -> Result<std::vector<TritonImage>> {
      return images_of(program);
    };
  }
  void TearDown() override { dlclose(library_); }

  template <class F>
  F* function(const char* name) const {
    return reinterpret_cast<F*>(dlsym(library_, name));
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
    Result<std::string> log = tune_triton(plan_, program_, images_, tools_);
    log_ = log ? *log : "";
    fault_ = log ? "" : log.reason();
  }
  // Of the kernel's only function; 0 where they are known only at run time.
  int64_t programs() const {
    const Index programs = program_.kernels[0].printed.functions[0].programs;
    return programs.is_constant() ? programs.constant() : 0;
  }

  void* library_ = nullptr;
  TuningTools tools_;
  Plan plan_;
  TritonProgram program_;
  std::vector<TritonImage> images_;
  int64_t before_ = 0;
  std::string log_;
  std::string fault_;
};

const std::string kAbs = program_text("x: f32[4194304] input; y: f32[4194304]",
                                      unary("y", "d0 < 4194304", "abs", "x[d0]"), "y");

TEST_F(TuneTritonTest, TakesTheFastestTile) {
  tune(kAbs);
  EXPECT_EQ(fault_, "");
  EXPECT_EQ(programs() * 4, before_) << log_;
  EXPECT_NE(log_.find("k0: "), log_.npos) << log_;
  // The image, the function and the text are those of the tile.
  const std::string& name = program_.functions[0].name;
  EXPECT_TRUE(name.starts_with("k0_")) << name;
  EXPECT_EQ(images_[0].bytes, "image of " + name);
  EXPECT_NE(program_.text().find("def " + name + "("), std::string::npos);
  EXPECT_EQ(program_.text().find("def k0("), std::string::npos);
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
  tools_.deadline = std::chrono::steady_clock::now();
  tune(kAbs);
  EXPECT_EQ(fault_, "");
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
  function<void(const char*, int)>("fake_cuda_fail")("cuMemAlloc", 2);
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
