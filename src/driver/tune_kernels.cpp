#include "driver/tune_kernels.h"

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

class Tuner {
 public:
  Tuner(const Plan& plan, TunableKernels& kernels, const TuningTools& tools)
      : plan_(plan), kernels_(kernels), tools_(tools) {}

  Result<Tuned> run() {
    Result<std::unique_ptr<KernelTimer>> timer = KernelTimer::open(tools_.driver, tools_.device);
    if (!timer) return Unsupported{timer.reason()};
    timer_ = std::move(*timer);
    LoadedProgram program(kernels_.program(), tools_.arch);
    if (std::string fault = program.load(tools_.driver, tools_.device); !fault.empty())
      return Unsupported{std::move(fault)};
    measure_all(program);
    const std::vector<size_t> chosen = worth_tuning();
    if (chosen.empty()) return finish();
    Result<TunableKernels::Variants> variants = kernels_.make_variants(chosen);
    if (!variants) return Unsupported{variants.reason()};
    if (variants->of.empty()) return finish();
    LoadedProgram others(std::move(variants->program), tools_.arch);
    if (std::string fault = others.load(tools_.driver, tools_.device); !fault.empty())
      return Unsupported{std::move(fault)};
    for (size_t kernel : chosen) {
      const std::optional<size_t> variant = best(program, others, variants->of, kernel);
      if (!variant) continue;
      kernels_.replace(kernel, *variant);
      ++tuned_.replaced;
    }
    return finish();
  }

 private:
  Tuned finish() {
    tuned_.is_finished = has_time();
    return std::move(tuned_);
  }
  bool has_time() const { return used_ < tools_.seconds; }

  // Of a kernel of the program or a variant of it, `number` in `program`.
  std::optional<double> time(const LoadedProgram& program, size_t number, size_t kernel) {
    const DeviceCalls& calls = kernels_.calls();
    const auto call = std::find_if(calls.begin(), calls.end(), [&](const DeviceCall& c) {
      return c.kernel == kernel && is_launch(c);
    });
    if (call == calls.end() || !has_time()) return std::nullopt;
    const std::optional<TimedRun> run = program.run_of(plan_, number, call->buffers);
    if (!run) return std::nullopt;
    const auto begin = std::chrono::steady_clock::now();
    const Result<double> seconds = timer_->seconds(program.module(), *run);
    used_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!seconds) {
      tuned_.log += program.program().kernels[number].name + ": " + seconds.reason() + "\n";
      return std::nullopt;
    }
    return *seconds;
  }

  // Else another call launches it, too.
  bool is_launch(const DeviceCall& call) const {
    return call.launched_with.value == static_cast<size_t>(&call - kernels_.calls().data());
  }

  void measure_all(const LoadedProgram& program) {
    const std::vector<DeviceProgram::Kernel>& kernels = program.program().kernels;
    std::vector<double> launches(kernels.size(), 0);
    for (const DeviceCall& call : kernels_.calls()) {
      if (is_launch(call)) ++launches[call.kernel];
    }
    shares_.assign(kernels.size(), 0);
    for (size_t kernel = 0; kernel < shares_.size(); ++kernel) {
      const bool depends =
          std::any_of(kernels[kernel].runs.begin(), kernels[kernel].runs.end(), [&](KernelId id) {
            return depends_on_values(plan_.kernels[id], kernels[kernel].checks);
          });
      if (!depends) shares_[kernel] = time(program, kernel, kernel).value_or(0) * launches[kernel];
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
                             const std::vector<size_t>& variants, size_t kernel) {
    const std::optional<double> now = time(program, kernel, kernel);
    if (!now) return std::nullopt;
    const DeviceProgram::Kernel& own = program.program().kernels[kernel];
    const auto tile_of = [&](size_t variant) { return others.program().kernels[variant].tile; };
    double fastest = *now * kNotableGain;
    std::optional<size_t> found;
    std::string measured;
    for (size_t variant = 0; variant < variants.size(); ++variant) {
      if (variants[variant] != kernel) continue;
      const std::optional<double> other = time(others, variant, kernel);
      if (!other) continue;
      measured += fmt::format("; {} {:.2f}", tile_of(variant), *other * 1e6);
      if (*other >= fastest) continue;
      fastest = *other;
      found = variant;
    }
    if (found) {
      const std::optional<double> again = time(others, *found, kernel);
      const std::optional<double> before = time(program, kernel, kernel);
      if (!again || !before || *again >= *before * kConfirmedGain) found.reset();
    }
    tuned_.log += fmt::format("{}: {} {:.2f} us{}: {}\n", own.name, own.tile, *now * 1e6, measured,
                              found ? tile_of(*found) : std::string("stays"));
    return found;
  }

  const Plan& plan_;
  TunableKernels& kernels_;
  const TuningTools& tools_;
  std::unique_ptr<KernelTimer> timer_;
  std::vector<double> shares_;  // by kernel of the program
  Tuned tuned_;
  double used_ = 0;  // seconds
};

}  // namespace

Result<Tuned> tune_kernels(const Plan& plan, TunableKernels& kernels, const TuningTools& tools) {
  return Tuner(plan, kernels, tools).run();
}

}  // namespace litz
