// litz-opt: reads one IR level as text, runs what the command line names, in that order, and prints
// the result.
//
//   litz-opt --pass remove_noops --verify graph.litz
//   litz-opt --lower --run graph.litz
//   litz-opt --option target=avx2 --lower --schedule --emit kernels graph.litz
//   litz-opt --compile -o graph.so graph.litz
#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "driver/environment.h"
#include "passes/pipeline.h"
#include "schedule/schedule_steps.h"
#include "support/error.h"
#include "tools/opt_steps.h"
#include "tools/pattern_run.h"

namespace litz {
namespace {

std::string read_all(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file) throw UserError("cannot read '" + path + "'");
  return text.str();
}

// A compiled graph is written as its library, everything else as text.
void write_result(const State& state, const std::string& path) {
  if (path.empty()) {
    std::cout << print_state(state);
    return;
  }
  const auto* compiled = std::get_if<CompiledGraphState>(&state);
  if (compiled != nullptr && !compiled->path.empty()) {
    std::error_code error;
    std::filesystem::copy_file(compiled->path, path,
                               std::filesystem::copy_options::overwrite_existing, error);
    if (error) throw UserError("cannot write '" + path + "': " + error.message());
    return;
  }
  std::ofstream file(path, std::ios::binary);
  file << print_state(state);
  file.close();
  if (!file) throw UserError("cannot write '" + path + "'");
}

void list_passes() {
  std::cout << "Graph passes, off with --option disable_passes=NAME:\n";
  for (const GraphPass& pass : graph_passes())
    std::cout << "  " << pass.name << "\n      " << pass.doc << "\n";
  std::cout << "Steps of the scheduler:\n";
  for (const ScheduleStep& step : schedule_steps()) {
    std::cout << "  " << step.name << "\n      " << step.doc << "\n";
    if (!step.without.empty()) std::cout << "      --option " << step.without << "\n";
  }
}

Options read_options(const std::vector<std::string>& settings) {
  std::map<std::string, OptionValue> given;
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    if (equals == setting.npos) {
      throw UserError("--option takes NAME=VALUE, not '" + setting + "'");
    }
    const std::string name = setting.substr(0, equals);
    given[name] = parse_option(name, setting.substr(equals + 1));
  }
  if (const std::string warning = unknown_variables_warning(environment_names()); !warning.empty())
    std::cerr << "litz-opt: warning: " << warning << "\n";
  return make_options(given, environment_variable);
}

std::string option_docs() {
  std::string text = "Options of a compilation, for --option:\n";
  for (const OptionRow& row : option_rows()) {
    const std::string valid = row.valid.text();
    text += "  " + std::string(row.name) + " (" + std::string(row.type) +
            (valid.empty() ? "" : ", " + valid) + ")\n      " + std::string(row.doc) + "\n";
  }
  return text;
}

int run(int argc, char** argv) {
  CLI::App app("Runs the stages of Litz on IR text, in the order of the command line.", "litz-opt");
  app.footer(std::string("Inputs of --run: ") + kPatternDoc + "\n\n" + option_docs());
  std::string path = "-";
  app.add_option("file", path, "A graph or a program as text; - is standard input");
  std::string output;
  app.add_option("-o,--output", output, "File for the result: text, or the library of --compile");
  std::vector<std::string> settings;
  app.add_option("--option", settings, "Set an option of the compilation")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all()
      ->type_name("NAME=VALUE");
  bool list = false;
  app.add_flag("--list-passes", list,
               "List the graph passes and the steps of the scheduler, and leave");

  const std::span<const OptStep> all = opt_steps();
  std::vector<std::vector<std::string>> values(all.size());
  std::map<const CLI::Option*, size_t> step_of;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].value == nullptr) {
      step_of[app.add_flag(all[i].flag, all[i].doc)] = i;
      continue;
    }
    CLI::Option* option = app.add_option(all[i].flag, values[i], all[i].doc);
    option->expected(1)->allow_extra_args(false)->take_all()->type_name(all[i].value);
    step_of[option] = i;
  }
  CLI11_PARSE(app, argc, argv);
  if (list) {
    list_passes();
    return 0;
  }

  try {
    const Options options = read_options(settings);
    State state = parse_state(read_all(path));
    std::vector<size_t> done(all.size(), 0);
    for (const CLI::Option* option : app.parse_order()) {
      const auto step = step_of.find(option);
      if (step == step_of.end()) continue;
      const size_t i = step->second;
      const std::string value = all[i].value ? values[i][done[i]++] : "";
      state = all[i].run(state, value, options);
    }
    write_result(state, output);
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
