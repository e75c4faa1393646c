#include "schedule/eliminate_dead_operations.h"

#include <algorithm>

#include "schedule/expr_cost.h"

namespace litz {
namespace {

bool is_empty(const Buffer& buffer) {
  return std::any_of(buffer.sizes.begin(), buffer.sizes.end(),
                     [](Index size) { return size.is_constant(0); });
}

bool computes_elements(const Program& program, const Operation& operation) {
  const std::vector<BufferId> written = buffers_written(operation);
  return std::any_of(written.begin(), written.end(),
                     [&](BufferId id) { return !is_empty(program.buffer(id)); });
}

// Whether the operation must run, given the buffers that others need.
bool is_live(const Program& program, const Operation& operation, const std::vector<bool>& needed) {
  const auto* library = std::get_if<ExternKernel>(&operation.v);
  if (library != nullptr && (library->has_side_effects || !library->mutated.empty())) return true;
  const std::vector<BufferId> written = buffers_written(operation);
  return std::any_of(written.begin(), written.end(), [&](BufferId id) {
    const Buffer& buffer = program.buffer(id);
    if (library == nullptr && is_empty(buffer)) return false;
    return needed[id.value] || buffer.kind == BufferKind::kInput;
  });
}

}  // namespace

std::vector<OperationId> live_operations(const Program& program,
                                         const AbsorbedOperations& absorbed) {
  std::vector<bool> inside(program.operations().size(), false);
  for (const std::vector<OperationId>& operations : absorbed) {
    for (OperationId id : operations) inside[id.value] = true;
  }
  std::vector<bool> needed(program.buffers().size(), false);
  for (const ProgramOutput& output : program.outputs) {
    if (const auto* view = std::get_if<BufferView>(&output.v)) needed[view->buffer.value] = true;
  }
  std::vector<OperationId> live;
  for (size_t i = program.operations().size(); i-- > 0;) {
    const OperationId id(static_cast<uint32_t>(i));
    const Operation& operation = program.operations()[id];
    const bool checks =
        !inside[i] && has_checks(operation) && computes_elements(program, operation);
    if (!is_live(program, operation, needed) && !checks) continue;
    for (BufferId read : buffers_read(operation)) needed[read.value] = true;
    live.push_back(id);
  }
  std::reverse(live.begin(), live.end());
  return live;
}

}  // namespace litz
