#include "schedule/needed_buffers.h"

#include <algorithm>

#include "schedule/expr_cost.h"

namespace litz {
namespace {

bool may_be_empty(const LoopNest& loops) {
  return std::any_of(loops.extents.begin(), loops.extents.end(),
                     [](Index extent) { return extent.range().lo < 1; });
}

// Whether all that the operation reads is computed where it shares a kernel with those who make it.
bool computes_what_it_reads(const Operation& operation) {
  if (const auto* op = std::get_if<Reduction>(&operation.v)) {
    if (may_be_empty(op->loops) || may_be_empty(op->reduction)) return false;
  } else if (std::holds_alternative<Attention>(operation.v)) {
    return false;  // it leaves out keys that are masked
  } else if (const auto* op = std::get_if<Pointwise>(&operation.v)) {
    if (may_be_empty(op->loops)) return false;
  }
  bool masked = false;
  visit_postorder(expressions(operation),
                  [&](Expr e) { masked = masked || e.op() == ExprOp::kMasked; });
  return !masked;
}

// Results with checks that nobody computes for all elements unless they are stored.
void add_unfinished_checks(const Program& program, const std::vector<OperationId>& operations,
                           std::vector<bool>& needed) {
  std::vector<OperationId> checking;
  for (OperationId id : operations) {
    if (has_checks(program.operations()[id])) checking.push_back(id);
  }
  if (checking.empty()) return;
  std::vector<bool> computed(program.buffers().size(), false);
  for (OperationId id : operations) {
    const Operation& operation = program.operations()[id];
    if (!computes_what_it_reads(operation)) continue;
    for (BufferId read : buffers_read(operation)) computed[read.value] = true;
  }
  for (OperationId id : checking) {
    for (BufferId written : buffers_written(program.operations()[id])) {
      if (!computed[written.value]) needed[written.value] = true;
    }
  }
}

}  // namespace

std::vector<bool> needed_buffers(const Program& program, const std::vector<OperationId>& operations,
                                 const FusionResult& fusion) {
  std::vector<bool> needed(program.buffers().size(), false);
  for (const ProgramOutput& output : program.outputs) {
    if (const auto* view = std::get_if<BufferView>(&output.v)) needed[view->buffer.value] = true;
  }
  for (uint32_t i = 0; i < program.buffers().size(); ++i) {
    if (program.buffer(BufferId(i)).kind == BufferKind::kInput) needed[i] = true;
  }
  IdVector<OperationId, GroupId> group_of_operation;
  group_of_operation.resize(program.operations().size());
  for (uint32_t i = 0; i < fusion.groups.size(); ++i) {
    for (const GroupMember& member : fusion.groups[GroupId(i)].members)
      group_of_operation[member.operation] = GroupId(i);
  }
  for (OperationId id : operations) {
    for (BufferId read : buffers_read(program.operations()[id])) {
      if (fusion.group_of_buffer[read] != group_of_operation[id]) needed[read.value] = true;
    }
  }
  add_unfinished_checks(program, operations, needed);
  return needed;
}

}  // namespace litz
