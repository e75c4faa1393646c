// How a kernel of a plan is launched on a device.
#pragma once

#include <vector>

#include "schedule/plan.h"

namespace litz {

struct DeviceCall {
  size_t kernel = 0;  // of the dialect's program
  std::vector<BufferId> buffers;
  std::vector<Index> symbols;
  KernelId launched_with;  // the kernel itself, or the one whose call launches it, too
};

// By kernel of the plan; each of the program's has a call that launches it.
using DeviceCalls = std::vector<DeviceCall>;

}  // namespace litz
