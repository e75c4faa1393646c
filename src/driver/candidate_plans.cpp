#include "driver/candidate_plans.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "driver/run_passes.h"
#include "driver/timings.h"
#include "driver/trace.h"
#include "lowering/lowering.h"
#include "passes/convolution_candidates.h"
#include "schedule/schedule.h"

namespace litz {
namespace {

Graph pass_through(const Graph& graph, const Options& options, const KernelChoices& choices) {
  Trace none("");
  Timings unread;
  return run_passes(graph, options, none, unread, choices);
}

// As the passes that make kernels of them find them.
std::vector<KernelCandidate> convolutions_of(const Graph& graph, const Options& options) {
  Options without = options;
  without.disable_passes += ",convolutions_as_products,turn_weights,pack_weights";
  return convolution_candidates(pass_through(graph, without, {}), pass_options(options));
}

}  // namespace

std::function<PlannedCandidates(const KernelChoices&)> candidate_planner(
    const Graph& graph, const Options& options, KernelDialect dialect, const DeviceTarget& device) {
  const auto as_is = std::make_shared<const Graph>(pass_through(graph, options, {}));
  auto convolutions = dialect == KernelDialect::kCpp && options.matrix_products == "auto"
                          ? convolutions_of(graph, options)
                          : std::vector<KernelCandidate>();
  return [=, &graph, &options, &device](const KernelChoices& choices) {
    PlannedCandidates planned;
    for (const KernelCandidate& candidate : convolutions) {
      const auto chosen = choices.find(candidate.key);
      planned.candidates.push_back(candidate);
      if (chosen != choices.end()) planned.candidates.back().is_kernel = chosen->second;
    }
    const bool concerns_passes =
        std::any_of(convolutions.begin(), convolutions.end(),
                    [&](const KernelCandidate& c) { return choices.contains(c.key); });
    LoweringOptions lowering = lowering_options(options, dialect, device);
    lowering.kernel_choices = choices;
    LoweringResult lowered =
        lower_graph(concerns_passes ? pass_through(graph, options, choices) : *as_is, lowering);
    planned.candidates.insert(planned.candidates.end(), lowered.candidates.begin(),
                              lowered.candidates.end());
    planned.plan = schedule_program(std::make_shared<const Program>(std::move(lowered.program)),
                                    schedule_options(options, dialect, device));
    return planned;
  };
}

}  // namespace litz
