// Tests against the CUDA driver that only records what it is asked (fake_cuda.c).
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "runtime/cuda_driver.h"

namespace litz {

class FakeCudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(LITZ_TEST_FAKE_CUDA, RTLD_NOW);
    ASSERT_NE(library_, nullptr) << dlerror();
    function<void()>("fake_cuda_reset")();
    Result<std::shared_ptr<const CudaDriver>> opened = CudaDriver::open(LITZ_TEST_FAKE_CUDA);
    ASSERT_TRUE(opened) << opened.reason();
    driver_ = *opened;
  }
  void TearDown() override { dlclose(library_); }

  template <class F>
  F* function(const char* name) const {
    return reinterpret_cast<F*>(dlsym(library_, name));
  }
  std::string log() const { return function<const char*()>("fake_cuda_log")(); }
  // From now on calls of `symbol` return `status`.
  void fail(const char* symbol, CudaStatus status) const {
    function<void(const char*, int)>("fake_cuda_fail")(symbol, status);
  }

  void* library_ = nullptr;
  std::shared_ptr<const CudaDriver> driver_;
};

}  // namespace litz
