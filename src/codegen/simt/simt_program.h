// All kernels of a plan as one program of a dialect, and the host functions that launch them.
#pragma once

#include <string>
#include <vector>

#include "codegen/common/device_call.h"
#include "codegen/cpp/prelude.h"
#include "codegen/simt/simt_kernel.h"
#include "codegen/simt/thread_plan.h"
#include "schedule/plan.h"

namespace litz {

struct SimtProgram {
  Prelude prelude{PreludeTarget{}};  // what the kernels use
  struct Kernel {
    std::string name;
    std::string title;  // a comment
    SimtKernel printed;
    std::vector<KernelId> runs;  // the first one of the plan that is this one, or several together
    std::string origin;          // the last node that it came from
    size_t image = 0;            // among those that the program was compiled to

    std::string source() const;  // its functions under their names, the comment in front
  };
  std::vector<Kernel> kernels;  // each once; they know nothing of each other
  DeviceCalls calls;
  // What the dialect has no text for, in words that follow "because"; empty where the text is
  // whole.
  std::string unsupported;
  bool relies_on_alignment = false;  // SimtWords::aligned

  std::string text() const;
  std::string kernels_text() const;
  // The functions that launch kernels, and the scratch memory that one at a time needs.
  std::string host_text() const;
  int64_t scratch_bytes() const;
};

// One function of the program; the index is what LitzHost::launch takes.
struct SimtFunction {
  std::string name;
  size_t kernel = 0;
  bool is_finish = false;  // the kernel's second one
};
std::vector<SimtFunction> functions_of(const SimtProgram& program);

SimtProgram print_simt_program(const Plan& plan, const SimtDialect& dialect,
                               const ThreadHeuristics& heuristics);

// Kernels of a program with other plans of their threads, as a program without calls.
struct SimtVariants {
  SimtProgram program;
  std::vector<size_t> of;  // by kernel: which one of the given program it may stand for
};
SimtVariants print_simt_variants(const Plan& plan, const SimtProgram& program,
                                 const std::vector<size_t>& kernels, const SimtDialect& dialect,
                                 const ThreadHeuristics& heuristics);
// Puts kernel `other` of `others` in the place of `kernel`, under its name.
void replace_kernel(SimtProgram& program, size_t kernel, const SimtVariants& others, size_t other);

}  // namespace litz
