// What the options of a compilation mean to its stages.
#pragma once

#include "codegen/cpp/cpp_artifact.h"
#include "driver/device_target.h"
#include "driver/options.h"
#include "lowering/lowering.h"
#include "passes/pass_options.h"
#include "schedule/schedule.h"
#include "support/target.h"

namespace litz {

// Throws UserError that lists the valid values where an option has another one.
PassOptions pass_options(const Options& options);

// What kernels are written in: C++ for a CPU, CUDA C++ or what a backend has like it, Triton;
// nothing, where the interpreter runs the program.
enum class KernelDialect : uint8_t { kCpp, kThreads, kTriton, kInterpreter };
LoweringOptions lowering_options(const Options& options,
                                 KernelDialect dialect = KernelDialect::kCpp,
                                 const DeviceTarget& device = {});
ScheduleOptions schedule_options(const Options& options,
                                 KernelDialect dialect = KernelDialect::kCpp,
                                 const DeviceTarget& device = {});

// The CPU that the option names, which need not be this machine. Throws UserError that lists the
// valid ones.
CpuTarget cpu_target(const Options& options);

// Translation units, and compilers at work at once.
int translation_units(const Options& options);

CppArtifactOptions artifact_options(const Options& options, const CpuTarget& target);

}  // namespace litz
