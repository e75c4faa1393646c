#include "driver/choose_kernels.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "driver/library_call.h"

namespace litz {
namespace {

constexpr size_t kMostCandidates = 12;  // that are measured
constexpr double kLeastShare = 0.01;    // of all candidates' arithmetic that one has
constexpr double kNotableGain = 0.97;   // of the other way's time: more than noise
constexpr int kMostTries = 4;           // for each round, where something disturbs it

// One plan, and its steps by what tells apart those that take different time.
struct Side {
  PlannedCandidates planned;
  std::unique_ptr<PrintedKernels> printed;
  struct Step {
    size_t count = 0;
    KernelId kernel;  // one of the step's; invalid: it calls the library
    std::string call;
    bool is_known = true;  // else it cannot be timed
  };
  std::map<std::string, Step> steps;
};

void add_steps(Side& side) {
  const Plan& plan = side.planned.plan;
  for (const Step& step : plan.steps) {
    if (const auto* id = std::get_if<OperationId>(&step.v)) {
      const auto& call = std::get<ExternKernel>(plan.program->operations()[*id].v);
      const std::optional<std::string> text = describe_library_call(call);
      Side::Step& found = side.steps["library " + (text ? *text : call.schema + call.node)];
      ++found.count;
      found.call = text.value_or("");
      found.is_known = text.has_value();
      continue;
    }
    for (KernelId id : kernels_of(step)) {
      const std::optional<PrintedKernels::Launch> launch = side.printed->launch_of(id);
      if (!launch) continue;
      Side::Step& found = side.steps[launch->identity];
      ++found.count;
      found.kernel = id;
      found.is_known = found.is_known && launch->is_known;
    }
  }
}

// What one plan has more than another one.
struct Difference {
  const Side* side = nullptr;
  std::vector<CountedKernel> kernels;
  std::vector<std::pair<std::string, size_t>> calls;
  std::string text;  // of all its steps, and how many
  bool is_known = true;
};

Difference difference(const Side& side, const Side& other) {
  Difference more;
  more.side = &side;
  for (const auto& [identity, step] : side.steps) {
    const auto found = other.steps.find(identity);
    const size_t there = found == other.steps.end() ? 0 : found->second.count;
    if (step.count <= there) continue;
    const size_t count = step.count - there;
    more.text += fmt::format("{} times {}\n", count, identity);
    more.is_known = more.is_known && step.is_known;
    if (step.kernel.valid()) {
      more.kernels.push_back({step.kernel, count});
    } else {
      more.calls.emplace_back(step.call, count);
    }
  }
  return more;
}

class Chooser {
 public:
  explicit Chooser(const ChoosingTools& tools)
      : tools_(tools), kernels_(*tools.kernels), time_(tools.seconds) {}

  Result<ChosenKernels> run() {
    const std::unique_ptr<Side> base = side_of({});
    if (base == nullptr || base->planned.candidates.empty()) {
      chosen_.is_finished = true;
      return std::move(chosen_);
    }
    for (const auto& [candidate, count] : worth_measuring(base->planned.candidates))
      add_case(*base, candidate, count);
    if (std::string fault = measure_all(); !fault.empty()) return Unsupported{std::move(fault)};
    for (const Case& c : cases_) decide(c);
    chosen_.seconds = time_.used();
    chosen_.log += time_.log;
    return std::move(chosen_);
  }

 private:
  // A candidate, planned both ways.
  struct Case {
    KernelCandidate candidate;
    size_t count = 0;  // that are alike
    std::unique_ptr<Side> other;
    Difference as_is;
    Difference changed;
    std::optional<BothWays> seconds;
    bool is_remembered = false;

    // And there is something to know.
    bool is_known() const {
      return as_is.is_known && changed.is_known && !(as_is.text.empty() && changed.text.empty());
    }
    std::string steps() const { return as_is.text + "instead of\n" + changed.text; }
  };

  std::unique_ptr<Side> side_of(const KernelChoices& choices) {
    auto side = std::make_unique<Side>();
    side->planned = tools_.plan(choices);
    side->printed = kernels_.print(side->planned.plan);
    if (side->printed == nullptr) return nullptr;
    add_steps(*side);
    return side;
  }

  // One candidate of each key, with the most arithmetic first, and how many there are.
  static std::vector<std::pair<KernelCandidate, size_t>> worth_measuring(
      const std::vector<KernelCandidate>& candidates) {
    std::vector<std::pair<KernelCandidate, size_t>> found;
    double total = 0;
    for (const KernelCandidate& candidate : candidates) {
      total += candidate.operations;
      const auto same = std::find_if(found.begin(), found.end(), [&](const auto& other) {
        return other.first.key == candidate.key;
      });
      if (same == found.end()) {
        found.emplace_back(candidate, 1);
      } else {
        ++same->second;
      }
    }
    const auto share = [&](const auto& p) {
      return p.first.operations * static_cast<double>(p.second) / total;
    };
    std::stable_sort(found.begin(), found.end(),
                     [&](const auto& a, const auto& b) { return share(a) > share(b); });
    std::erase_if(found, [&](const auto& p) { return share(p) < kLeastShare; });
    if (found.size() > kMostCandidates) found.resize(kMostCandidates);
    return found;
  }

