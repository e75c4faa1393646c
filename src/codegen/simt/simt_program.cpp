#include "codegen/simt/simt_program.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "codegen/cpp/cpp_artifact.h"
#include "codegen/cpp/cpp_text.h"
#include "codegen/simt/combined_simt.h"
#include "codegen/simt/simt_kernel.h"
#include "schedule/kernel_name.h"

namespace litz {
namespace {

class ProgramPrinter {
 public:
  ProgramPrinter(const Plan& plan, const SimtDialect& dialect, const ThreadHeuristics& heuristics)
      : plan_(plan),
        dialect_(dialect),
        heuristics_(heuristics),
        prelude_(target(dialect)),
        unaligned_(unaligned_inputs(*plan.program)) {}

  SimtProgram print() {
    program_.calls.resize(plan_.kernels.size());
    print_launches(plan_, dialect_.words().combines_kernels,
                   {[this](KernelId id) { add_one(id); },
                    [this](KernelId id) {
                      return print_simt_part(*plan_.program, plan_.kernels[id], unaligned_,
                                             dialect_, heuristics_, prelude_);
                    },
                    [this](const CombinedLaunch& launch) { add_together(launch); }});
    if (!prelude_.missing().empty()) {
      program_.unsupported = "the backend has no text for ";
      for (const std::string& what : prelude_.missing())
        program_.unsupported += (&what == &prelude_.missing()[0] ? "" : ", ") + what;
    }
    program_.text = prelude_.text();
    program_.kernels_begin = program_.text.size();
    for (size_t& piece : program_.pieces) piece += program_.kernels_begin;
    program_.relies_on_alignment = !dialect_.words().aligned.empty();
    program_.text += kernels_;
    return std::move(program_);
  }

 private:
  static PreludeTarget target(const SimtDialect& dialect) {
    PreludeTarget target;
    target.device = &dialect;
    return target;
  }

  void add_one(KernelId id) {
    const Kernel& kernel = plan_.kernels[id];
    add(id, print_simt_kernel(*plan_.program, kernel, unaligned_, dialect_, heuristics_, prelude_),
        kernel);
  }

  void add_together(const CombinedLaunch& launch) {
    const std::vector<KernelId> kernels = launch.kernels();
    for (KernelId id : kernels) program_.calls[id.value].launched_with = kernels[0];
    add(kernels[0], print_combined_simt(launch, dialect_), origins_of(plan_, launch));
  }

  void add(KernelId id, SimtKernel printed, const Kernel& origins) {
    if (program_.unsupported.empty()) program_.unsupported = printed.fault;
    const auto [found, added] =
        known_.emplace(printed.device_text + printed.host_text, program_.functions.size());
    if (added) {
      const std::string number = std::to_string(program_.functions.size());
      const std::string name = kernel_name(origins.ops, program_.pieces.size());
      add_functions(plan_.kernels[id], printed, name);
      program_.pieces.push_back(kernels_.size());
      kernels_ += "\n" + origins_comment(origins) + "\n" + replace_all(printed.device_text, kSimtKernelName, name);
      program_.host_text +=
          "\n" + replace_all(replace_all(printed.host_text, kSimtKernelName, name),
                             kSimtKernelNumber, number);
    }
    program_.scratch_bytes = std::max(program_.scratch_bytes, printed.scratch_bytes);
    program_.calls[id.value] = {program_.functions[found->second].name,
                                std::move(printed.buffers),
                                std::move(printed.symbols),
                                true,
                                printed.takes_array,
                                {}};
  }

  void add_functions(const Kernel& kernel, const SimtKernel& printed, const std::string& name) {
    SimtFunction function;
    function.name = name;
    function.pointers = 1 + printed.buffers.size();
    function.integers = printed.symbols.size();
    function.checks_values = printed.checks_values;
    function.piece = program_.pieces.size();
    if (!kernel.origins.empty()) function.origin = kernel.origins.back();
    program_.functions.push_back(function);
    if (printed.scratch_bytes == 0) return;
    function.name += kSimtFinish;
    program_.functions.push_back(std::move(function));
  }

  const Plan& plan_;
  const SimtDialect& dialect_;
  const ThreadHeuristics& heuristics_;
  Prelude prelude_;
  std::vector<bool> unaligned_;
  SimtProgram program_;
  std::string kernels_;
  std::unordered_map<std::string, size_t> known_;
};

}  // namespace

SimtProgram print_simt_program(const Plan& plan, const SimtDialect& dialect,
                               const ThreadHeuristics& heuristics) {
  return ProgramPrinter(plan, dialect, heuristics).print();
}

}  // namespace litz
