#include "schedule/eliminate_dead_operations.h"

#include <algorithm>

#include "schedule/expr_cost.h"

namespace litz {
namespace {

bool is_root(const Program& program, const Operation& operation) {
  if (const auto* library = std::get_if<ExternKernel>(&operation.v)) {
    if (library->has_side_effects || !library->mutated.empty()) return true;
  }
  const std::vector<BufferId> written = buffers_written(operation);
  return std::any_of(written.begin(), written.end(),
                     [&](BufferId id) { return program.buffer(id).kind == BufferKind::kInput; });
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
    bool keep = is_root(program, operation) || (!inside[i] && has_checks(operation));
    for (BufferId written : buffers_written(operation)) keep = keep || needed[written.value];
    if (!keep) continue;
    for (BufferId read : buffers_read(operation)) needed[read.value] = true;
    live.push_back(id);
  }
  std::reverse(live.begin(), live.end());
  return live;
}

}  // namespace litz
