#include "codegen/simt/simt_program.h"

#include <algorithm>
#include <unordered_map>

#include "codegen/cpp/cpp_artifact.h"
#include "codegen/cpp/cpp_text.h"
#include "codegen/simt/simt_kernel.h"

namespace litz {
namespace {

void add_functions(const Kernel& kernel, const SimtKernel& printed, const std::string& name,
                   std::vector<SimtFunction>& functions) {
  SimtFunction function;
  function.name = name;
  function.pointers = 1 + printed.buffers.size();
  function.integers = printed.symbols.size();
  function.checks_values = printed.checks_values;
  if (!kernel.origins.empty()) function.origin = kernel.origins.back();
  functions.push_back(function);
  if (printed.scratch_bytes == 0) return;
  function.name += kSimtFinish;
  functions.push_back(std::move(function));
}

}  // namespace

SimtProgram print_simt_program(const Plan& plan, const SimtDialect& dialect,
                               const ThreadHeuristics& heuristics) {
  PreludeTarget target;
  target.device = &dialect;
  Prelude prelude(target);
  SimtProgram program;
  std::string kernels;
  std::unordered_map<std::string, size_t> known;
  for (const Kernel& kernel : plan.kernels) {
    SimtKernel printed = print_simt_kernel(*plan.program, kernel, dialect, heuristics, prelude);
    if (program.unsupported.empty()) program.unsupported = printed.fault;
    const auto [found, added] =
        known.emplace(printed.device_text + printed.host_text, program.functions.size());
    if (added) {
      const std::string number = std::to_string(program.functions.size());
      const std::string name = "k" + number;
      add_functions(kernel, printed, name, program.functions);
      kernels += "\n" + origins_comment(kernel) + "\n" +
                 replace_all(printed.device_text, kSimtKernelName, name);
      program.host_text += "\n" + replace_all(replace_all(printed.host_text, kSimtKernelName, name),
                                              kSimtKernelNumber, number);
    }
    program.scratch_bytes = std::max(program.scratch_bytes, printed.scratch_bytes);
    program.calls.push_back({program.functions[found->second].name, std::move(printed.buffers),
                             std::move(printed.symbols), true});
  }
  if (!prelude.missing().empty()) {
    program.unsupported = "the backend has no text for ";
    for (const std::string& what : prelude.missing())
      program.unsupported += (&what == &prelude.missing()[0] ? "" : ", ") + what;
  }
  program.text = prelude.text();
  program.kernels_begin = program.text.size();
  program.text += kernels;
  return program;
}

}  // namespace litz
