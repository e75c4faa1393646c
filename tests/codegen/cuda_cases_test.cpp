// Compiles the kernels of all graphs of tests/lowering/cases to device code, for the oldest and the
// newest architecture in use. Their results are compared on a GPU by tests/gpu.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "../lowering/case_file.h"
#include "codegen/cuda/cuda_artifact.h"
#include "graph/parse_graph.h"
#include "lowering/lowering.h"
#include "schedule/schedule.h"
#include "toolchain/nvrtc.h"

namespace litz {
namespace {

Plan device_plan(const std::string& graph) {
  const LoweringResult lowered = lower_graph(parse_graph(graph), LoweringOptions{});
  ScheduleOptions options;
  options.combined_iterations = int64_t{1} << 20;
  return schedule_program(std::make_shared<const Program>(lowered.program), options);
}

std::vector<LoweringCase> cases_of(const std::string& file) {
  return read_cases(std::filesystem::path(LITZ_TEST_CASES) / (file + ".txt"));
}

std::vector<size_t> all_kernels(const SimtProgram& program) {
  std::vector<size_t> all(program.kernels.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

class CudaCases : public testing::TestWithParam<std::string> {};

TEST_P(CudaCases, KernelsCompile) {
  const Result<Nvrtc> nvrtc = Nvrtc::find({{LITZ_TEST_NVRTC_FOLDER}});
  ASSERT_TRUE(nvrtc) << nvrtc.reason();
  const std::vector<LoweringCase> cases = cases_of(GetParam());
  ASSERT_FALSE(cases.empty());
  size_t number = 0;
  for (const LoweringCase& c : cases) {
    const std::string arch = number++ % 8 == 0 ? "sm_75" : "sm_90";
    SimtProgram program = print_cuda_program(device_plan(c.graph));
    const std::vector<Nvrtc::Image> images = nvrtc->compile_all(
        split_cuda_program(program, 2), "kernels.cu", arch, {"--std=c++17", "--fmad=false"});
    for (const Nvrtc::Image& image : images) {
      EXPECT_TRUE(image.ok) << c.name << " for " << arch << ":\n" << image.log.substr(0, 2000);
      EXPECT_TRUE(
          image.cubin.starts_with("\x7f"
                                  "ELF"))
          << c.name;
    }
    for (const SimtFunction& function : functions_of(program)) {
      const std::string& cubin = images.at(program.kernels[function.kernel].image).cubin;
      EXPECT_NE(cubin.find(function.name), std::string::npos) << c.name;
    }
  }
}

// What autotuning tries, of some of the graphs.
class CudaVariants : public testing::TestWithParam<std::string> {};

TEST_P(CudaVariants, Compile) {
  const Result<Nvrtc> nvrtc = Nvrtc::find({{LITZ_TEST_NVRTC_FOLDER}});
  ASSERT_TRUE(nvrtc) << nvrtc.reason();
  const std::vector<LoweringCase> cases = cases_of(GetParam());
  size_t variants = 0;
  for (size_t i = 0; i < cases.size(); i += 4) {
    const Plan plan = device_plan(cases[i].graph);
    const SimtProgram program = print_cuda_program(plan);
    SimtVariants others = print_cuda_variants(plan, program, all_kernels(program));
    variants += others.of.size();
    for (const Nvrtc::Image& image :
         nvrtc->compile_all(split_cuda_program(others.program, 2), "variants.cu", "sm_90",
                            {"--std=c++17", "--fmad=false"}))
      EXPECT_TRUE(image.ok) << cases[i].name << ":\n" << image.log.substr(0, 2000);
  }
  EXPECT_GT(variants, 0u);
}

TEST(SplitCudaProgram, EachKernelIsInOneProgramWithWhatItUses) {
  SimtProgram program;
  const std::string type = program.prelude.type(DType::kFloat32, 1);
  for (size_t i = 0; i < 6; ++i) {
    SimtProgram::Kernel kernel;
    kernel.name = "k" + std::to_string(i);
    kernel.printed.device_text = "KERNEL" + std::string(i == 2 ? 9000 : 1000, ' ');
    program.kernels.push_back(kernel);
  }
  EXPECT_EQ(split_cuda_program(program, 1), std::vector<std::string>{program.text()});
  const std::vector<std::string> programs = split_cuda_program(program, 2);
  ASSERT_EQ(programs.size(), 2u);
  for (const std::string& text : programs) EXPECT_NE(text.find(type), std::string::npos);
  for (const SimtProgram::Kernel& kernel : program.kernels) {
    for (size_t i = 0; i < programs.size(); ++i)
      EXPECT_EQ(programs[i].find(kernel.name) != std::string::npos, i == kernel.image);
    EXPECT_EQ(kernel.image == program.kernels[2].image, kernel.name == "k2");
  }
  EXPECT_EQ(split_cuda_program(program, 64).size(), 6u) << "one each";
}

INSTANTIATE_TEST_SUITE_P(Files, CudaVariants,
                         testing::Values("indexing", "losses", "normalizations", "reductions"),
                         [](const auto& info) { return info.param; });

INSTANTIATE_TEST_SUITE_P(Files, CudaCases,
                         testing::Values("activations", "creation", "indexing", "joins", "losses",
                                         "normalizations", "pointwise", "pools", "random",
                                         "reductions", "views"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace litz
