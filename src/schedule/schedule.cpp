#include "schedule/schedule.h"

#include "schedule/build_kernels.h"
#include "schedule/eliminate_dead_operations.h"
#include "schedule/fuse_loops.h"
#include "schedule/inline_producers.h"
#include "schedule/order_groups.h"
#include "schedule/plan_memory.h"

namespace litz {
namespace {

// Buffers that somebody outside the kernel that makes them looks at.
std::vector<bool> needed_buffers(const Program& program, const std::vector<OperationId>& operations,
                                 const FusionResult& fusion) {
  std::vector<bool> needed(program.buffers().size(), false);
  for (const ProgramOutput& output : program.outputs) {
    if (const auto* view = std::get_if<BufferView>(&output.v)) needed[view->buffer.value] = true;
  }
  for (uint32_t i = 0; i < program.buffers().size(); ++i) {
    if (program.buffer(BufferId(i)).kind == BufferKind::kInput) needed[i] = true;
  }
  std::vector<uint32_t> group_of_operation(program.operations().size(), kNoGroup);
  for (uint32_t g = 0; g < fusion.groups.size(); ++g) {
    for (const GroupMember& member : fusion.groups[g].members)
      group_of_operation[member.operation.value] = g;
  }
  for (OperationId id : operations) {
    for (BufferId read : buffers_read(program.operations()[id])) {
      if (fusion.group_of_buffer[read.value] != group_of_operation[id.value])
        needed[read.value] = true;
    }
  }
  return needed;
}

}  // namespace

Plan schedule_program(std::shared_ptr<const Program> program, const ScheduleOptions& options) {
  AbsorbedOperations absorbed;
  absorbed.resize(program->operations().size());
  if (options.inline_producers) {
    InlinedProgram inlined = inline_producers(*program);
    program = std::make_shared<Program>(std::move(inlined.program));
    absorbed = std::move(inlined.absorbed);
  }
  const std::vector<OperationId> operations = live_operations(*program);
  FusionResult fusion = fuse_loops(*program, operations, options);
  const std::vector<bool> needed = needed_buffers(*program, operations, fusion);

  Plan plan;
  plan.program = program;
  plan.not_fused = std::move(fusion.not_fused);
  for (uint32_t g : order_groups(*program, fusion)) {
    const FusionGroup& group = fusion.groups[g];
    if (group.kind == FusionGroup::Kind::kExtern) {
      plan.steps.push_back({group.members[0].operation});
      continue;
    }
    for (Kernel& kernel : build_kernels(*program, group, needed, absorbed)) {
      plan.steps.push_back({plan.kernels.push_back(std::move(kernel))});
    }
  }
  plan_memory(plan, options.reuse_memory);
  return plan;
}

}  // namespace litz
