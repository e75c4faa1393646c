#include "codegen/triton/triton_program.h"

#include <optional>
#include <unordered_map>
#include <utility>

#include "codegen/cpp/cpp_artifact.h"
#include "codegen/cpp/cpp_run.h"
#include "codegen/cpp/cpp_text.h"
#include "codegen/triton/combined_triton.h"
#include "schedule/kernel_name.h"

namespace litz {
namespace {

std::string comment(const Kernel& kernel) { return "#" + origins_comment(kernel).substr(2); }

void add_functions(const Plan& plan, const std::vector<bool>& unaligned,
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
      add(triton_pointer_type(plan.program->buffer(b).dtype), !unaligned[b.value]);
    for (size_t i = 0; i < kernel.printed.symbols.size(); ++i) add("i64", false);
    program.functions.push_back(std::move(function));
  }
}

void add_kernel(const Plan& plan, const std::vector<bool>& unaligned, std::vector<KernelId> runs,
                std::string name, const std::string& title, TritonKernel printed,
                TritonProgram& program) {
  TritonProgram::Kernel kernel;
  kernel.name = std::move(name);
  kernel.first = program.functions.size();
  kernel.runs = std::move(runs);
  kernel.title = title;
  kernel.printed = std::move(printed);
  add_functions(plan, unaligned, kernel, program);
  program.kernels.push_back(std::move(kernel));
}

// What tells the buffers apart that a kernel of the same text may get.
std::string identity_of(const Plan& plan, const std::vector<bool>& unaligned,
                        const std::vector<BufferId>& buffers) {
  std::string text;
  for (BufferId b : buffers) {
    text += triton_pointer_type(plan.program->buffer(b).dtype);
    if (unaligned[b.value]) text += "!";
  }
  return text;
}

std::optional<CombinedPart> print_part(const Plan& plan, KernelId id,
                                       const std::vector<bool>& unaligned, TritonPrelude& prelude,
                                       const PartTile& tile) {
  std::optional<CombinedPart> part =
      print_triton_part(plan, plan.kernels[id], unaligned, prelude, tile);
  if (part) part->identity += " " + identity_of(plan, unaligned, part->buffers);
  return part;
}

constexpr PartTile kPartTiles[] = {{0, 1}, {0, -1}, {1, 0}, {1, 1}, {-1, 0}, {-1, -1}, {2, 1}};

std::vector<TritonKernel> print_combined_variants(const Plan& plan,
                                                  const TritonProgram::Kernel& kernel,
                                                  const std::vector<bool>& unaligned,
                                                  TritonPrelude& prelude) {
  std::vector<TritonKernel> variants;
  for (const PartTile& tile : kPartTiles) {
    const std::optional<CombinedLaunch> launch =
        combine_again(kernel.runs, kernel.printed.buffers,
                      [&](KernelId id) { return print_part(plan, id, unaligned, prelude, tile); });
    if (!launch) continue;
    TritonKernel printed = print_combined_triton(*plan.program, *launch);
    printed.tile += ", " + std::to_string(launch->programs()) + " programs";
    if (printed.text != kernel.printed.text ||
        printed.functions[0].warps != kernel.printed.functions[0].warps)
      variants.push_back(std::move(printed));
  }
  return variants;
}

// What tells two kernels of the same text apart.
std::string identity_of(const Plan& plan, const std::vector<bool>& unaligned,
                        const TritonKernel& kernel) {
  std::string text = kernel.text + identity_of(plan, unaligned, kernel.buffers);
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
  ProgramPrinter(const Plan& plan, const TritonDevice& device)
      : plan_(plan), unaligned_(unaligned_inputs(*plan.program)) {
    program_.device = device;
  }

  TritonProgram print() {
    program_.calls.resize(plan_.kernels.size());
    print_launches(
        plan_, true,
        {[this](KernelId id) { add_one(id); }, [this](KernelId id) { return print_part(id); },
         [this](const CombinedLaunch& launch) { add_together(launch); }});
    return std::move(program_);
  }

 private:
  void add_one(KernelId id) {
    const Kernel& kernel = plan_.kernels[id];
    add({id}, print_triton_kernel(plan_, kernel, unaligned_, program_.device, program_.prelude),
        kernel);
  }

  std::optional<CombinedPart> print_part(KernelId id) {
    return litz::print_part(plan_, id, unaligned_, program_.prelude, {});
  }

  void add_together(const CombinedLaunch& launch) {
    const std::vector<KernelId> kernels = launch.kernels();
    const size_t number =
        add(kernels, print_combined_triton(*plan_.program, launch), origins_of(plan_, launch));
    for (size_t i = 1; i < kernels.size(); ++i)
      program_.calls[kernels[i].value] = {number, {}, {}, kernels[0]};
  }

  size_t add(const std::vector<KernelId>& runs, TritonKernel printed, const Kernel& origins) {
    const auto [found, added] =
        known_.emplace(identity_of(plan_, unaligned_, printed), program_.kernels.size());
    program_.calls[runs[0].value] = {found->second, printed.buffers, printed.symbols, runs[0]};
    if (added)
      add_kernel(plan_, unaligned_, runs, kernel_name(origins.ops, program_.kernels.size()),
                 comment(origins), std::move(printed), program_);
    return found->second;
  }

  const Plan& plan_;
  std::vector<bool> unaligned_;
  TritonProgram program_;
  std::unordered_map<std::string, size_t> known_;
};

}  // namespace

