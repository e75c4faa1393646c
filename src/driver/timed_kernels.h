// Of which kernels of a plan a time can be said that is theirs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "schedule/plan.h"

namespace litz {

// Bytes from the first element of a buffer on; nothing where they are known only at run time.
std::optional<int64_t> known_bytes(const Plan& plan, BufferId id);

// What would not be the same on zeros: stores to positions known only at run time, which all of
// them would be one, and checks of what the kernel itself has written before.
bool depends_on_values(const Kernel& kernel, bool checks);

// For the time of a kernel: the dtypes and sizes of what it is given, a line each.
std::string describe_buffers(const Plan& plan, std::span<const BufferId> buffers);

}  // namespace litz
