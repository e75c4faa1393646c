// All kernels of a plan as one program of a dialect, and the host functions that launch them.
#pragma once

#include <string>
#include <vector>

#include "codegen/cpp/cpp_run.h"
#include "codegen/simt/simt_dialect.h"
#include "codegen/simt/thread_plan.h"

namespace litz {

// One function of the program.
struct SimtFunction {
  std::string name;
  size_t pointers = 0;  // its arguments: so many pointers, then so many int64
  size_t integers = 0;
  bool checks_values = false;
  std::string origin;  // the last node that it came from
  size_t piece = 0;    // of the text
  size_t image = 0;    // among those that the program was compiled to
};

struct SimtProgram {
  std::string text;
  size_t kernels_begin = 0;    // where in it the kernels are, behind what they use
  std::vector<size_t> pieces;  // where each of them begins; they know nothing of each other
  std::vector<SimtFunction> functions;
  // For each kernel of the plan, the host function that launches it.
  std::vector<KernelCall> calls;
  std::string host_text;
  // What the dialect has no text for, in words that follow "because"; empty where the text is
  // whole.
  std::string unsupported;
  int64_t scratch_bytes = 0;         // that one kernel at a time needs besides the plan's workspace
  bool relies_on_alignment = false;  // SimtWords::aligned
};

SimtProgram print_simt_program(const Plan& plan, const SimtDialect& dialect,
                               const ThreadHeuristics& heuristics);

}  // namespace litz
