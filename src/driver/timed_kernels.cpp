#include "driver/timed_kernels.h"

#include <algorithm>

namespace litz {

std::optional<int64_t> known_bytes(const Plan& plan, BufferId id) {
  const Program& program = *plan.program;
  const Index elements = storage_elements(program, program.buffer(id));
  if (!elements.is_constant()) return std::nullopt;
  return elements.constant() * static_cast<int64_t>(size_of(program.buffer(id).dtype));
}

bool depends_on_values(const Kernel& kernel, bool checks) {
  return std::any_of(kernel.stores.begin(), kernel.stores.end(), [&](const KernelStore& s) {
    const bool reads =
        std::find(kernel.reads.begin(), kernel.reads.end(), s.buffer) != kernel.reads.end();
    return !s.runtime_indices.empty() || s.mode != StoreMode::kStore || (checks && reads);
  });
}

std::string describe_buffers(const Plan& plan, std::span<const BufferId> buffers) {
  std::string text;
  for (BufferId id : buffers) {
    const Buffer& buffer = plan.program->buffer(id);
    text += "\n" + std::string(to_string(buffer.dtype)) + " " +
            to_string(storage_elements(*plan.program, buffer));
  }
  return text;
}

}  // namespace litz
