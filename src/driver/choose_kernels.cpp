#include "driver/choose_kernels.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "driver/library_call.h"
#include "driver/loaded_program.h"
#include "runtime/kernel_timer.h"

namespace litz {
namespace {

constexpr size_t kMostCandidates = 12;  // that are measured
constexpr double kLeastShare = 0.01;    // of all candidates' arithmetic that one has
constexpr double kNotableGain = 0.97;   // of the library's time: more than noise

// One plan, and its steps by what tells apart those that take different time.
struct Side {
  PlannedCandidates planned;
  TritonProgram program;
  struct Step {
    size_t count = 0;
    KernelId kernel;  // one of the step's; invalid: it calls the library
    std::string call;
    bool is_known = true;  // else it cannot be timed
  };
  std::map<std::string, Step> steps;
};

std::string identity_of(const Plan& plan, const TritonProgram& program, const DeviceCall& call) {
  const TritonProgram::Kernel& kernel = program.kernels[call.kernel];
  std::string text = kernel.printed.text;
  for (const TritonFunction& f : kernel.printed.functions)
    text += fmt::format("\n{} {} {} {}", to_string(f.programs), f.splits, f.warps, f.stages);
  for (BufferId buffer : call.buffers) {
    const Index elements = storage_elements(*plan.program, plan.program->buffer(buffer));
    text += "\n" + std::string(to_string(plan.program->buffer(buffer).dtype)) + " " +
            to_string(elements);
  }
  return text;
}

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
      const DeviceCall& call = side.program.calls[id.value];
      if (call.launched_with != id) continue;
      Side::Step& found = side.steps[identity_of(plan, side.program, call)];
      ++found.count;
      found.kernel = id;
      const bool checks = side.program.kernels[call.kernel].printed.checks;
      for (uint32_t i = 0; i < side.program.calls.size(); ++i) {
        if (side.program.calls[i].kernel == call.kernel)
          found.is_known = found.is_known && !depends_on_values(plan.kernels[KernelId(i)], checks);
      }
    }
  }
}

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

class Chooser {
 public:
  Chooser(const ChoosingTools& choosing, const TuningTools& tools, const TritonDevice& device)
      : choosing_(choosing), tools_(tools), device_(device) {}

  Result<ChosenKernels> run() {
    std::optional<Side> base = side_of({});
    if (!base || base->planned.candidates.empty()) {
      chosen_.is_finished = true;
      return std::move(chosen_);
    }
    Result<std::unique_ptr<KernelTimer>> timer = KernelTimer::open(tools_.driver, tools_.device);
    if (!timer) return Unsupported{timer.reason()};
    timer_ = std::move(*timer);
    for (const auto& [candidate, count] : worth_measuring(base->planned.candidates))
      measure(*base, candidate, count);
    chosen_.is_finished = has_time();
    return std::move(chosen_);
  }

 private:
  bool has_time() const { return chosen_.seconds < tools_.seconds; }

  std::optional<Side> side_of(const KernelChoices& choices) {
    Side side;
    side.planned = choosing_.plan(choices);
    Result<TritonProgram> program = print_triton_program(side.planned.plan, device_);
    if (!program) return std::nullopt;
    side.program = std::move(*program);
    add_steps(side);
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

  void measure(const Side& base, const KernelCandidate& candidate, size_t count) {
    const std::optional<Side> other = side_of({{candidate.key, !candidate.is_kernel}});
    if (!other) return;
    const std::optional<double> as_is = seconds_without(base, *other);
    const std::optional<double> changed = seconds_without(*other, base);
    if (!as_is || !changed) {
      chosen_.log += candidate.key + ": cannot be measured\n";
      return;
    }
    const double kernel = candidate.is_kernel ? *as_is : *changed;
    const double library = candidate.is_kernel ? *changed : *as_is;
    // What it is without measuring changes for no less than a notable gain, and for the library
    // where there is none.
    const bool is_kernel = candidate.is_kernel ? kernel < library : kernel < library * kNotableGain;
    chosen_.choices[candidate.key] = is_kernel;
    chosen_.measured.push_back({candidate.key, count, is_kernel, kernel, library});
    chosen_.log +=
        fmt::format("{} ({} times): kernel {:.2f} us, library {:.2f} us: {}\n", candidate.key,
                    count, kernel * 1e6, library * 1e6, is_kernel ? "kernel" : "library");
  }

  // Of what `side` has more than `other`.
  std::optional<double> seconds_without(const Side& side, const Side& other) {
    double seconds = 0;
    std::vector<std::pair<KernelId, size_t>> kernels;
    for (const auto& [identity, step] : side.steps) {
      const auto found = other.steps.find(identity);
      const size_t there = found == other.steps.end() ? 0 : found->second.count;
      if (step.count <= there) continue;
      if (!step.is_known) return std::nullopt;
      if (step.kernel.valid()) {
        kernels.emplace_back(step.kernel, step.count - there);
        continue;
      }
      const std::optional<double> each = library_seconds(step.call);
      if (!each) return std::nullopt;
      seconds += *each * static_cast<double>(step.count - there);
    }
    const std::optional<double> own = kernel_seconds(side, kernels);
    if (!own) return std::nullopt;
    return seconds + *own;
  }

  template <class Measure>
  std::optional<double> timed(const Measure& measure) {
    if (!has_time()) return std::nullopt;
    const auto begin = std::chrono::steady_clock::now();
    const Result<double> seconds = measure();
    chosen_.seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!seconds) {
      chosen_.log += seconds.reason() + "\n";
      return std::nullopt;
    }
    return *seconds;
  }

