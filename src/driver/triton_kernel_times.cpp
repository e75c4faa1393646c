#include "driver/triton_kernel_times.h"

#include <utility>

#include <fmt/format.h>

#include "driver/loaded_program.h"

namespace litz {
namespace {

class TritonKernels final : public PrintedKernels {
 public:
  TritonKernels(const Plan& given, TritonProgram printed)
      : plan(given), program(std::move(printed)) {}

  std::optional<Launch> launch_of(KernelId kernel) const override {
    const DeviceCall& call = program.calls[kernel.value];
    if (call.launched_with != kernel) return std::nullopt;
    return Launch{identity_of(call), is_known(call)};
  }

  const Plan& plan;
  const TritonProgram program;

 private:
  std::string identity_of(const DeviceCall& call) const {
    const TritonProgram::Kernel& kernel = program.kernels[call.kernel];
    std::string text = kernel.printed.text;
    for (const TritonFunction& f : kernel.printed.functions)
      text += fmt::format("\n{} {} {} {}", to_string(f.programs), f.splits, f.warps, f.stages);
    return text + describe_buffers(plan, call.buffers);
  }

  bool is_known(const DeviceCall& call) const {
    const bool checks = program.kernels[call.kernel].printed.checks;
    for (uint32_t i = 0; i < program.calls.size(); ++i) {
      if (program.calls[i].kernel == call.kernel &&
          depends_on_values(plan.kernels[KernelId(i)], checks))
        return false;
    }
    return true;
  }
};

TritonProgram part_of(const TritonProgram& program, const std::vector<size_t>& kernels) {
  TritonProgram part;
  part.device = program.device;
  part.prelude = program.prelude;
  for (size_t number : kernels) {
    TritonProgram::Kernel kernel = program.kernels[number];
    const size_t first = part.functions.size();
    for (size_t i = 0; i < kernel.printed.functions.size(); ++i)
      part.functions.push_back(program.functions[kernel.first + i]);
    kernel.first = first;
    part.kernels.push_back(std::move(kernel));
  }
  return part;
}

}  // namespace

std::unique_ptr<PrintedKernels> TritonKernelTimes::print(const Plan& plan) {
  Result<TritonProgram> program = print_triton_program(plan, device_);
  if (!program) return nullptr;
  return std::make_unique<TritonKernels>(plan, std::move(*program));
}

std::string TritonKernelTimes::open() {
  Result<std::unique_ptr<KernelTimer>> timer = KernelTimer::open(tools_.driver, tools_.device);
  if (!timer) return timer.reason();
  timer_ = std::move(*timer);
  return {};
}

std::optional<double> TritonKernelTimes::seconds(const PrintedKernels& printed,
                                                 const std::vector<CountedKernel>& kernels,
                                                 MeasuringTime& time) {
  const auto& own_printed = static_cast<const TritonKernels&>(printed);
  const Plan& plan = own_printed.plan;
  const TritonProgram& program = own_printed.program;
  std::vector<size_t> numbers;
  std::vector<size_t> varied;
  for (const auto& [id, count] : kernels) {
    const size_t number = program.calls[id.value].kernel;
    numbers.push_back(number);
    const std::vector<KernelId>& runs = program.kernels[number].runs;
    if (runs.size() != 1) continue;
    const Kernel& kernel = plan.kernels[runs[0]];
    if (kernel.is_product || kernel.attention) varied.push_back(number);
  }
  const TritonProgram own = part_of(program, numbers);
  TritonVariants variants = print_triton_variants(plan, program, varied);
  const Result<std::vector<TritonImage>> own_images = compile_(own);
  const Result<std::vector<TritonImage>> other_images = compile_(variants.program);
  if (!own_images || !other_images) return std::nullopt;
  LoadedProgram loaded(device_program(own, *own_images), tools_.arch);
  LoadedProgram others(device_program(variants.program, *other_images), tools_.arch);
  for (LoadedProgram* each : {&loaded, &others}) {
    const std::string fault = each->load(tools_.driver, tools_.device);
    if (fault.empty()) continue;
    time.log += fault + "\n";
    return std::nullopt;
  }
  double sum = 0;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const std::vector<BufferId>& buffers = program.calls[kernels[i].kernel.value].buffers;
    const auto time_one = [&](const LoadedProgram& from, size_t number) -> std::optional<double> {
      const std::optional<TimedRun> run = from.run_of(plan, number, buffers);
      if (!run) return std::nullopt;
      return time.timed([&] { return timer_->seconds(from.module(), *run); });
    };
    std::optional<double> fastest = time_one(loaded, i);
    for (size_t variant = 0; variant < variants.of.size(); ++variant) {
      if (variants.of[variant] != numbers[i]) continue;
      const std::optional<double> other = time_one(others, variant);
      if (other && (!fastest || *other < *fastest)) fastest = other;
    }
    if (!fastest) return std::nullopt;
    sum += *fastest * static_cast<double>(kernels[i].count);
  }
  return sum;
}

}  // namespace litz
