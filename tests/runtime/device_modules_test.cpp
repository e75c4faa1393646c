#include "runtime/device_modules.h"

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "fake_cuda_test.h"

namespace litz {
namespace {

constexpr LitzDeviceImage kImages[] = {{"code", 5}, {"more", 5}};
constexpr LitzDeviceKernel kKernels[] = {{"first", 0}, {"second", 1}};
constexpr LitzDeviceCode kCode = {"sm_90", kImages, kKernels, 2, 2};
constexpr int64_t kGrid[] = {7, 2, 1};

CudaStream stream_number(intptr_t number) { return reinterpret_cast<CudaStream>(number); }

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

class DeviceModulesTest : public FakeCudaTest {
 protected:
  CudaContext context(int device) const {
    return function<void*(int)>("fake_cuda_context")(device);
  }

  int launch(DeviceModule& module, int32_t kernel, const int64_t* grid, int64_t shared_bytes = 0) {
    void* pointer = reinterpret_cast<void*>(0x1234);
    int64_t size = 99;
    void* arguments[] = {&pointer, &size};
    const CudaContextScope scope(*driver_, module.context());
    return module.launch(kernel, grid, 128, shared_bytes, arguments, stream_number(5), &message_);
  }

  std::string message_;
};

TEST_F(DeviceModulesTest, LoadsOnceForEachDeviceAndUnloads) {
  {
    DeviceModules modules(driver_, &kCode);
    EXPECT_EQ(log(), "") << "nothing is loaded before it is needed";
    const Result<DeviceModule*> second = modules.on(1);
    ASSERT_TRUE(second) << second.reason();
    EXPECT_EQ((*second)->context(), context(1));
    EXPECT_EQ(log(),
              "cuDevicePrimaryCtxRetain device=1\n"
              "cuModuleLoadData device=1 image=code\n"
              "cuModuleLoadData device=1 image=more\n"
              "cuModuleGetFunction device=1 name=first\n"
              "cuModuleGetFunction device=1 name=second\n");
    EXPECT_EQ(*modules.on(1), *second);
    EXPECT_NE(*modules.on(0), *second);
    EXPECT_EQ(count(log(), "cuModuleLoadData"), 4u);
  }
  EXPECT_EQ(count(log(),
                  "cuCtxSynchronize device=1\ncuModuleUnload device=1\n"
                  "cuModuleUnload device=1\n"
                  "cuDevicePrimaryCtxRelease device=1\n"),
            1u)
      << log();
  EXPECT_EQ(count(log(), "cuModuleUnload device=0"), 2u);
}

TEST_F(DeviceModulesTest, ThreadsLoadOnce) {
  DeviceModules modules(driver_, &kCode);
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { good += modules.on(0) ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 8);
  EXPECT_EQ(count(log(), "cuModuleLoadData"), 2u);
}

TEST_F(DeviceModulesTest, LaunchesWithWhatItWasGiven) {
  DeviceModules modules(driver_, &kCode);
  DeviceModule& module = **modules.on(1);
  ASSERT_EQ(launch(module, 1, kGrid, 256), LITZ_OK) << message_;
  EXPECT_EQ(count(log(),
                  "cuLaunchKernel second device=1 grid=7,2,1 threads=128,1,1 shared=256 "
                  "stream=5 arguments=4660,99 extra=0\n"),
            1u)
      << log();
  EXPECT_EQ(count(log(), "cuFuncSetAttribute"), 0u);
}

TEST_F(DeviceModulesTest, AnEmptyGridIsNotLaunched) {
  DeviceModules modules(driver_, &kCode);
  const int64_t empty[] = {0, 1, 1};
  EXPECT_EQ(launch(**modules.on(0), 0, empty), LITZ_OK);
  EXPECT_EQ(count(log(), "cuLaunchKernel"), 0u);
}

TEST_F(DeviceModulesTest, AGridBeyondTheDeviceIsRefused) {
  DeviceModules modules(driver_, &kCode);
  const int64_t wide[] = {int64_t{1} << 31, 1, 1};
  const int64_t high[] = {1, 65536, 1};
  EXPECT_EQ(launch(**modules.on(0), 0, wide), LITZ_ERROR);
  EXPECT_EQ(launch(**modules.on(0), 0, high), LITZ_ERROR);
  EXPECT_EQ(message_, "the kernel first is too large: 65536 blocks in dimension 1");
  EXPECT_EQ(launch(**modules.on(0), 2, kGrid), LITZ_ERROR);
  EXPECT_EQ(message_, "the graph has no kernel number 2");
  EXPECT_EQ(count(log(), "cuLaunchKernel"), 0u);
}

TEST_F(DeviceModulesTest, LargeSharedMemoryIsAskedForOnce) {
  DeviceModules modules(driver_, &kCode);
  DeviceModule& module = **modules.on(0);
  EXPECT_EQ(launch(module, 0, kGrid, 48 << 10), LITZ_OK);
  EXPECT_EQ(count(log(), "cuFuncSetAttribute"), 0u);
  for (const int64_t bytes : {100000, 100000, 60000}) {
    EXPECT_EQ(launch(module, 0, kGrid, bytes), LITZ_OK);
  }
  EXPECT_EQ(count(log(), "cuFuncSetAttribute"), 1u);
  EXPECT_EQ(count(log(), "cuFuncSetAttribute first attribute=8 value=100000\n"), 1u);
  EXPECT_EQ(launch(module, 1, kGrid, 60000), LITZ_OK);
  EXPECT_EQ(count(log(), "cuFuncSetAttribute second attribute=8 value=60000\n"), 1u);
  fail("cuFuncSetAttribute", 1);
  EXPECT_EQ(launch(module, 0, kGrid, 1 << 20), LITZ_ERROR);
  EXPECT_EQ(message_,
            "giving the kernel first 1048576 bytes of shared memory: CUDA_ERROR_SOME (some error)");
}

TEST_F(DeviceModulesTest, ConstantsAreUploadedOnceForEachDevice) {
  static const int64_t table[] = {3, 1, 4};
  {
    DeviceModules modules(driver_, &kCode);
    void* first = nullptr;
    void* again = nullptr;
    for (const int device : {0, 1}) {
      DeviceModule& module = **modules.on(device);
      const CudaContextScope scope(*driver_, module.context());
      ASSERT_EQ(module.constant(table, sizeof(table), stream_number(5), &first, &message_), 0);
      ASSERT_EQ(module.constant(table, sizeof(table), stream_number(6), &again, &message_), 0);
      EXPECT_EQ(first, again);
      EXPECT_EQ(std::memcmp(first, table, sizeof(table)), 0);
    }
    EXPECT_EQ(count(log(), "cuMemcpyHtoDAsync bytes=24 stream=5\ncuStreamSynchronize stream=5\n"),
              2u);
    EXPECT_EQ(count(log(), "cuMemcpyHtoDAsync"), 2u);
  }
  EXPECT_EQ(count(log(), "cuMemFree device=0"), 1u);
  EXPECT_EQ(count(log(), "cuMemFree device=1"), 1u);
}

TEST_F(DeviceModulesTest, FailuresAreWords) {
  DeviceModules modules(driver_, &kCode);
  DeviceModule& module = **modules.on(0);
  fail("cuLaunchKernel", 700);
  EXPECT_EQ(launch(module, 0, kGrid), LITZ_ERROR);
  EXPECT_EQ(message_, "launching the kernel first: CUDA_ERROR_SOME (some error)");
  fail("cuLaunchKernel", CudaDriver::kOutOfMemory);
  EXPECT_EQ(launch(module, 0, kGrid), LITZ_OUT_OF_MEMORY);

  static const char bytes[8] = {};
  void* data = nullptr;
  for (const char* symbol : {"cuMemAlloc", "cuMemcpyHtoDAsync", "cuStreamSynchronize"}) {
    fail(symbol, CudaDriver::kOutOfMemory);
    EXPECT_EQ(module.constant(bytes, 8, stream_number(1), &data, &message_), LITZ_OUT_OF_MEMORY);
    EXPECT_EQ(message_, "uploading 8 bytes of constants: CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
  }
  fail("", 0);
  EXPECT_EQ(module.constant(bytes, 8, stream_number(1), &data, &message_), LITZ_OK)
      << "a failed upload is tried again";
}

TEST_F(DeviceModulesTest, AModuleThatCannotBeLoadedIsAReason) {
  DeviceModules modules(driver_, &kCode);
  fail("cuModuleLoadData", CudaDriver::kNoBinaryForDevice);
  const Result<DeviceModule*> wrong = modules.on(0);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.reason(),
            "kernels cannot be loaded: CUDA_ERROR_SOME (some error); they were compiled for sm_90, "
            "the device is sm_80; compile the graph again");
  EXPECT_EQ(count(log(), "cuDevicePrimaryCtxRelease device=0"), 1u);
  fail("cuModuleGetFunction", 500);
  EXPECT_EQ(modules.on(0).reason(),
            "the kernel first cannot be loaded: CUDA_ERROR_SOME (some error)");
  EXPECT_EQ(count(log(), "cuModuleUnload device=0"), 2u);
  EXPECT_EQ(modules.on(2).reason(), "there is no device cuda:2; this machine has 2 CUDA devices");
  fail("", 0);
  EXPECT_TRUE(modules.on(0)) << "a failed load is tried again";
}

TEST_F(DeviceModulesTest, AGraphOfLibraryOpsAloneLoadsNothing) {
  DeviceModules modules(driver_, nullptr);
  ASSERT_TRUE(modules.on(0));
  EXPECT_EQ(log(), "cuDevicePrimaryCtxRetain device=0\n");
}

TEST_F(DeviceModulesTest, AScopeGivesTheContextBack) {
  const auto current = [&] {
    CudaContext found = nullptr;
    driver_->context_current(&found);
    return found;
  };
  driver_->context_set_current(context(0));
  {
    const CudaContextScope scope(*driver_, context(1));
    EXPECT_EQ(current(), context(1));
  }
  EXPECT_EQ(current(), context(0));
  std::thread([&] {
    {
      const CudaContextScope scope(*driver_, context(1));
    }
    EXPECT_EQ(current(), context(1)) << "a thread that had none keeps it";
  }).join();
}

TEST_F(DeviceModulesTest, ADriverThatDoesNotStartIsAReason) {
  fail("cuInit", 100);
  EXPECT_EQ(CudaDriver::open(LITZ_TEST_FAKE_CUDA).reason(),
            "the CUDA driver does not start: CUDA_ERROR_SOME (some error)");
}

TEST(CudaDriver, AnAbsentOrForeignLibraryIsAReason) {
  const auto absent = CudaDriver::open("/no/such/libcuda.so.1");
  ASSERT_FALSE(absent);
  EXPECT_TRUE(absent.reason().starts_with("there is no CUDA driver: /no/such/libcuda.so.1"));
  EXPECT_NE(absent.reason().find("install NVIDIA's driver"), std::string::npos);
  const auto foreign = CudaDriver::open("libm.so.6");
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.reason(),
            "the CUDA driver libm.so.6 has no function cuInit; install a newer one");
}

}  // namespace
}  // namespace litz
