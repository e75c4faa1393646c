// A plan's C++ kernels, timed on this machine for choose_kernels.h: all that is wanted in one
// library, on memory of their own that the caches hold, with the threads that graphs run on.
#pragma once

#include <litz/artifact.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/cpp/cpp_artifact.h"
#include "driver/choose_kernels.h"
#include "runtime/torch_host.h"
#include "toolchain/host_compiler.h"

namespace litz {

struct CppTimingTools {
  const HostCompiler* compiler = nullptr;
  SharedLibraryJob job;              // without units and folders
  std::vector<std::string> folders;  // to build in, one of them
  CppArtifactOptions printing;
  std::shared_ptr<TorchEnvironment> torch;
};

class CppKernelTimes final : public KernelTimes {
 public:
  explicit CppKernelTimes(CppTimingTools tools);
  ~CppKernelTimes() override;
  CppKernelTimes(const CppKernelTimes&) = delete;
  CppKernelTimes& operator=(const CppKernelTimes&) = delete;

  std::unique_ptr<PrintedKernels> print(const Plan& plan) override;
  std::string open() override { return {}; }
  bool prepare(const std::vector<Wanted>& wanted, MeasuringTime& time) override;
  std::optional<double> seconds(const PrintedKernels& printed,
                                const std::vector<CountedKernel>& kernels,
                                MeasuringTime& time) override;
  int rounds() const override { return 3; }
  bool is_disturbed() const override;
  bool prefers_kernels() const override { return true; }

 private:
  using RunKernel = void (*)(const LitzHost* host, int32_t* status, char* const* buffers);

  // Of all that is wanted, by identity the number of its function.
  std::vector<SourceUnit> print_units(const std::vector<Wanted>& wanted,
                                      std::map<std::string, size_t>& numbers) const;
  // Builds and opens it; why not, or an empty string.
  std::string load(std::vector<SourceUnit> units);

  CppTimingTools tools_;
  const LitzHost host_;
  std::map<std::string, RunKernel> functions_;  // by identity
  void* library_ = nullptr;
  std::string folder_;  // of the library
};

}  // namespace litz
