#include "codegen/triton/triton_program.h"

#include <optional>
#include <unordered_map>
#include <utility>

#include "codegen/cpp/cpp_artifact.h"
#include "codegen/cpp/cpp_run.h"
#include "codegen/cpp/cpp_text.h"
#include "codegen/triton/combined_triton.h"

namespace litz {
namespace {

std::string comment(const Kernel& kernel) { return "#" + origins_comment(kernel).substr(2); }

void add_functions(const Plan& plan, const std::vector<bool>& mutated,
                   const TritonProgram::Kernel& kernel, TritonProgram& program) {
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
      add(triton_pointer_type(plan.program->buffer(b).dtype), !mutated[b.value]);
    for (size_t i = 0; i < kernel.printed.symbols.size(); ++i) add("i64", false);
    program.functions.push_back(std::move(function));
  }
}

// What tells the buffers apart that a kernel of the same text may get.
std::string identity_of(const Plan& plan, const std::vector<bool>& mutated,
                        const std::vector<BufferId>& buffers) {
  std::string text;
  for (BufferId b : buffers) {
    text += triton_pointer_type(plan.program->buffer(b).dtype);
    if (mutated[b.value]) text += "!";
  }
  return text;
}

// What tells two kernels of the same text apart.
std::string identity_of(const Plan& plan, const std::vector<bool>& mutated,
                        const TritonKernel& kernel) {
  std::string text = kernel.text + identity_of(plan, mutated, kernel.buffers);
  for (const TritonFunction& f : kernel.functions) {
    text += " " + std::to_string(f.warps) + " " + std::to_string(f.stages);
    // Launches are the kernel's too, in terms of its symbols.
    text += " " + to_string(f.programs);
    for (Index symbol : kernel.symbols) text += " " + to_string(symbol);
  }
  return text;
}

class ProgramPrinter {
 public:
  explicit ProgramPrinter(const Plan& plan)
      : plan_(plan), mutated_(mutated_inputs(*plan.program)) {}

  TritonProgram print() {
    program_.calls.resize(plan_.kernels.size());
    const std::vector<const KernelSet*> sets = sets_of_kernels(plan_);
    for (uint32_t i = 0; i < plan_.kernels.size(); ++i) {
      const KernelId id(i);
      if (sets[i] == nullptr) {
        add_one(id);
      } else if (sets[i]->members[0] == id) {
        add_set(*sets[i]);
      }
    }
    program_.text = prelude_.text();
    program_.kernels_begin = program_.text.size();
    program_.text += kernels_;
    return std::move(program_);
  }

 private:
  void add_one(KernelId id) {
    const Kernel& kernel = plan_.kernels[id];
    add(id, print_triton_kernel(plan_, kernel, prelude_), comment(kernel));
  }

  void add_set(const KernelSet& set) {
    std::vector<CombinedPart> parts;
    for (KernelId id : set.members) {
      if (std::optional<CombinedPart> part = print_triton_part(plan_, id, prelude_)) {
        part->identity += " " + identity_of(plan_, mutated_, part->buffers);
        parts.push_back(std::move(*part));
      } else {
        add_one(id);
      }
    }
    for (const CombinedLaunch& launch : plan_launches(parts)) {
      const std::vector<KernelId> kernels = launch.kernels();
      if (kernels.size() == 1) {
        add_one(kernels[0]);
        continue;
      }
      add(kernels[0], print_combined_triton(*plan_.program, launch),
          "#" + origins_comment(plan_, launch).substr(2));
      for (KernelId id : kernels) program_.calls[id.value].launched_with = kernels[0];
    }
  }

  void add(KernelId id, TritonKernel printed, const std::string& title) {
    const auto [found, added] =
        known_.emplace(identity_of(plan_, mutated_, printed), program_.kernels.size());
    program_.calls[id.value] = {found->second, printed.buffers, printed.symbols, id};
    if (!added) return;
    TritonProgram::Kernel k;
    k.name = "k" + std::to_string(program_.kernels.size());
    k.first = program_.functions.size();
    kernels_ += "\n\n" + title + "\n" + replace_all(printed.text, kTritonKernelName, k.name);
    k.printed = std::move(printed);
    add_functions(plan_, mutated_, k, program_);
    program_.kernels.push_back(std::move(k));
  }

  const Plan& plan_;
  std::vector<bool> mutated_;
  TritonPrelude prelude_;
  TritonProgram program_;
  std::string kernels_;
  std::unordered_map<std::string, size_t> known_;
};

}  // namespace

Result<TritonProgram> print_triton_program(const Plan& plan) {
  for (const Kernel& kernel : plan.kernels) {
    if (std::string reason = triton_refusal(*plan.program, kernel); !reason.empty())
      return Unsupported{std::move(reason)};
  }
  return ProgramPrinter(plan).print();
}

}  // namespace litz
