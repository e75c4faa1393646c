// Chooses by measuring which matrix products, convolutions and attention of a graph are kernels
// and which are the library's calls.
//
// Candidates that are alike are decided together. The graph is planned both ways; the steps that
// the plans do not have in common are timed on the device, and the difference decides. So what
// reads a product counts as it is in either plan: as part of the product's kernel, as a kernel of
// its own, or as part of another one. How kernels are printed and timed is the device's
// (triton_kernel_times.h, cpp_kernel_times.h).
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lowering/lowering.h"
#include "schedule/plan.h"
#include "support/error.h"

namespace litz {

// By KernelCandidate::key: whether they are kernels.
using KernelChoices = std::map<std::string, bool>;

struct PlannedCandidates {
  Plan plan;
  std::vector<KernelCandidate> candidates;
};

// The seconds that measuring may take, and a log of what goes wrong.
class MeasuringTime {
 public:
  explicit MeasuringTime(double seconds) : seconds_(seconds) {}

  bool is_left() const { return used_ < seconds_; }
  double used() const { return used_; }

  // What `measure` gives, a Result<double>; nothing where it fails or there is no time left.
  template <class Measure>
  std::optional<double> timed(const Measure& measure) {
    if (!is_left()) return std::nullopt;
    const auto begin = std::chrono::steady_clock::now();
    const Result<double> seconds = measure();
    used_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!seconds) {
      log += seconds.reason() + "\n";
      return std::nullopt;
    }
    return *seconds;
  }

  std::string log;

 private:
  const double seconds_;
  double used_ = 0;
};

// A plan's kernels as a dialect prints them.
class PrintedKernels {
 public:
  virtual ~PrintedKernels() = default;

  struct Launch {
    std::string identity;  // launches of one identity take equal time
    bool is_known = true;  // else it cannot be timed
  };
  // Nothing where the launch of another kernel runs this one, too.
  virtual std::optional<Launch> launch_of(KernelId kernel) const = 0;
};

struct CountedKernel {
  KernelId kernel;
  size_t count = 0;
};

// Prints and times kernels on a device.
class KernelTimes {
 public:
  virtual ~KernelTimes() = default;

  // nullptr where the dialect cannot say it. The plan must outlive what is returned.
  virtual std::unique_ptr<PrintedKernels> print(const Plan& plan) = 0;
  // Comes before anything is timed: why nothing can be, or an empty string.
  virtual std::string open() = 0;
  // Says what may be timed from here on, to be compiled together; false where that has failed.
  struct Wanted {
    const PrintedKernels* printed;
    KernelId kernel;
  };
  virtual bool prepare(const std::vector<Wanted>& wanted, MeasuringTime& time) = 0;
  // The sum over kernels of one plan.
  virtual std::optional<double> seconds(const PrintedKernels& printed,
                                        const std::vector<CountedKernel>& kernels,
                                        MeasuringTime& time) = 0;
  // How often each candidate is measured both ways in turn; the fastest counts.
  virtual int rounds() const = 0;
  // Whether something else keeps the device from timing as it would alone.
  virtual bool is_disturbed() const = 0;
  // What is no slower as a kernel is one; else the library gets what it is no slower with.
  virtual bool prefers_kernels() const = 0;
};

struct BothWays {
  double kernel_seconds = 0;   // of all steps of the plans that differ: with the kernel
  double library_seconds = 0;  // and without
};

struct ChoosingTools {
  std::function<PlannedCandidates(const KernelChoices&)> plan;
  // Seconds that a call of the library takes (library_call.h).
  std::function<Result<double>(const std::string&)> time_library;
  KernelTimes* kernels = nullptr;
  double seconds = 0;  // that measuring may take, without compiling
  // What was measured before of a candidate and the steps that differ, both as text; may be empty.
  std::function<std::optional<BothWays>(const std::string& key, const std::string& steps)> recall;
  std::function<void(const std::string& key, const std::string& steps, const BothWays&)> remember;
};

struct MeasuredCandidate {
  std::string key;
  size_t count = 0;  // candidates of the graph that are alike
  bool is_kernel = false;
  double kernel_seconds = 0;
  double library_seconds = 0;
};

struct ChosenKernels {
  KernelChoices choices;
  std::vector<MeasuredCandidate> measured;
  std::string log;
  bool is_finished = false;  // there was time for all of it, and nothing in the way
  double seconds = 0;        // that measuring took
};

// Candidates are what they are without choices where measuring fails. Where the device cannot be
// used at all, why.
Result<ChosenKernels> choose_kernels(const ChoosingTools& tools);

}  // namespace litz
