#include "runtime/host_bound.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace litz {
namespace {

// A device whose clock stands still but for what a test says.
struct FakeDevice {
  std::vector<float> milliseconds;  // of the samples, by their end events
  int living = 0;
  bool is_ready = true;
  bool refuses = false;
};

FakeDevice& device() {
  static FakeDevice fake;
  return fake;
}

class HostBoundTest : public testing::Test {
 protected:
  void SetUp() override {
    device() = {};
    auto driver = std::make_shared<CudaDriver>();
    driver->event_create = [](CudaEvent* event, unsigned) -> CudaStatus {
      if (device().refuses) return 1;
      *event = reinterpret_cast<CudaEvent>(static_cast<uintptr_t>(++made_));
      ++device().living;
      return 0;
    };
    driver->event_destroy = [](CudaEvent) -> CudaStatus {
      --device().living;
      return 0;
    };
    driver->event_record = [](CudaEvent, CudaStream) -> CudaStatus { return 0; };
    driver->event_elapsed = [](float* milliseconds, CudaEvent, CudaEvent end) -> CudaStatus {
      if (!device().is_ready) return 600;
      *milliseconds = device().milliseconds.at(reinterpret_cast<uintptr_t>(end) / 2 - 1);
      return 0;
    };
    made_ = 0;
    driver_ = std::move(driver);
  }

  static void run(HostBound& runs, int milliseconds) {
    ASSERT_TRUE(runs.begin(nullptr));
    EXPECT_FALSE(runs.begin(nullptr)) << "of two at once one is timed";
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    runs.end();
  }

  static inline int made_ = 0;
  std::shared_ptr<const CudaDriver> driver_;
};

TEST_F(HostBoundTest, IsKnownAfterThreeRuns) {
  HostBound runs(driver_);
  device().milliseconds = {0.5F, 90.F, 0.5F};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(runs.is_host_bound(), std::nullopt);
    run(runs, 2);
  }
  EXPECT_EQ(runs.is_host_bound(), true) << "the middle one counts";
  EXPECT_GE(runs.host_seconds(), 0.002);
  EXPECT_EQ(device().living, 0);
  EXPECT_FALSE(runs.begin(nullptr));
}

TEST_F(HostBoundTest, IsNotWhereTheDeviceTakesLonger) {
  HostBound runs(driver_);
  device().milliseconds = {90.F, 90.F, 90.F};
  for (int i = 0; i < 3; ++i) run(runs, 1);
  EXPECT_EQ(runs.is_host_bound(), false);
}

TEST_F(HostBoundTest, IsNotWhereTheHostIsQuick) {
  HostBound runs(driver_);
  device().milliseconds = {0.F, 0.F, 0.F};
  for (int i = 0; i < 3; ++i) run(runs, 0);
  EXPECT_EQ(runs.is_host_bound(), false);
}

TEST_F(HostBoundTest, WaitsForTheDeviceButNotForever) {
  HostBound runs(driver_);
  device().milliseconds = {0.5F, 0.5F, 0.5F};
  device().is_ready = false;
  for (int i = 0; i < 3; ++i) run(runs, 2);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(runs.is_host_bound(), std::nullopt);
  for (int i = 0; i < 10; ++i) runs.is_host_bound();
  EXPECT_EQ(runs.is_host_bound(), false);
}

TEST_F(HostBoundTest, IsNotWhereNothingCanBeTimed) {
  device().refuses = true;
  HostBound runs(driver_);
  EXPECT_FALSE(runs.begin(nullptr));
  EXPECT_EQ(runs.is_host_bound(), false);
}

TEST_F(HostBoundTest, GivesItsEventsBack) {
  {
    HostBound runs(driver_);
    run(runs, 0);
    EXPECT_EQ(device().living, 2);
  }
  EXPECT_EQ(device().living, 0);
}

}  // namespace
}  // namespace litz
