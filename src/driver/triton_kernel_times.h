// A plan's Triton kernels, timed on a CUDA device for choose_kernels.h: products and attention with
// the fastest of several tiles.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "driver/choose_kernels.h"
#include "driver/tunable_triton.h"
#include "driver/tune_kernels.h"
#include "runtime/kernel_timer.h"

namespace litz {

class TritonKernelTimes final : public KernelTimes {
 public:
  TritonKernelTimes(TuningTools tools, const TritonDevice& device, CompileTriton compile)
      : tools_(std::move(tools)), device_(device), compile_(std::move(compile)) {}

  std::unique_ptr<PrintedKernels> print(const Plan& plan) override;
  std::string open() override;
  bool prepare(const std::vector<Wanted>&, MeasuringTime&) override { return true; }
  std::optional<double> seconds(const PrintedKernels& printed,
                                const std::vector<CountedKernel>& kernels,
                                MeasuringTime& time) override;
  int rounds() const override { return 1; }
  bool is_disturbed() const override { return false; }
  bool prefers_kernels() const override { return false; }

 private:
  const TuningTools tools_;
  const TritonDevice device_;
  const CompileTriton compile_;
  std::unique_ptr<KernelTimer> timer_;
};

}  // namespace litz
