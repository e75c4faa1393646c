// On the fake CUDA driver a kernel takes a microsecond for each of its programs.
#include "driver/choose_kernels.h"

#include "driver/stage_options.h"
#include "driver/triton_kernel_times.h"
#include "fake_cuda_test.h"
#include "graph/parse_graph.h"
#include "lowering/lowering.h"

namespace litz {
namespace {

// Two products that are alike, and one that is not.
const char* const kThreeProducts = R"(graph(%x: f16[4096, 256] device(cuda:0),
    %y: f16[4096, 256] device(cuda:0), %w: f16[256, 1024] device(cuda:0),
    %v: f16[256, 512] device(cuda:0)) {
  %a: f16[4096, 1024] device(cuda:0) = aten::mm(%x, %w)
  %b: f16[4096, 1024] device(cuda:0) = aten::mm(%y, %w)
  %c: f16[4096, 512] device(cuda:0) = aten::mm(%y, %v)
  return (%a, %b, %c)
})";

// The model makes a kernel of this one: what reads it would be another kernel, of 4096 programs.
const char* const kProductAndSum = R"(graph(%x: f16[4096, 256] device(cuda:0),
    %w: f16[256, 1024] device(cuda:0), %r: f16[4096, 1024] device(cuda:0)) {
  %a: f16[4096, 1024] device(cuda:0) = aten::mm(%x, %w)
  %b: f16[4096, 1024] device(cuda:0) = aten::add.Tensor(%a, %r)
  return (%b)
})";

// The library has a good kernel for one, and for the other it wants the bias in memory.
const char* const kAttention = R"(graph(%q: f16[2, 4, 256, 64] device(cuda:0),
    %k: f16[2, 4, 256, 64] device(cuda:0), %v: f16[2, 4, 256, 64] device(cuda:0),
    %m: f16[256, 256] device(cuda:0)) {
  %a: f16[2, 4, 256, 64] device(cuda:0) = aten::scaled_dot_product_attention(%q, %k, %v)
  %b: f16[2, 4, 256, 64] device(cuda:0) = aten::scaled_dot_product_attention(%q, %k, %a, %m)
  return (%b)
})";

class ChooseKernelsTest : public FakeCudaTest {
 protected:
  void SetUp() override {
    FakeCudaTest::SetUp();
    device_.kind = "cuda";
    device_.arch = "sm_90";
    device_.multiprocessors = 132;
    device_.loads_tiles = true;
    tools_.driver = driver_;
    tools_.arch = "sm_90";
    tools_.seconds = 600;
  }

  static Result<std::vector<TritonImage>> compile(const TritonProgram& program) {
    std::vector<TritonImage> images;
    for (const TritonProgram::Function& f : program.functions)
      images.push_back({"image of " + f.name, 0, f.warps * 32, 2});
    return images;
  }

  // Where a call of the library takes so many microseconds.
  ChosenKernels choose(const std::string& graph, double microseconds) {
    const Graph parsed = parse_graph(graph);
    ChoosingTools choosing;
    choosing.plan = [&](const KernelChoices& choices) {
      LoweringOptions lowering = lowering_options({}, KernelDialect::kTriton, device_);
      lowering.kernel_choices = choices;
      LoweringResult lowered = lower_graph(parsed, lowering);
      return PlannedCandidates{
          schedule_program(std::make_shared<const Program>(std::move(lowered.program)),
                           schedule_options({}, KernelDialect::kTriton, device_)),
          std::move(lowered.candidates)};
    };
    choosing.time_library = [&](const std::string& call) -> Result<double> {
      calls_.push_back(call);
      if (microseconds < 0) return Unsupported{"the library has no such op"};
      return microseconds * 1e-6;
    };
    TritonKernelTimes times(tools_, TritonDevice{132}, compile);
    choosing.kernels = &times;
    choosing.seconds = tools_.seconds;
    choosing.recall = [&](const std::string& key, const std::string& steps) {
      const auto found = remembered_.find(key + steps);
      return found == remembered_.end() ? std::nullopt : std::optional(found->second);
    };
    choosing.remember = [&](const std::string& key, const std::string& steps,
                            const BothWays& seconds) { remembered_[key + steps] = seconds; };
    Result<ChosenKernels> chosen = choose_kernels(choosing);
    fault_ = chosen ? "" : chosen.reason();
    return chosen ? *chosen : ChosenKernels();
  }

  DeviceTarget device_;
  TuningTools tools_;
  std::map<std::string, BothWays> remembered_;
  std::vector<std::string> calls_;
  std::string fault_;
};

