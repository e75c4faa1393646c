// What litz-opt can do with an IR level, one row a command-line flag.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "codegen/cpp/cpp_artifact.h"
#include "driver/options.h"
#include "graph/graph.h"
#include "ir/program.h"
#include "runtime/executable.h"
#include "schedule/plan.h"

namespace litz {

// A graph that went through the whole driver. `path` is empty where it is interpreted.
struct CompiledGraphState {
  std::shared_ptr<const Executable> executable;
  std::string path;
};

// What a stage said instead of an IR level.
struct Text {
  std::string text;
};

// What stands between two steps: one alternative for each IR level.
using State = std::variant<Graph, Program, Plan, CppSources, CompiledGraphState, Text>;

struct OptStep {
  const char* flag;
  const char* value;  // what the flag's value is; nullptr where it takes none
  const char* doc;
  // Throws UserError where the step does not take such a state.
  State (*run)(const State& state, const std::string& value, const Options& options);
};
std::span<const OptStep> opt_steps();

// Reads a graph or a program; which of them the first word says.
State parse_state(std::string_view text);

std::string print_state(const State& state);

}  // namespace litz
