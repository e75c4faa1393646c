// Whether the host or the device is the clock of a graph's runs.
//
// Some runs are timed from their first to their last launch, on the host by its clock and on the
// device by events. Where the device takes hardly longer than the host it waits for launches.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/cuda_driver.h"

namespace litz {

// For one thread at a time.
class HostBound {
 public:
  explicit HostBound(std::shared_ptr<const CudaDriver> driver) : driver_(std::move(driver)) {}
  ~HostBound();
  HostBound(const HostBound&) = delete;
  HostBound& operator=(const HostBound&) = delete;

  // Around a run that launches on `stream`, with the device's context current. A run that begins
  // while another one is timed is not.
  bool begin(CudaStream stream);
  void end();

  // Known once enough runs have been timed and the device has caught up with them, or has not for
  // long.
  std::optional<bool> is_host_bound();
  // That a run keeps the host busy; 0 while that is not known.
  double host_seconds() const { return host_seconds_; }

 private:
  struct Sample {
    CudaEvent start = nullptr;
    CudaEvent end = nullptr;
    double host_seconds = 0;
  };

  void forget_samples();

  std::shared_ptr<const CudaDriver> driver_;
  std::vector<Sample> samples_;
  bool is_timing_ = false;
  CudaStream stream_ = nullptr;
  std::chrono::steady_clock::time_point begun_;
  int times_asked_ = 0;
  double host_seconds_ = 0;
  std::optional<bool> found_;
};

}  // namespace litz