  std::optional<double> library_seconds(const std::string& call) {
    const auto known = library_.find(call);
    if (known != library_.end()) return known->second;
    const std::optional<double> seconds = timed([&] { return choosing_.time_library(call); });
    library_.emplace(call, seconds);
    return seconds;
  }

  // Of kernels so many times each; of products and attention the fastest tile's.
  std::optional<double> kernel_seconds(const Side& side,
                                       const std::vector<std::pair<KernelId, size_t>>& kernels) {
    if (kernels.empty()) return 0;
    std::vector<size_t> numbers;
    std::vector<size_t> varied;
    for (const auto& [id, count] : kernels) {
      const size_t number = side.program.calls[id.value].kernel;
      numbers.push_back(number);
      const std::vector<KernelId>& runs = side.program.kernels[number].runs;
      if (runs.size() != 1) continue;
      const Kernel& kernel = side.planned.plan.kernels[runs[0]];
      if (kernel.is_product || kernel.attention) varied.push_back(number);
    }
    const TritonProgram own = part_of(side.program, numbers);
    TritonVariants variants = print_triton_variants(side.planned.plan, side.program, varied);
    const Result<std::vector<TritonImage>> own_images = choosing_.compile(own);
    const Result<std::vector<TritonImage>> other_images = choosing_.compile(variants.program);
    if (!own_images || !other_images) return std::nullopt;
    LoadedProgram loaded(device_program(own, *own_images), tools_.arch);
    LoadedProgram others(device_program(variants.program, *other_images), tools_.arch);
    for (LoadedProgram* program : {&loaded, &others}) {
      const std::string fault = program->load(tools_.driver, tools_.device);
      if (fault.empty()) continue;
      chosen_.log += fault + "\n";
      return std::nullopt;
    }
    double seconds = 0;
    for (size_t i = 0; i < kernels.size(); ++i) {
      const std::vector<BufferId>& buffers = side.program.calls[kernels[i].first.value].buffers;
      std::optional<double> fastest = time_one(side, loaded, i, buffers);
      for (size_t variant = 0; variant < variants.of.size(); ++variant) {
        if (variants.of[variant] != numbers[i]) continue;
        const std::optional<double> other = time_one(side, others, variant, buffers);
        if (other && (!fastest || *other < *fastest)) fastest = other;
      }
      if (!fastest) return std::nullopt;
      seconds += *fastest * static_cast<double>(kernels[i].second);
    }
    return seconds;
  }

  std::optional<double> time_one(const Side& side, const LoadedProgram& program, size_t kernel,
                                 const std::vector<BufferId>& buffers) {
    const std::optional<TimedRun> run = program.run_of(side.planned.plan, kernel, buffers);
    if (!run) return std::nullopt;
    return timed([&] { return timer_->seconds(program.module(), *run); });
  }

  const ChoosingTools& choosing_;
  const TuningTools& tools_;
  const TritonDevice device_;
  std::unique_ptr<KernelTimer> timer_;
  std::map<std::string, std::optional<double>> library_;  // seconds by call
  ChosenKernels chosen_;
};

}  // namespace

Result<ChosenKernels> choose_kernels(const ChoosingTools& choosing, const TuningTools& tools,
                                     const TritonDevice& device) {
  return Chooser(choosing, tools, device).run();
}

}  // namespace litz
