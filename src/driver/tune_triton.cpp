#include "driver/tune_triton.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "runtime/kernel_timer.h"

namespace litz {
namespace {

constexpr double kLeastShare = 0.01;   // of the kernels' time that one takes, to be tuned
constexpr size_t kMostKernels = 16;    // that are tuned
constexpr double kNotableGain = 0.97;  // of the time that there was: more than noise
constexpr double kConfirmedGain = 0.98;

std::optional<int64_t> bytes_of(const Plan& plan, BufferId id) {
  const Program& program = *plan.program;
  const Index elements = storage_elements(program, program.buffer(id));
  if (!elements.is_constant()) return std::nullopt;
  return elements.constant() * static_cast<int64_t>(size_of(program.buffer(id).dtype));
}

// What would not be the same on zeros: stores to positions known only at run time, which all of
// them would be one, and checks of what the kernel itself has written before.
bool depends_on_values(const Kernel& kernel, bool checks) {
  return std::any_of(kernel.stores.begin(), kernel.stores.end(), [&](const KernelStore& s) {
    const bool reads =
        std::find(kernel.reads.begin(), kernel.reads.end(), s.buffer) != kernel.reads.end();
    return !s.runtime_indices.empty() || s.mode != StoreMode::kStore || (checks && reads);
  });
}

// The functions of a program, loaded.
class LoadedProgram {
 public:
  LoadedProgram(const TritonProgram& program, const std::vector<TritonImage>& images,
                const std::string& arch)
      : program_(program), images_(images), arch_(arch) {}

  // What went wrong, or an empty string.
  std::string load(const std::shared_ptr<const CudaDriver>& driver, int32_t device) {
    numbers_.assign(images_.size(), -1);
    for (size_t i = 0; i < images_.size(); ++i) {
      if (images_[i].bytes.empty()) continue;
      numbers_[i] = static_cast<int32_t>(kernels_.size());
      code_images_.push_back(
          {images_[i].bytes.data(), static_cast<int64_t>(images_[i].bytes.size())});
      kernels_.push_back({program_.functions[i].name.c_str(), numbers_[i]});
    }
    code_ = {arch_.c_str(), code_images_.data(), kernels_.data(),
             static_cast<int32_t>(code_images_.size()), static_cast<int32_t>(kernels_.size())};
    modules_ = std::make_unique<DeviceModules>(driver, &code_);
    Result<DeviceModule*> module = modules_->on(device);
    if (!module) return module.reason();
    module_ = *module;
    return {};
  }

  DeviceModule& module() const { return *module_; }

  // Nothing where a size is known only at run time or a function has no code.
  std::optional<TimedRun> run_of(const Plan& plan, size_t kernel,
                                 const std::vector<BufferId>& buffers) const {
    const TritonProgram::Kernel& k = program_.kernels[kernel];
    TimedRun run;
    if (!k.printed.symbols.empty()) return std::nullopt;
    for (const TritonKernel::Partial& partial : k.printed.partials)
      run.memory_bytes.push_back(partial_bytes(partial));
    for (BufferId buffer : buffers) {
      const std::optional<int64_t> bytes = bytes_of(plan, buffer);
      if (!bytes) return std::nullopt;
      run.memory_bytes.push_back(*bytes);
    }
    for (size_t i = 0; i < k.printed.functions.size(); ++i) {
      const TritonFunction& function = k.printed.functions[i];
      const TritonImage& image = images_[k.first + i];
      if (numbers_[k.first + i] < 0 || !function.programs.is_constant()) return std::nullopt;
      run.launches.push_back(
          {numbers_[k.first + i],
           {function.programs.constant(), function.splits, 1},
           image.threads,
           image.shared_bytes,
           image.added_arguments,
           image.scratch_bytes * function.programs.constant() * function.splits});
    }
    return run;
  }

 private:
  const TritonProgram& program_;
  const std::vector<TritonImage>& images_;
  const std::string arch_;
  std::vector<int32_t> numbers_;  // by function; -1: it has no code
  std::vector<LitzDeviceImage> code_images_;
  std::vector<LitzDeviceKernel> kernels_;
  LitzDeviceCode code_{};
  std::unique_ptr<DeviceModules> modules_;
  DeviceModule* module_ = nullptr;
};

class Tuner {
 public:
  Tuner(const Plan& plan, TritonProgram& program, std::vector<TritonImage>& images,
        const TuningTools& tools)
      : plan_(plan), program_(program), images_(images), tools_(tools) {}

  Result<Tuned> run() {
    Result<std::unique_ptr<KernelTimer>> timer = KernelTimer::open(tools_.driver, tools_.device);
    if (!timer) return Unsupported{timer.reason()};
    timer_ = std::move(*timer);
    LoadedProgram program(program_, images_, tools_.arch);
    if (std::string fault = program.load(tools_.driver, tools_.device); !fault.empty())
      return Unsupported{std::move(fault)};
    measure_all(program);
    const std::vector<size_t> chosen = worth_tuning();
    if (chosen.empty()) return finish();
    const TritonVariants variants = print_triton_variants(plan_, program_, chosen);
    const Result<std::vector<TritonImage>> images = tools_.compile(variants.program);
    if (!images) return Unsupported{images.reason()};
    LoadedProgram others(variants.program, *images, tools_.arch);
    if (std::string fault = others.load(tools_.driver, tools_.device); !fault.empty())
      return Unsupported{std::move(fault)};
    std::vector<std::pair<size_t, size_t>> better;  // a kernel, the variant that it becomes
    for (size_t kernel : chosen) {
      if (const std::optional<size_t> variant = best(program, others, variants, kernel))
        better.emplace_back(kernel, *variant);
    }
    for (const auto& [kernel, variant] : better) {
      replace_images(program_.kernels[kernel], variants.program.kernels[variant], *images);
      replace_kernel(program_, kernel, variants.program, variant);
    }
    return finish();
  }

