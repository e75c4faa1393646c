#include "codegen/simt/simt_program.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "codegen/cpp/cpp_artifact.h"
#include "codegen/cpp/cpp_run.h"
#include "codegen/cpp/cpp_text.h"
#include "codegen/simt/combined_simt.h"
#include "schedule/kernel_name.h"

namespace litz {
namespace {

class ProgramPrinter {
 public:
  ProgramPrinter(const Plan& plan, const SimtDialect& dialect, const ThreadHeuristics& heuristics)
      : plan_(plan),
        dialect_(dialect),
        heuristics_(heuristics),
        unaligned_(unaligned_inputs(*plan.program)) {
    PreludeTarget target;
    target.device = &dialect;
    program_.prelude = Prelude(target);
  }

  SimtProgram print() {
    program_.calls.resize(plan_.kernels.size());
    print_launches(plan_, dialect_.words().combines_kernels,
                   {[this](KernelId id) { add_one(id); },
                    [this](KernelId id) {
                      return print_simt_part(*plan_.program, plan_.kernels[id], unaligned_,
                                             dialect_, heuristics_, program_.prelude);
                    },
                    [this](const CombinedLaunch& launch) { add_together(launch); }});
    if (const auto& missing = program_.prelude.missing(); !missing.empty()) {
      program_.unsupported = "the backend has no text for ";
      for (const std::string& what : missing)
        program_.unsupported += (&what == &missing[0] ? "" : ", ") + what;
    }
    program_.relies_on_alignment = !dialect_.words().aligned.empty();
    return std::move(program_);
  }

 private:
  void add_one(KernelId id) {
    const Kernel& kernel = plan_.kernels[id];
    add({id},
        print_simt_kernel(*plan_.program, kernel, unaligned_, dialect_, heuristics_,
                          program_.prelude),
        kernel);
  }

  void add_together(const CombinedLaunch& launch) {
    const std::vector<KernelId> kernels = launch.kernels();
    const size_t number = add(kernels, print_combined_simt(*plan_.program, launch, dialect_),
                              origins_of(plan_, launch));
    for (size_t i = 1; i < kernels.size(); ++i)
      program_.calls[kernels[i].value] = {number, {}, {}, kernels[0]};
  }

  size_t add(const std::vector<KernelId>& runs, SimtKernel printed, const Kernel& origins) {
    if (program_.unsupported.empty()) program_.unsupported = printed.fault;
    const auto [found, added] =
        known_.emplace(printed.device_text + printed.host_text, program_.kernels.size());
    program_.calls[runs[0].value] = {found->second, printed.buffers, printed.symbols, runs[0]};
    if (added) {
      SimtProgram::Kernel kernel;
      kernel.name = kernel_name(origins.ops, program_.kernels.size());
      kernel.title = origins_comment(origins);
      kernel.printed = std::move(printed);
      kernel.runs = runs;
      const std::vector<std::string>& own = plan_.kernels[runs[0]].origins;
      if (!own.empty()) kernel.origin = own.back();
      program_.kernels.push_back(std::move(kernel));
    }
    return found->second;
  }

  const Plan& plan_;
  const SimtDialect& dialect_;
  const ThreadHeuristics& heuristics_;
  std::vector<bool> unaligned_;
  SimtProgram program_;
  std::unordered_map<std::string, size_t> known_;
};

std::vector<SimtKernel> print_combined_variants(const Plan& plan, const SimtProgram::Kernel& kernel,
                                                const std::vector<bool>& unaligned,
                                                const SimtDialect& dialect,
                                                const ThreadHeuristics& heuristics,
                                                Prelude& prelude) {
  std::vector<SimtKernel> variants;
  for (const ThreadHeuristics& other : other_heuristics_of_parts(heuristics)) {
    const std::optional<CombinedLaunch> launch =
        combine_again(kernel.runs, kernel.printed.buffers, [&](KernelId id) {
          return print_simt_part(*plan.program, plan.kernels[id], unaligned, dialect, other,
                                 prelude);
        });
    if (!launch) continue;
    SimtKernel printed = print_combined_simt(*plan.program, *launch, dialect);
    printed.tile += ", " + std::to_string(other.vector_bytes) + " bytes at once";
    variants.push_back(std::move(printed));
  }
  return variants;
}

}  // namespace

std::string SimtProgram::Kernel::source() const {
  return "\n" + title + "\n" + replace_all(printed.device_text, kSimtKernelName, name);
}

std::string SimtProgram::kernels_text() const {
  std::string text;
  for (const Kernel& kernel : kernels) text += kernel.source();
  return text;
}

std::string SimtProgram::text() const { return prelude.text() + kernels_text(); }

std::string SimtProgram::host_text() const {
  std::string text;
  size_t function = 0;
  for (const Kernel& kernel : kernels) {
    text += "\n" + replace_all(replace_all(kernel.printed.host_text, kSimtKernelName, kernel.name),
                               kSimtKernelNumber, std::to_string(function));
    function += kernel.printed.launches.size();
  }
  return text;
}

int64_t SimtProgram::scratch_bytes() const {
  int64_t most = 0;
  for (const Kernel& kernel : kernels) most = std::max(most, kernel.printed.scratch_bytes);
  return most;
}

std::vector<SimtFunction> functions_of(const SimtProgram& program) {
  std::vector<SimtFunction> functions;
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    const SimtProgram::Kernel& kernel = program.kernels[i];
    for (size_t launch = 0; launch < kernel.printed.launches.size(); ++launch)
      functions.push_back(
          {kernel.name + (launch == 0 ? "" : std::string(kSimtFinish)), i, launch > 0});
  }
  return functions;
}

SimtProgram print_simt_program(const Plan& plan, const SimtDialect& dialect,
                               const ThreadHeuristics& heuristics) {
  return ProgramPrinter(plan, dialect, heuristics).print();
}

SimtVariants print_simt_variants(const Plan& plan, const SimtProgram& program,
                                 const std::vector<size_t>& kernels, const SimtDialect& dialect,
                                 const ThreadHeuristics& heuristics) {
  const std::vector<bool> unaligned = unaligned_inputs(*plan.program);
  SimtVariants variants;
  // With the program's own, so that it can be the program's.
  variants.program.prelude = program.prelude;
  Prelude& prelude = variants.program.prelude;
  for (size_t number : kernels) {
    const SimtProgram::Kernel& kernel = program.kernels[number];
    size_t next = 0;
    for (SimtKernel& printed :
         kernel.runs.size() > 1
             ? print_combined_variants(plan, kernel, unaligned, dialect, heuristics, prelude)
             : print_simt_variants(*plan.program, plan.kernels[kernel.runs[0]], unaligned, dialect,
                                   heuristics, kernel.printed, prelude)) {
      SimtProgram::Kernel variant = kernel;
      variant.name += "_" + std::to_string(next++);
      variant.printed = std::move(printed);
      variants.program.kernels.push_back(std::move(variant));
      variants.of.push_back(number);
    }
  }
  return variants;
}

void replace_kernel(SimtProgram& program, size_t kernel, const SimtVariants& others, size_t other) {
  program.kernels[kernel].printed = others.program.kernels[other].printed;
  program.prelude = others.program.prelude;
}

}  // namespace litz
