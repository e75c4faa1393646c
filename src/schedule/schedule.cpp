#include "schedule/schedule.h"

#include <utility>

#include "schedule/build_kernels.h"
#include "schedule/combine_kernels.h"
#include "schedule/eliminate_dead_operations.h"
#include "schedule/fuse_loops.h"
#include "schedule/inline_producers.h"
#include "schedule/join_column_sums.h"
#include "schedule/needed_buffers.h"
#include "schedule/order_groups.h"
#include "schedule/plan_memory.h"
#include "schedule/schedule_steps.h"

namespace litz {
namespace {

std::vector<OperationId> all_operations(const Program& program) {
  std::vector<OperationId> all;
  for (uint32_t i = 0; i < program.operations().size(); ++i) all.emplace_back(i);
  return all;
}

void inline_step(ScheduleState& state, const ScheduleOptions& options) {
  if (!options.inline_producers) return;
  InlinedProgram inlined = inline_producers(*state.program, options);
  state.program = std::make_shared<Program>(std::move(inlined.program));
  state.absorbed = std::move(inlined.absorbed);
  state.operations = all_operations(*state.program);
}

void eliminate_step(ScheduleState& state, const ScheduleOptions&) {
  state.operations = live_operations(*state.program, state.absorbed);
}

void fuse_step(ScheduleState& state, const ScheduleOptions& options) {
  state.fusion = fuse_loops(*state.program, state.operations, options);
}

void order_step(ScheduleState& state, const ScheduleOptions& options) {
  state.order = order_groups(*state.program, *state.fusion, options.order_groups);
}

void build_step(ScheduleState& state, const ScheduleOptions&) {
  const FusionResult& fusion = *state.fusion;
  const std::vector<bool> needed = needed_buffers(*state.program, state.operations, fusion);
  Plan& plan = state.plan.emplace();
  plan.program = state.program;
  plan.not_fused = fusion.not_fused;
  for (GroupId g : state.order) {
    const FusionGroup& group = fusion.groups[g];
    if (group.kind == FusionGroup::Kind::kExtern) {
      plan.steps.push_back({group.members[0].operation});
      continue;
    }
    for (Kernel& kernel : build_kernels(*state.program, group, needed, state.absorbed)) {
      plan.steps.push_back({plan.kernels.push_back(std::move(kernel))});
    }
  }
}

void join_step(ScheduleState& state, const ScheduleOptions& options) {
  if (!options.join_column_sums || options.column_sums.elements == 0) return;
  join_column_sums(*state.plan, options);
}

void combine_step(ScheduleState& state, const ScheduleOptions& options) {
  if (!options.combine_kernels || options.combined_iterations == 0) return;
  combine_kernels(*state.plan, options.combined_iterations);
}

void memory_step(ScheduleState& state, const ScheduleOptions& options) {
  plan_memory(*state.plan, options.reuse_memory);
}

constexpr ScheduleStep kSteps[] = {
    {"inline_producers", "Computes cheap values where they are used.",
     "inline_producers=false: every value is computed once", inline_step},
    // What was inlined everywhere is dead; the steps that follow count on loops that are walked.
    {"eliminate_dead_operations", "Leaves out what nobody reads and loops without elements.", "",
     eliminate_step},
    {"fuse_loops", "Lets operations share kernels.", "fuse=false: a kernel for each operation",
     fuse_step},
    {"order_groups", "Lets kernels that free memory run first.",
     "order_groups=false: the order of the program", order_step},
    {"build_kernels", "Turns groups into kernels of loops and stages.", "", build_step},
    // Whatever it joins needs no memory in between.
    {"join_column_sums", "Lets a kernel of rows sum up their columns, where the dialect can.",
     "join_column_sums=false: sums of columns are kernels of their own", join_step},
    // What runs at once must not share memory.
    {"combine_kernels", "Lets small independent kernels run at once, where the dialect can.",
     "combine_kernels=false: one after the other", combine_step},
    {"plan_memory", "Lays buffers into one workspace, where they share bytes.",
     "reuse_memory=false: bytes of its own for each buffer", memory_step},
};

}  // namespace

ScheduleState::ScheduleState(std::shared_ptr<const Program> unscheduled)
    : program(std::move(unscheduled)), operations(all_operations(*program)) {
  absorbed.resize(program->operations().size());
}

std::span<const ScheduleStep> schedule_steps() { return kSteps; }

const ScheduleStep* find_schedule_step(std::string_view name) {
  for (const ScheduleStep& step : kSteps) {
    if (step.name == name) return &step;
  }
  return nullptr;
}

Plan schedule_program(std::shared_ptr<const Program> program, const ScheduleOptions& options) {
  ScheduleState state(std::move(program));
  for (const ScheduleStep& step : kSteps) step.run(state, options);
  return std::move(*state.plan);
}

}  // namespace litz
