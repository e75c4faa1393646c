// A plan's Triton kernels as what is tuned and timed.
#pragma once

#include <functional>
#include <vector>

#include "codegen/triton/triton_artifact.h"
#include "codegen/triton/triton_program.h"
#include "driver/tune_kernels.h"
#include "schedule/plan.h"
#include "support/error.h"

namespace litz {

// Images of a program's functions; one that cannot be compiled is empty.
using CompileTriton = std::function<Result<std::vector<TritonImage>>(const TritonProgram&)>;

DeviceProgram device_program(const TritonProgram& program, const std::vector<TritonImage>& images);

class TunableTriton final : public TunableKernels {
 public:
  // `images` are the program's; both are changed by replace().
  TunableTriton(const Plan& plan, TritonProgram& program, std::vector<TritonImage>& images,
                CompileTriton compile)
      : plan_(plan), program_(program), images_(images), compile_(std::move(compile)) {}

  DeviceProgram program() const override { return device_program(program_, images_); }
  const DeviceCalls& calls() const override { return program_.calls; }
  Result<Variants> make_variants(const std::vector<size_t>& kernels) override;
  void replace(size_t kernel, size_t variant) override;

 private:
  const Plan& plan_;
  TritonProgram& program_;
  std::vector<TritonImage>& images_;
  const CompileTriton compile_;
  TritonVariants variants_;
  std::vector<TritonImage> variant_images_;
};

}  // namespace litz