TEST_F(ChooseKernelsTest, WhatIsFasterIsTaken) {
  const ChosenKernels slow_library = choose(kThreeProducts, 1000);
  EXPECT_EQ(fault_, "");
  EXPECT_TRUE(slow_library.is_finished);
  ASSERT_EQ(slow_library.measured.size(), 2u) << slow_library.log;
  EXPECT_EQ(slow_library.measured[0].count, 2u);
  EXPECT_DOUBLE_EQ(slow_library.measured[0].library_seconds, 2e-3);
  // The best tile's: 128 of 128 by 256.
  EXPECT_NEAR(slow_library.measured[0].kernel_seconds, 2 * 128e-6, 1e-9);
  for (const auto& [key, is_kernel] : slow_library.choices) EXPECT_TRUE(is_kernel) << key;
  // Equal calls are timed once.
  ASSERT_EQ(calls_.size(), 2u);
  EXPECT_EQ(calls_[0], R"({"op":"aten::mm","overload":"","arguments":[)"
                       R"({"dtype":"f16","sizes":[4096,256],"strides":[256,1]},)"
                       R"({"dtype":"f16","sizes":[256,1024],"strides":[1024,1]}]})");

  remembered_.clear();
  const ChosenKernels fast_library = choose(kThreeProducts, 50);
  ASSERT_EQ(fast_library.choices.size(), 2u) << fast_library.log;
  for (const auto& [key, is_kernel] : fast_library.choices) EXPECT_FALSE(is_kernel) << key;
}

TEST_F(ChooseKernelsTest, TiesGoToTheLibrary) {
  // The third one's kernel has 64 programs.
  const ChosenKernels chosen = choose(kThreeProducts, 65);
  ASSERT_EQ(chosen.choices.size(), 2u) << chosen.log;
  for (const auto& [key, is_kernel] : chosen.choices) EXPECT_FALSE(is_kernel) << key;
}

TEST_F(ChooseKernelsTest, WhatReadsAProductCounts) {
  const ChosenKernels chosen = choose(kProductAndSum, 0);
  ASSERT_EQ(chosen.measured.size(), 1u) << chosen.log;
  EXPECT_TRUE(chosen.measured[0].is_kernel);
  EXPECT_GT(chosen.measured[0].library_seconds, 1e-3);
  EXPECT_NE(chosen.measured[0].key.find("aten::add.Tensor"), std::string::npos);
}

TEST_F(ChooseKernelsTest, AttentionIsMeasuredToo) {
  for (const bool is_kernel : {false, true}) {
    remembered_.clear();
    const ChosenKernels chosen = choose(kAttention, is_kernel ? 1000 : 1);
    EXPECT_EQ(fault_, "");
    ASSERT_EQ(chosen.measured.size(), 2u) << chosen.log;
    for (const MeasuredCandidate& measured : chosen.measured) {
      EXPECT_EQ(measured.is_kernel, is_kernel) << chosen.log;
      EXPECT_EQ(measured.key.find("aten::scaled_dot_product_attention f16 2x4x256x64"), 0u)
          << measured.key;
    }
    EXPECT_NE(chosen.measured[0].key, chosen.measured[1].key);
  }
  EXPECT_NE(calls_.at(0).find(R"("op":"aten::scaled_dot_product_attention")"), std::string::npos);
}

TEST_F(ChooseKernelsTest, WhatCannotBeMeasuredStays) {
  const ChosenKernels chosen = choose(kThreeProducts, -1);
  EXPECT_EQ(fault_, "");
  EXPECT_TRUE(chosen.choices.empty());
  EXPECT_NE(chosen.log.find("the library has no such op"), std::string::npos) << chosen.log;
  EXPECT_NE(chosen.log.find("cannot be measured"), std::string::npos) << chosen.log;

  remembered_.clear();
  tools_.seconds = 0;
  const ChosenKernels stopped = choose(kThreeProducts, 1000);
  EXPECT_TRUE(stopped.choices.empty());
  EXPECT_FALSE(stopped.is_finished);

  remembered_.clear();
  fail("cuMemAlloc", CudaDriver::kOutOfMemory);
  choose(kThreeProducts, 1000);
  EXPECT_NE(fault_.find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << fault_;
}

TEST_F(ChooseKernelsTest, WhatIsRememberedNeedsNoDevice) {
  const ChosenKernels first = choose(kThreeProducts, 1000);
  ASSERT_EQ(remembered_.size(), 2u) << first.log;
  tools_.driver = nullptr;
  const ChosenKernels second = choose(kThreeProducts, -1);
  EXPECT_EQ(fault_, "");
  EXPECT_TRUE(second.is_finished);
  EXPECT_EQ(second.seconds, 0);
  EXPECT_EQ(second.choices, first.choices);
  EXPECT_NE(second.log.find("measured before"), std::string::npos) << second.log;
}

TEST_F(ChooseKernelsTest, GraphsWithoutCandidatesNeedNoDevice) {
  tools_.driver = nullptr;
  const ChosenKernels chosen = choose(R"(graph(%x: f32[64] device(cuda:0)) {
  %y: f32[64] device(cuda:0) = aten::relu(%x)
  return (%y)
})",
                                      1);
  EXPECT_TRUE(chosen.is_finished);
  EXPECT_TRUE(chosen.choices.empty());
}

}  // namespace
}  // namespace litz
