#include "schedule/eliminate_dead_operations.h"

#include <algorithm>

namespace litz {
namespace {

bool is_empty(const Buffer& buffer) {
  return std::any_of(buffer.sizes.begin(), buffer.sizes.end(),
                     [](Index size) { return size.is_constant(0); });
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

std::vector<OperationId> live_operations(const Program& program) {
  std::vector<bool> needed(program.buffers().size(), false);
  for (const ProgramOutput& output : program.outputs) {
    if (const auto* view = std::get_if<BufferView>(&output.v)) needed[view->buffer.value] = true;
  }
  std::vector<OperationId> live;
  for (size_t i = program.operations().size(); i-- > 0;) {
    const OperationId id(static_cast<uint32_t>(i));
    const Operation& operation = program.operations()[id];
    if (!is_live(program, operation, needed)) continue;
    for (BufferId read : buffers_read(operation)) needed[read.value] = true;
    live.push_back(id);
  }
  std::reverse(live.begin(), live.end());
  return live;
}

}  // namespace litz
