#include <algorithm>

#include "ir/print_program.h"
#include "schedule/print_plan.h"
#include "schedule/schedule_steps.h"

namespace litz {
namespace {

std::string loops_text(const std::vector<Index>& variables) {
  std::string text;
  for (Index variable : variables) {
    if (!variable.is_symbol()) continue;
    text += (text.empty() ? "" : ", ") + to_string(variable) + " < " + to_string(variable.extent());
  }
  return "[" + text + "]";
}

std::string mapping_text(const LoopMapping& mapping) {
  std::string text;
  for (const auto& [variable, value] : mapping) {
    if (variable == value) continue;
    text += (text.empty() ? " with " : ", ") + to_string(variable) + " = " + to_string(value);
  }
  return text;
}

std::string group_text(const ScheduleState& state, GroupId id) {
  const FusionGroup& group = state.fusion->groups[id];
  std::string text = "group " + std::to_string(id.value) + " outer " + loops_text(group.outer);
  if (!group.inner.empty()) text += " inner " + loops_text(group.inner);
  for (size_t i = 0; i < group.predecessors.size(); ++i)
    text += (i == 0 ? " after " : ", ") + std::to_string(group.predecessors[i].value);
  text += "\n";
  for (const GroupMember& member : group.members) {
    const Operation& operation = state.program->operations()[member.operation];
    text += " ";
    if (const auto* library = std::get_if<ExternKernel>(&operation.v)) text += " " + library->name;
    for (BufferId written : buffers_written(operation))
      text += " " + state.program->buffer(written).name;
    text += mapping_text(member.mapping) + "\n";
  }
  return text;
}

std::string groups_text(const ScheduleState& state) {
  std::string text;
  if (!state.order.empty()) {
    for (GroupId id : state.order) text += group_text(state, id);
    return text;
  }
  for (uint32_t i = 0; i < state.fusion->groups.size(); ++i) text += group_text(state, GroupId(i));
  return text;
}

}  // namespace

std::string to_string(const ScheduleState& state) {
  if (state.plan) return to_string(*state.plan);
  if (state.fusion) return groups_text(state);
  return to_string(*state.program, state.operations);
}

std::string_view form_of(const ScheduleState& state) {
  if (state.plan) return "plan";
  return state.fusion ? "groups" : "program";
}

}  // namespace litz
