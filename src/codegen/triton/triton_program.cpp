#include "codegen/triton/triton_program.h"

#include <unordered_map>

#include "codegen/cpp/cpp_artifact.h"
#include "codegen/cpp/cpp_run.h"
#include "codegen/cpp/cpp_text.h"

namespace litz {
namespace {

std::string comment(const Kernel& kernel) { return "#" + origins_comment(kernel).substr(2); }

void add_functions(const Plan& plan, const TritonProgram::Kernel& kernel, TritonProgram& program) {
  for (const TritonFunction& f : kernel.printed.functions) {
    TritonProgram::Function function;
    function.name = kernel.name + f.suffix;
    function.warps = f.warps;
    function.stages = f.stages;
    function.checks = kernel.printed.checks;
    const auto add = [&](const std::string& type, bool is_aligned) {
      if (is_aligned) function.aligned.push_back(static_cast<int>(function.signature.size()));
      function.signature.push_back(type);
    };
    for (const TritonKernel::Partial& p : kernel.printed.partials)
      add(triton_pointer_type(p.dtype), true);
    for (BufferId b : kernel.printed.buffers)
      add(triton_pointer_type(plan.program->buffer(b).dtype), !is_mutated_input(*plan.program, b));
    for (size_t i = 0; i < kernel.printed.symbols.size(); ++i) add("i64", false);
    program.functions.push_back(std::move(function));
  }
}

// What tells two kernels of the same text apart.
std::string identity_of(const Plan& plan, const TritonKernel& kernel) {
  std::string text = kernel.text;
  for (BufferId b : kernel.buffers) {
    text += triton_pointer_type(plan.program->buffer(b).dtype);
    if (is_mutated_input(*plan.program, b)) text += "!";
  }
  for (const TritonFunction& f : kernel.functions) {
    text += " " + std::to_string(f.warps) + " " + std::to_string(f.stages);
    // Launches are the kernel's too, in terms of its symbols.
    text += " " + to_string(f.programs);
    for (Index symbol : kernel.symbols) text += " " + to_string(symbol);
  }
  return text;
}

}  // namespace

Result<TritonProgram> print_triton_program(const Plan& plan) {
  for (const Kernel& kernel : plan.kernels) {
    if (std::string reason = triton_refusal(*plan.program, kernel); !reason.empty())
      return Unsupported{std::move(reason)};
  }
  TritonPrelude prelude;
  TritonProgram program;
  std::string kernels;
  std::unordered_map<std::string, size_t> known;
  for (const Kernel& kernel : plan.kernels) {
    TritonKernel printed = print_triton_kernel(plan, kernel, prelude);
    const auto [found, added] = known.emplace(identity_of(plan, printed), program.kernels.size());
    program.calls.push_back({found->second, printed.buffers, printed.symbols});
    if (!added) continue;
    TritonProgram::Kernel k;
    k.name = "k" + std::to_string(program.kernels.size());
    k.first = program.functions.size();
    kernels +=
        "\n\n" + comment(kernel) + "\n" + replace_all(printed.text, kTritonKernelName, k.name);
    k.printed = std::move(printed);
    add_functions(plan, k, program);
    program.kernels.push_back(std::move(k));
  }
  program.text = prelude.text();
  program.kernels_begin = program.text.size();
  program.text += kernels;
  return program;
}

}  // namespace litz