Result<TritonProgram> print_triton_program(const Plan& plan, const TritonDevice& device) {
  for (const Kernel& kernel : plan.kernels) {
    if (std::string reason = triton_refusal(*plan.program, kernel); !reason.empty())
      return Unsupported{std::move(reason)};
  }
  return ProgramPrinter(plan, device).print();
}

TritonVariants print_triton_variants(const Plan& plan, const TritonProgram& program,
                                     const std::vector<size_t>& kernels) {
  const std::vector<bool> unaligned = unaligned_inputs(*plan.program);
  TritonVariants variants;
  for (size_t number : kernels) {
    const TritonProgram::Kernel& kernel = program.kernels[number];
    size_t next = 0;
    const Kernel& planned = plan.kernels[kernel.runs[0]];
    for (TritonKernel& printed :
         kernel.runs.size() > 1
             ? print_combined_variants(plan, kernel, unaligned, variants.program.prelude)
             : print_triton_variants(plan, planned, unaligned, program.device,
                                     variants.program.prelude)) {
      add_kernel(plan, unaligned, kernel.runs, kernel.name + "_" + std::to_string(next++),
                 kernel.title, std::move(printed), variants.program);
      variants.of.push_back(number);
    }
  }
  return variants;
}

void replace_kernel(TritonProgram& program, size_t kernel, const TritonProgram& others,
                    size_t other) {
  const size_t first = program.kernels[kernel].first;
  const size_t before = program.kernels[kernel].printed.functions.size();
  const TritonProgram::Kernel& chosen = others.kernels[other];
  const size_t after = chosen.printed.functions.size();
  const auto at = [](const std::vector<TritonProgram::Function>& functions, size_t i) {
    return functions.begin() + static_cast<std::ptrdiff_t>(i);
  };
  program.functions.erase(at(program.functions, first), at(program.functions, first + before));
  program.functions.insert(at(program.functions, first), at(others.functions, chosen.first),
                           at(others.functions, chosen.first + after));
  for (TritonProgram::Kernel& other_kernel : program.kernels) {
    if (other_kernel.first > first) other_kernel.first += after - before;
  }
  program.kernels[kernel] = chosen;
  program.kernels[kernel].first = first;
  program.prelude.add(others.prelude);
}

std::string TritonProgram::Kernel::source() const {
  return "\n\n" + title + "\n" + replace_all(printed.text, kTritonKernelName, name);
}

std::string TritonProgram::kernels_text() const {
  std::string text;
  for (const Kernel& kernel : kernels) text += kernel.source();
  return text;
}

std::string TritonProgram::text() const { return prelude.text() + kernels_text(); }

}  // namespace litz
