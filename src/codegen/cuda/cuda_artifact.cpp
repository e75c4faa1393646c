#include "codegen/cuda/cuda_artifact.h"

#include <algorithm>
#include <numeric>

#include "codegen/cpp/device_artifact.h"
#include "codegen/cuda/cuda_dialect.h"

namespace litz {
namespace {

// Of kernels: NVRTC takes as long for them as for starting (0.05 s for an empty program).
constexpr size_t kBytesOfStart = 1500;

}  // namespace

SimtProgram print_cuda_program(const Plan& plan) {
  return print_simt_program(plan, cuda_dialect(), ThreadHeuristics{});
}

std::vector<std::string> split_cuda_program(SimtProgram& program, size_t most) {
  const size_t bytes = program.text.size() - program.kernels_begin;
  const size_t count = std::min({most, program.pieces.size(), bytes / kBytesOfStart});
  if (count < 2) return {program.text};

  const auto end_of = [&](size_t piece) {
    return piece + 1 < program.pieces.size() ? program.pieces[piece + 1] : program.text.size();
  };
  const auto length = [&](size_t piece) { return end_of(piece) - program.pieces[piece]; };
  std::vector<size_t> longest_first(program.pieces.size());
  std::iota(longest_first.begin(), longest_first.end(), size_t{0});
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [&](size_t a, size_t b) { return length(a) > length(b); });
  std::vector<size_t> loads(count, 0);
  std::vector<size_t> program_of(program.pieces.size());
  for (size_t piece : longest_first) {
    const auto least = std::min_element(loads.begin(), loads.end());
    *least += length(piece);
    program_of[piece] = static_cast<size_t>(least - loads.begin());
  }
  std::vector<std::string> programs(count, program.text.substr(0, program.kernels_begin));
  for (size_t piece = 0; piece < program.pieces.size(); ++piece)
    programs[program_of[piece]].append(program.text, program.pieces[piece], length(piece));
  for (SimtFunction& function : program.functions) function.image = program_of[function.piece];
  return programs;
}

CppSources print_cuda_artifact(const Plan& plan, const SimtProgram& program,
                               const DeviceImages& compiled, const std::string& description) {
  DeviceCode code = {compiled.target, compiled.images, {}};
  for (const SimtFunction& function : program.functions)
    code.functions.push_back({function.name, function.image});
  CppRunOptions options;
  options.description = description;
  options.aligned = program.relies_on_alignment;
  options.scratch_bytes = program.scratch_bytes;
  Prelude prelude(PreludeTarget{});
  return print_device_artifact(plan, program.calls, program.host_text, code, prelude, options);
}

}  // namespace litz
