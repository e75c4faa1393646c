// Compiles the kernels of all graphs of tests/lowering/cases to device code, for the oldest and the
// newest architecture in use. Their results are compared on a GPU by tests/gpu.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
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

std::string device_source(const std::string& graph) {
  const LoweringResult lowered = lower_graph(parse_graph(graph), LoweringOptions{});
  ScheduleOptions options;
  options.combined_iterations = int64_t{1} << 20;
  const Plan plan = schedule_program(std::make_shared<const Program>(lowered.program), options);
  return print_cuda_program(plan).text;
}

class CudaCases : public testing::TestWithParam<std::string> {};

TEST_P(CudaCases, KernelsCompile) {
  const Result<Nvrtc> nvrtc = Nvrtc::find({{LITZ_TEST_NVRTC_FOLDER}});
  ASSERT_TRUE(nvrtc) << nvrtc.reason();
  const std::vector<LoweringCase> cases =
      read_cases(std::filesystem::path(LITZ_TEST_CASES) / (GetParam() + ".txt"));
  ASSERT_FALSE(cases.empty());
  size_t number = 0;
  for (const LoweringCase& c : cases) {
    const std::string arch = number++ % 8 == 0 ? "sm_75" : "sm_90";
    const Nvrtc::Image image =
        nvrtc->compile(device_source(c.graph), "kernels.cu", arch, {"--std=c++17", "--fmad=false"});
    EXPECT_TRUE(image.ok) << c.name << " for " << arch << ":\n" << image.log.substr(0, 2000);
    EXPECT_TRUE(
        image.cubin.starts_with("\x7f"
                                "ELF"))
        << c.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, CudaCases,
                         testing::Values("activations", "creation", "indexing", "joins", "losses",
                                         "normalizations", "pointwise", "pools", "random",
                                         "reductions", "views"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace litz
