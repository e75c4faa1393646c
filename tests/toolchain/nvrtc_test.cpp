#include "toolchain/nvrtc.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace litz {
namespace {

constexpr const char* kKernel =
    "extern \"C\" __global__ void add(const float* a, const float* b, float* c, int n) {\n"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) c[i] = a[i] * b[i] + c[i];\n"
    "}\n";

Result<Nvrtc> find() { return Nvrtc::find({{LITZ_TEST_NVRTC_FOLDER}}); }

// Before any other test opens the library.
TEST(Nvrtc, AnAbsentLibraryIsAReason) {
  if (dlopen("libnvrtc.so.13", RTLD_LAZY) || dlopen("libnvrtc.so.12", RTLD_LAZY)) {
    EXPECT_TRUE(Nvrtc::find({}));  // it is on the library path of this machine
    return;
  }
  for (const std::string folder : {"/no/such/folder", "relative"}) {
    const Result<Nvrtc> found = Nvrtc::find({{folder}});
    ASSERT_FALSE(found);
    EXPECT_NE(found.reason().find("pip install nvidia-cuda-nvrtc"), std::string::npos);
  }
}

TEST(Nvrtc, ALibraryOfThatNameWithoutTheFunctionsIsAReason) {
  const Result<Nvrtc> found = Nvrtc::find({{LITZ_TEST_EMPTY_NVRTC_FOLDER}});
  if (found) {
    EXPECT_TRUE(dlopen("libnvrtc.so.13", RTLD_LAZY) || dlopen("libnvrtc.so.12", RTLD_LAZY));
    return;
  }
  EXPECT_NE(found.reason().find("/libnvrtc.so: it has no function nvrtc"), std::string::npos)
      << found.reason();
}

TEST(Nvrtc, CompilesAKernelToDeviceCode) {
  const Result<Nvrtc> nvrtc = find();
  ASSERT_TRUE(nvrtc) << nvrtc.reason();
  const Nvrtc::Image image = nvrtc->compile(kKernel, "kernels.cu", "sm_90", {"--fmad=false"});
  ASSERT_TRUE(image.ok) << image.log;
  EXPECT_EQ(image.cubin.substr(0, 4),
            "\x7f"
            "ELF");
  EXPECT_NE(image.cubin.find("add"), std::string::npos);
  const Nvrtc::Image again = nvrtc->compile(kKernel, "kernels.cu", "sm_90", {"--fmad=false"});
  EXPECT_TRUE(again.cubin == image.cubin) << "equal input gives equal bytes";
}

TEST(Nvrtc, OptionsReachTheCompiler) {
  const Result<Nvrtc> nvrtc = find();
  ASSERT_TRUE(nvrtc) << nvrtc.reason();
  const Nvrtc::Image fused = nvrtc->compile(kKernel, "kernels.cu", "sm_90", {"--fmad=true"});
  const Nvrtc::Image rounded = nvrtc->compile(kKernel, "kernels.cu", "sm_90", {"--fmad=false"});
  ASSERT_TRUE(fused.ok && rounded.ok);
  EXPECT_FALSE(fused.cubin == rounded.cubin);
  const Nvrtc::Image wrong = nvrtc->compile(kKernel, "kernels.cu", "sm_90", {"--no-such-option"});
  EXPECT_FALSE(wrong.ok);
  EXPECT_NE(wrong.log.find("INVALID_OPTION"), std::string::npos) << wrong.log;
}

TEST(Nvrtc, ARejectedSourceLeavesTheCompilersWords) {
  const Result<Nvrtc> nvrtc = find();
  ASSERT_TRUE(nvrtc) << nvrtc.reason();
  const Nvrtc::Image image =
      nvrtc->compile("__global__ void f() { nonsense; }\n", "kernels.cu", "sm_90", {});
  EXPECT_FALSE(image.ok);
  EXPECT_TRUE(image.cubin.empty());
  EXPECT_NE(image.log.find("kernels.cu(1)"), std::string::npos) << image.log;
  EXPECT_NE(image.log.find("nonsense"), std::string::npos) << image.log;
  EXPECT_NE(image.log.find("NVRTC_ERROR_COMPILATION for sm_90 in kernels.cu"), std::string::npos)
      << image.log;
}

TEST(Nvrtc, AnArchitectureItDoesNotKnowIsAFailure) {
  const Result<Nvrtc> nvrtc = find();
  ASSERT_TRUE(nvrtc) << nvrtc.reason();
  EXPECT_FALSE(nvrtc->compile(kKernel, "kernels.cu", "sm_7", {}).ok);
  EXPECT_THROW(nvrtc->compile(kKernel, "kernels.cu", "compute_90", {}), InternalError);
  const std::vector<int> known = nvrtc->architectures();
  EXPECT_NE(std::find(known.begin(), known.end(), 90), known.end());
}

TEST(Nvrtc, TheVersionHoldsNoPath) {
  const Result<Nvrtc> nvrtc = find();
  ASSERT_TRUE(nvrtc) << nvrtc.reason();
  EXPECT_TRUE(nvrtc->version().starts_with("nvrtc 1")) << nvrtc->version();
  EXPECT_EQ(nvrtc->version().find('/'), std::string::npos);
}

}  // namespace
}  // namespace litz
