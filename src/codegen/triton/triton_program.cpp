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

void add_kernel(const Plan& plan, KernelId id, std::string name, TritonKernel printed,
                TritonProgram& program) {
  TritonProgram::Kernel kernel;
  kernel.name = std::move(name);
  kernel.first = program.functions.size();
  kernel.kernel = id;
  kernel.source = "\n\n" + comment(plan.kernels[id]) + "\n" +
                  replace_all(printed.text, kTritonKernelName, kernel.name);
  kernel.printed = std::move(printed);
  add_functions(plan, kernel, program);
  program.kernels.push_back(std::move(kernel));
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
  TritonProgram program;
  std::unordered_map<std::string, size_t> known;
  for (uint32_t i = 0; i < plan.kernels.size(); ++i) {
    const Kernel& kernel = plan.kernels[KernelId(i)];
    TritonKernel printed = print_triton_kernel(plan, kernel, program.prelude);
    const auto [found, added] = known.emplace(identity_of(plan, printed), program.kernels.size());
    program.calls.push_back({found->second, printed.buffers, printed.symbols});
    if (added) {
      add_kernel(plan, KernelId(i), "k" + std::to_string(program.kernels.size()),
                 std::move(printed), program);
    }
  }
  return program;
}

TritonVariants print_triton_variants(const Plan& plan, const TritonProgram& program,
                                     const std::vector<size_t>& kernels) {
  TritonVariants variants;
  for (size_t number : kernels) {
    const TritonProgram::Kernel& kernel = program.kernels[number];
    size_t next = 0;
    for (TritonKernel& printed :
         print_triton_variants(plan, plan.kernels[kernel.kernel], variants.program.prelude)) {
      add_kernel(plan, kernel.kernel, kernel.name + "_" + std::to_string(next++),
                 std::move(printed), variants.program);
      variants.of.push_back(number);
    }
  }
  return variants;
}

void replace_kernel(TritonProgram& program, size_t kernel, const TritonProgram& others,
                    size_t other) {
  const size_t first = program.kernels[kernel].first;
  const TritonProgram::Kernel& chosen = others.kernels[other];
  for (size_t i = 0; i < chosen.printed.functions.size(); ++i)
    program.functions[first + i] = others.functions[chosen.first + i];
  program.kernels[kernel] = chosen;
  program.kernels[kernel].first = first;
  program.prelude.add(others.prelude);
}

std::string TritonProgram::kernels_text() const {
  std::string text;
  for (const Kernel& kernel : kernels) text += kernel.source;
  return text;
}

std::string TritonProgram::text() const { return prelude.text() + kernels_text(); }

}  // namespace litz
