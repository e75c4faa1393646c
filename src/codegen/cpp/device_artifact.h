// The artifact of a plan whose kernels run on a device: their images, the host functions that
// launch them, and the code that calls these in order.
#pragma once

#include <string>
#include <vector>

#include "codegen/cpp/cpp_artifact.h"
#include "codegen/cpp/cpp_run.h"

namespace litz {

struct DeviceCode {
  std::string target;               // "sm_90"
  std::vector<std::string> images;  // cubins
  struct Function {
    std::string name;
    size_t image = 0;
  };
  std::vector<Function> functions;  // the index is what LitzHost::launch takes
};

// One unit, compiled for the machine that the graph runs on. `launchers` is the text of the
// functions that `calls` names, `prelude` that of what they use.
CppSources print_device_artifact(const Plan& plan, const std::vector<KernelCall>& calls,
                                 const std::string& launchers, const DeviceCode& code,
                                 Prelude& prelude, CppRunOptions options);

// The integers that launchers and the run are written with.
void add_host_types(Prelude& prelude);

}  // namespace litz