 private:
  void replace_images(const TritonProgram::Kernel& kernel, const TritonProgram::Kernel& variant,
                      const std::vector<TritonImage>& others) {
    const auto own = images_.begin() + static_cast<std::ptrdiff_t>(kernel.first);
    const auto other = others.begin() + static_cast<std::ptrdiff_t>(variant.first);
    const auto count = [](const TritonProgram::Kernel& k) {
      return static_cast<std::ptrdiff_t>(k.printed.functions.size());
    };
    images_.insert(images_.erase(own, own + count(kernel)), other, other + count(variant));
  }

  Tuned finish() { return {std::move(log_), has_time()}; }
  bool has_time() const { return used_ < tools_.seconds; }

  // By kernel of the program the call that it was printed for first.
  const TritonProgram::Call* call_of(size_t kernel) const {
    for (const TritonProgram::Call& call : program_.calls) {
      if (call.kernel == kernel) return &call;
    }
    return nullptr;
  }

  std::optional<double> time(const LoadedProgram& program, size_t number, size_t kernel) {
    const TritonProgram::Call* call = call_of(kernel);
    if (call == nullptr || !has_time()) return std::nullopt;
    const std::optional<TimedRun> run = program.run_of(plan_, number, call->buffers);
    if (!run) return std::nullopt;
    const auto begin = std::chrono::steady_clock::now();
    const Result<double> seconds = timer_->seconds(program.module(), *run);
    used_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!seconds) {
      log_ += program_.kernels[kernel].name + ": " + seconds.reason() + "\n";
      return std::nullopt;
    }
    return *seconds;
  }

  void measure_all(const LoadedProgram& program) {
    std::vector<double> calls(program_.kernels.size(), 0);
    for (const TritonProgram::Call& call : program_.calls) ++calls[call.kernel];
    shares_.assign(program_.kernels.size(), 0);
    for (size_t kernel = 0; kernel < shares_.size(); ++kernel) {
      const KernelId id = program_.kernels[kernel].kernel;
      if (!id.valid() ||
          depends_on_values(plan_.kernels[id], program_.kernels[kernel].printed.checks))
        continue;
      shares_[kernel] = time(program, kernel, kernel).value_or(0) * calls[kernel];
    }
    const double total = std::accumulate(shares_.begin(), shares_.end(), 0.0);
    for (double& share : shares_) share /= std::max(total, 1e-12);
  }

  std::vector<size_t> worth_tuning() const {
    std::vector<size_t> chosen;
    for (size_t kernel = 0; kernel < shares_.size(); ++kernel) {
      if (shares_[kernel] >= kLeastShare) chosen.push_back(kernel);
    }
    std::sort(chosen.begin(), chosen.end(),
              [&](size_t a, size_t b) { return shares_[a] > shares_[b]; });
    if (chosen.size() > kMostKernels) chosen.resize(kMostKernels);
    return chosen;
  }

  // The fastest variant of a kernel, if it is faster than the kernel is and stays so in a second
  // measurement.
  std::optional<size_t> best(const LoadedProgram& program, const LoadedProgram& others,
                             const TritonVariants& variants, size_t kernel) {
    const std::optional<double> now = time(program, kernel, kernel);
    if (!now) return std::nullopt;
    double fastest = *now * kNotableGain;
    std::optional<size_t> found;
    std::string measured;
    for (size_t variant = 0; variant < variants.of.size(); ++variant) {
      if (variants.of[variant] != kernel) continue;
      const std::optional<double> other = time(others, variant, kernel);
      if (!other) continue;
      measured +=
          fmt::format("; {} {:.2f}", variants.program.kernels[variant].printed.tile, *other * 1e6);
      if (*other >= fastest) continue;
      fastest = *other;
      found = variant;
    }
    if (found) {
      const std::optional<double> again = time(others, *found, kernel);
      const std::optional<double> before = time(program, kernel, kernel);
      if (!again || !before || *again >= *before * kConfirmedGain) found.reset();
    }
    log_ +=
        fmt::format("{}: {} {:.2f} us{}: {}\n", program_.kernels[kernel].name,
                    program_.kernels[kernel].printed.tile, *now * 1e6, measured,
                    found ? variants.program.kernels[*found].printed.tile : std::string("stays"));
    return found;
  }

  const Plan& plan_;
  TritonProgram& program_;
  std::vector<TritonImage>& images_;
  const TuningTools& tools_;
  std::unique_ptr<KernelTimer> timer_;
  std::vector<double> shares_;  // by kernel of the program
  std::string log_;
  double used_ = 0;  // seconds
};

}  // namespace

Result<Tuned> tune_triton(const Plan& plan, TritonProgram& program,
                          std::vector<TritonImage>& images, const TuningTools& tools) {
  return Tuner(plan, program, images, tools).run();
}

}  // namespace litz
