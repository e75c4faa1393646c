#include "codegen/triton/combined_triton.h"

namespace litz {
namespace {

// The first lines of a function of these parameters and so many pointers.
std::string function(const std::string& name, std::string parameters, size_t pointers) {
  for (size_t i = 0; i < pointers; ++i)
    parameters += (parameters.empty() ? "p" : ", p") + std::to_string(i);
  return "@triton.jit\ndef " + name + "(" + parameters + "):\n";
}

}  // namespace

TritonKernel print_combined_triton(const Program& program, const CombinedLaunch& launch) {
  TritonKernel kernel;
  const std::string name(kTritonKernelName);
  for (size_t i = 0; i < launch.bodies.size(); ++i) {
    const CombinedPart& one = launch.bodies[i].members[0];
    kernel.text += function(name + "_body" + std::to_string(i), "pid, n", one.buffers.size()) +
                   one.body + "\n\n";
    for (const CombinedPart& member : launch.bodies[i].members)
      kernel.checks = kernel.checks || member.checks;
  }
  ChoiceWords words;
  words.branch[0] = "if ";
  words.branch[1] = ":";
  words.otherwise = "else:";
  words.step = 2;
  words.choice[0] = "tl.where(";
  words.choice[1] = words.choice[2] = ", ";
  words.choice[3] = ")";
  kernel.text += function(name, "", launch.buffers.size()) + "    pid = tl.program_id(0)\n" +
                 print_choice(launch, words, 2, name + "_body");
  kernel.functions.push_back({"", program.indices().constant(launch.programs()), 1,
                              launch.bodies[0].members[0].threads / 32});
  kernel.tile = std::to_string(kernel.functions[0].warps) + " warps";
  kernel.buffers = launch.buffers;
  kernel.is_combined = true;
  return kernel;
}

}  // namespace litz