  void add_case(const Side& base, const KernelCandidate& candidate, size_t count) {
    Case added;
    added.candidate = candidate;
    added.count = count;
    added.other = side_of({{candidate.key, !candidate.is_kernel}});
    if (added.other == nullptr) return;
    added.as_is = difference(base, *added.other);
    added.changed = difference(*added.other, base);
    if (added.is_known() && tools_.recall) {
      added.seconds = tools_.recall(candidate.key, added.steps());
      added.is_remembered = added.seconds.has_value();
    }
    cases_.push_back(std::move(added));
  }

  // Why nothing can be measured, or an empty string.
  std::string measure_all() {
    std::vector<KernelTimes::Wanted> wanted;
    bool any = false;
    for (const Case& c : cases_) {
      if (!c.is_known() || c.seconds) continue;
      any = true;
      for (const Difference* more : {&c.as_is, &c.changed}) {
        for (const CountedKernel& kernel : more->kernels)
          wanted.push_back({more->side->printed.get(), kernel.kernel});
      }
    }
    if (!any) {
      chosen_.is_finished = true;
      return {};
    }
    if (std::string fault = kernels_.open(); !fault.empty()) return fault;
    const bool is_prepared = time_.is_left() && kernels_.prepare(wanted, time_);
    for (Case& c : cases_) {
      if (c.is_known() && !c.seconds) measure(c);
    }
    chosen_.is_finished = is_prepared && time_.is_left() && !is_disturbed_;
    return {};
  }

  void measure(Case& c) {
    std::optional<double> as_is;
    std::optional<double> changed;
    const int rounds = kernels_.rounds();
    for (int round = 0, tried = 0; round < rounds && tried < rounds * kMostTries; ++tried) {
      const std::optional<double> one = seconds_of(c.as_is);
      const std::optional<double> other = one ? seconds_of(c.changed) : std::nullopt;
      if (!other) return;
      if (kernels_.is_disturbed()) continue;
      ++round;
      as_is = std::min(as_is.value_or(*one), *one);
      changed = std::min(changed.value_or(*other), *other);
    }
    if (!as_is) {
      is_disturbed_ = true;
      time_.log += c.candidate.key + ": something else keeps the processors busy\n";
      return;
    }
    const bool is_kernel = c.candidate.is_kernel;
    c.seconds = BothWays{is_kernel ? *as_is : *changed, is_kernel ? *changed : *as_is};
    if (tools_.remember) tools_.remember(c.candidate.key, c.steps(), *c.seconds);
  }

  std::optional<double> seconds_of(const Difference& more) {
    double seconds = 0;
    for (const auto& [call, count] : more.calls) {
      const std::optional<double> each = library_seconds(call);
      if (!each) return std::nullopt;
      seconds += *each * static_cast<double>(count);
    }
    if (more.kernels.empty()) return seconds;
    const std::optional<double> own = kernels_.seconds(*more.side->printed, more.kernels, time_);
    if (!own) return std::nullopt;
    return seconds + *own;
  }

  // Once for each call, where once is enough.
  std::optional<double> library_seconds(const std::string& call) {
    const auto known = library_.find(call);
    if (known != library_.end() && kernels_.rounds() == 1) return known->second;
    const std::optional<double> seconds = time_.timed([&] { return tools_.time_library(call); });
    library_[call] = seconds;
    return seconds;
  }

  // What it is without measuring changes for no less than a notable gain, but for the way that wins
  // where there is none.
  bool is_faster_as_kernel(bool is_kernel, const BothWays& seconds) const {
    const auto [kernel, library] = seconds;
    if (kernels_.prefers_kernels())
      return is_kernel ? kernel * kNotableGain <= library : kernel <= library;
    return is_kernel ? kernel < library : kernel < library * kNotableGain;
  }

  void decide(const Case& c) {
    const std::string& key = c.candidate.key;
    if (!c.seconds) {
      chosen_.log += key + ": cannot be measured\n";
      return;
    }
    const auto [kernel, library] = *c.seconds;
    const bool is_kernel = is_faster_as_kernel(c.candidate.is_kernel, *c.seconds);
    chosen_.choices[key] = is_kernel;
    chosen_.measured.push_back({key, c.count, is_kernel, kernel, library});
    chosen_.log +=
        fmt::format("{} ({} times): kernel {:.2f} us, library {:.2f} us{}: {}\n", key, c.count,
                    kernel * 1e6, library * 1e6, c.is_remembered ? ", measured before" : "",
                    is_kernel ? "kernel" : "library");
  }

  const ChoosingTools& tools_;
  KernelTimes& kernels_;
  MeasuringTime time_;
  std::vector<Case> cases_;
  std::map<std::string, std::optional<double>> library_;  // seconds by call
  bool is_disturbed_ = false;  // some candidate could not be timed for that
  ChosenKernels chosen_;
};

}  // namespace

Result<ChosenKernels> choose_kernels(const ChoosingTools& tools) { return Chooser(tools).run(); }

}  // namespace litz
