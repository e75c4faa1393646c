// litz-opt: reads one IR level as text, runs what the command line names, in that order, and prints
// the result.
//
//   litz-opt --pass remove_noops --verify graph.litz
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "graph/parse_graph.h"
#include "graph/print_graph.h"
#include "graph/verify_graph.h"
#include "passes/pipeline.h"
#include "support/error.h"

namespace litz {
namespace {

// What stands between two steps: one alternative for each IR level.
using State = std::variant<Graph>;

const Graph& graph_of(const State& state, const char* flag) {
  const Graph* graph = std::get_if<Graph>(&state);
  if (graph == nullptr) throw UserError(std::string(flag) + " takes a graph");
  return *graph;
}

State run_pass(const State& state, const std::string& name) {
  const GraphPass* pass = find_graph_pass(name);
  if (pass == nullptr) throw UserError("unknown pass '" + name + "'; --list-passes lists them");
  return pass->function(graph_of(state, "--pass"));
}

State verify(const State& state, const std::string&) {
  verify_graph(graph_of(state, "--verify"));
  return state;
}

// One thing that can be asked for, any number of times.
struct Step {
  const char* flag;
  const char* value;  // what the flag's value is; nullptr where it takes none
  const char* doc;
  State (*run)(const State& state, const std::string& value);
};

constexpr Step kSteps[] = {
    {"--pass", "NAME", "Run one graph pass", run_pass},
    {"--verify", nullptr, "Check the invariants of the IR", verify},
};

std::string print(const State& state) {
  return std::visit([](const auto& ir) { return to_string(ir); }, state);
}

std::string read_all(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file) throw UserError("cannot read '" + path + "'");
  return text.str();
}

void list_passes() {
  for (const GraphPass& pass : graph_passes())
    std::cout << pass.name << "\n    " << pass.doc << "\n";
}

int run(int argc, char** argv) {
  CLI::App app("Runs Litz passes on IR text, in the order of the command line.", "litz-opt");
  std::string path = "-";
  app.add_option("file", path, "IR text; - is standard input");
  bool list = false;
  app.add_flag("--list-passes", list, "List the graph passes and leave");

  std::vector<std::vector<std::string>> values(std::size(kSteps));
  std::map<const CLI::Option*, size_t> step_of;
  for (size_t i = 0; i < std::size(kSteps); ++i) {
    CLI::Option* option = app.add_option(kSteps[i].flag, values[i], kSteps[i].doc);
    option->expected(kSteps[i].value ? 1 : 0)->take_all();
    option->type_name(kSteps[i].value ? kSteps[i].value : "");
    step_of[option] = i;
  }
  CLI11_PARSE(app, argc, argv);
  if (list) {
    list_passes();
    return 0;
  }

  try {
    State state = parse_graph(read_all(path));
    std::vector<size_t> done(std::size(kSteps), 0);
    for (const CLI::Option* option : app.parse_order()) {
      const auto step = step_of.find(option);
      if (step == step_of.end()) continue;
      const size_t i = step->second;
      const std::string value = kSteps[i].value ? values[i][done[i]++] : "";
      state = kSteps[i].run(state, value);
    }
    std::cout << print(state);
    return 0;
  } catch (const UserError& error) {
    std::cerr << "litz-opt: error: " << error.what() << "\n";
    return 1;
  } catch (const InternalError& error) {
    std::cerr << "litz-opt: internal error: " << error.what() << "\n";
    return 2;
  }
}

}  // namespace
}  // namespace litz

int main(int argc, char** argv) { return litz::run(argc, argv); }
