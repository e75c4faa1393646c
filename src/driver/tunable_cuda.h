// A plan's CUDA C++ kernels as what is tuned and timed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/cuda/cuda_artifact.h"
#include "driver/tune_kernels.h"
#include "schedule/plan.h"
#include "support/error.h"

namespace litz {

// Images of a program's parts (SimtProgram::Kernel::image, which it sets); one that cannot be
// compiled is empty.
using CompileCuda = std::function<std::vector<std::string>(SimtProgram&)>;

DeviceProgram device_program(const SimtProgram& program, const std::vector<std::string>& images);

class TunableCuda final : public TunableKernels {
 public:
  // `images` are the program's. replace() changes the program, which is to be compiled anew then.
  TunableCuda(const Plan& plan, SimtProgram& program, const std::vector<std::string>& images,
              CompileCuda compile)
      : plan_(plan), program_(program), images_(images), compile_(std::move(compile)) {}

  DeviceProgram program() const override { return device_program(program_, images_); }
  const DeviceCalls& calls() const override { return program_.calls; }
  Result<Variants> make_variants(const std::vector<size_t>& kernels) override;
  void replace(size_t kernel, size_t variant) override {
    replace_kernel(program_, kernel, variants_, variant);
  }

 private:
  const Plan& plan_;
  SimtProgram& program_;
  const std::vector<std::string>& images_;
  const CompileCuda compile_;
  SimtVariants variants_;
};

}  // namespace litz
