#include "driver/candidate_plans.h"

#include <memory>
#include <utility>

#include "driver/run_passes.h"
#include "driver/timings.h"
#include "driver/trace.h"
#include "lowering/lowering.h"
#include "schedule/schedule.h"

namespace litz {

std::function<PlannedCandidates(const KernelChoices&)> candidate_planner(
    const Graph& graph, const Options& options, KernelDialect dialect, const DeviceTarget& device) {
  Trace none("");
  Timings unread;
  const auto passed = std::make_shared<const Graph>(run_passes(graph, options, none, unread));
  return [passed, &options, dialect, &device](const KernelChoices& choices) {
    LoweringOptions lowering = lowering_options(options, dialect, device);
    lowering.kernel_choices = choices;
    LoweringResult lowered = lower_graph(*passed, lowering);
    return PlannedCandidates{
        schedule_program(std::make_shared<const Program>(std::move(lowered.program)),
                         schedule_options(options, dialect, device)),
        std::move(lowered.candidates)};
  };
}

}  // namespace litz
