#include "driver/tune_triton.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "driver/loaded_program.h"
#include "runtime/kernel_timer.h"

namespace litz {
namespace {

constexpr double kLeastShare = 0.01;   // of the kernels' time that one takes, to be tuned
constexpr size_t kMostKernels = 16;    // that are tuned
constexpr double kNotableGain = 0.97;  // of the time that there was: more than noise
constexpr double kConfirmedGain = 0.98;

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
