#include "runtime/host_bound.h"

#include <algorithm>

namespace litz {
namespace {

constexpr size_t kSamples = 3;
constexpr int kMostAsked = 20;           // then the device is far behind the host
constexpr double kHostBound = 1.15;      // of the host's time, that the device takes at most
constexpr double kLeastSeconds = 60e-6;  // that replaying a recording takes as well, about

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

HostBound::~HostBound() { forget_samples(); }

void HostBound::forget_samples() {
  for (const Sample& sample : samples_) {
    for (CudaEvent event : {sample.start, sample.end}) {
      if (event != nullptr) driver_->event_destroy(event);
    }
  }
  samples_.clear();
}

bool HostBound::begin(CudaStream stream) {
  if (found_ || is_timing_ || samples_.size() >= kSamples) return false;
  Sample& sample = samples_.emplace_back();
  if (driver_->event_create(&sample.start, 0) != 0 || driver_->event_create(&sample.end, 0) != 0 ||
      driver_->event_record(sample.start, stream) != 0) {
    found_ = false;
    forget_samples();
    return false;
  }
  is_timing_ = true;
  stream_ = stream;
  begun_ = std::chrono::steady_clock::now();
  return true;
}

void HostBound::end() {
  is_timing_ = false;
  Sample& sample = samples_.back();
  sample.host_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  if (driver_->event_record(sample.end, stream_) == 0) return;
  found_ = false;
  forget_samples();
}

std::optional<bool> HostBound::is_host_bound() {
  if (found_ || is_timing_ || samples_.size() < kSamples) return found_;
  std::vector<double> host;
  std::vector<double> device;
  for (const Sample& sample : samples_) {
    float milliseconds = 0;
    if (driver_->event_elapsed(&milliseconds, sample.start, sample.end) != 0) {
      if (++times_asked_ >= kMostAsked) found_ = false;
      return found_;
    }
    host.push_back(sample.host_seconds);
    device.push_back(milliseconds / 1e3);
  }
  host_seconds_ = median(host);
  found_ = host_seconds_ >= kLeastSeconds && median(device) <= kHostBound * host_seconds_;
  forget_samples();
  return found_;
}

}  // namespace litz
