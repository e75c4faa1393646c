// The steps of the scheduler, in the order in which they run. The driver gives each one its timing,
// dump and verification; litz-opt runs up to one by name.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/fuse_loops.h"
#include "schedule/inline_producers.h"
#include "schedule/plan.h"
#include "schedule/schedule.h"

namespace litz {

// What stands between two steps: each step adds the next part.
struct ScheduleState {
  explicit ScheduleState(std::shared_ptr<const Program> unscheduled);

  std::shared_ptr<const Program> program;
  AbsorbedOperations absorbed;
  std::vector<OperationId> operations;  // to be done, in program order
  std::optional<FusionResult> fusion;
  std::vector<GroupId> order;
  std::optional<Plan> plan;
};

struct ScheduleStep {
  std::string_view name;     // of the function
  std::string_view doc;      // one line
  std::string_view without;  // what it does where its option is off; empty where it has none
  void (*run)(ScheduleState& state, const ScheduleOptions& options);
};

std::span<const ScheduleStep> schedule_steps();
// nullptr where there is none of that name.
const ScheduleStep* find_schedule_step(std::string_view name);

// The last part as text: the program, the groups or the plan; and which of them it is, in a word.
std::string to_string(const ScheduleState& state);
std::string_view form_of(const ScheduleState& state);

}  // namespace litz
