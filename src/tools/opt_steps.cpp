#include "tools/opt_steps.h"

#include <algorithm>
#include <iostream>

#include "codegen/cuda/cuda_artifact.h"
#include "codegen/simt/table_dialect.h"
#include "codegen/triton/triton_program.h"
#include "driver/compile.h"
#include "driver/interpreted_graph.h"
#include "driver/stage_options.h"
#include "graph/parse_graph.h"
#include "graph/print_graph.h"
#include "graph/verify_graph.h"
#include "ir/parse_program.h"
#include "ir/print_program.h"
#include "ir/verify_program.h"
#include "passes/pipeline.h"
#include "passes/split_frozen.h"
#include "runtime/backend_plugin.h"
#include "runtime/loaded_artifact.h"
#include "schedule/print_plan.h"
#include "schedule/schedule_steps.h"
#include "schedule/verify_plan.h"
#include "schedule/verify_schedule.h"
#include "support/error.h"
#include "tools/pattern_run.h"

namespace litz {
namespace {

template <class Level>
const Level& level_of(const State& state, const std::string& what) {
  const Level* level = std::get_if<Level>(&state);
  if (level == nullptr) throw UserError(what);
  return *level;
}

State run_pass(const State& state, const std::string& name, const Options& options) {
  const GraphPass* pass = find_graph_pass(name);
  if (pass == nullptr) throw UserError("unknown pass '" + name + "'; --list-passes lists them");
  return pass->function(level_of<Graph>(state, "--pass takes a graph"), pass_options(options));
}

State split_graph(const State& state, const std::string& part, const Options&) {
  SplitGraph split = split_frozen(level_of<Graph>(state, "--split-frozen takes a graph"));
  if (part == "frozen") return std::move(split.frozen);
  if (part == "rest") return std::move(split.rest);
  throw UserError("--split-frozen: there is no part '" + part + "'; there are frozen and rest");
}

State verify(const State& state, const std::string&, const Options&) {
  if (const auto* program = std::get_if<Program>(&state)) {
    verify_program(*program);
  } else if (const auto* plan = std::get_if<Plan>(&state)) {
    verify_plan(*plan);
  } else {
    verify_graph(level_of<Graph>(state, "--verify takes a graph, a program or a plan"));
  }
  return state;
}

State lower(const State& state, const std::string&, const Options& options) {
  const Graph& graph = level_of<Graph>(state, "--lower takes a graph");
  return lower_graph(graph, lowering_options(options)).program;
}

State lower_for_triton(const State& state, const std::string&, const Options& options) {
  const Graph& graph = level_of<Graph>(state, "--lower-for-triton takes a graph");
  return lower_graph(graph, lowering_options(options, KernelDialect::kTriton)).program;
}

State schedule(const State& state, const std::string&, const Options& options) {
  const Program& program = level_of<Program>(state, "--schedule takes a program: --lower makes it");
  return schedule_program(std::make_shared<Program>(program), schedule_options(options));
}

State schedule_for_gpu(const State& state, KernelDialect dialect, const Options& options) {
  const Program& program =
      level_of<Program>(state, "a plan is made of a program: --lower makes it");
  DeviceTarget device;
  device.kind = "cuda";
  device.arch = "sm_90";
  device.multiprocessors = 132;
  device.loads_tiles = true;
  return schedule_program(std::make_shared<Program>(program),
                          schedule_options(options, dialect, device));
}

State schedule_for_triton(const State& state, const std::string&, const Options& options) {
  return schedule_for_gpu(state, KernelDialect::kTriton, options);
}

State schedule_for_cuda(const State& state, const std::string&, const Options& options) {
  return schedule_for_gpu(state, KernelDialect::kThreads, options);
}

Text emit_for_backend(const Plan& plan, const std::string& path) {
  const auto plugin = BackendPlugin::load(path);
  const TableDialect dialect(*plugin->table().dialect, "");
  const SimtProgram program =
      print_simt_program(plan, dialect, read_heuristics(plugin->table(), nullptr));
  if (!program.unsupported.empty()) throw UserError(program.unsupported);
  return {program.text()};
}

State schedule_to(const State& state, const std::string& name, const Options& options) {
  const Program& program =
      level_of<Program>(state, "--schedule-to takes a program: --lower makes it");
  if (find_schedule_step(name) == nullptr) {
    throw UserError("unknown step '" + name + "'; --list-passes lists them");
  }
  const ScheduleOptions scheduling = schedule_options(options);
  ScheduleState unfinished(std::make_shared<Program>(program));
  for (const ScheduleStep& step : schedule_steps()) {
    step.run(unfinished, scheduling);
    if (options.verify) verify_schedule(unfinished);
    if (step.name == name) break;
  }
  return Text{to_string(unfinished)};
}

State emit(const State& state, const std::string& form, const Options& options) {
  const Plan& plan = level_of<Plan>(state, "--emit takes a plan: --schedule makes it");
  const bool sums_columns =
      std::any_of(plan.kernels.begin(), plan.kernels.end(), [](const Kernel& kernel) {
        return std::any_of(kernel.reductions.begin(), kernel.reductions.end(),
                           [](const KernelReduction& r) { return r.over_outer; });
      });
  if (sums_columns && !form.starts_with("triton") && !form.starts_with("cuda"))
    throw UserError("--emit " + form + " cannot print kernels for a GPU; use --schedule");
  const bool attends =
      std::any_of(plan.kernels.begin(), plan.kernels.end(),
                  [](const Kernel& kernel) { return kernel.attention.has_value(); });
  if (attends && (form.starts_with("cuda") || form.starts_with("backend:")))
    throw UserError("--emit " + form + " cannot print attention, which Triton and C++ have");
  if (form == "cuda") return Text{print_cuda_program(plan).text()};
  if (form == "cuda-kernels") return Text{print_cuda_program(plan).kernels_text()};
  if (form == "triton" || form == "triton-kernels") {
    const Result<TritonProgram> triton = print_triton_program(plan);
    if (!triton) throw UserError("the plan cannot be printed as Triton; " + triton.reason());
    return Text{form == "triton" ? triton->text() : triton->kernels_text()};
  }
  if (form.starts_with("backend:")) return emit_for_backend(plan, form.substr(8));
  if (form != "kernels" && form != "cpp") {
    throw UserError(
        "--emit takes cpp, kernels, cuda, cuda-kernels, triton, triton-kernels or backend:LIBRARY, "
        "not '" +
        form + "'");
  }
  CppSources sources = print_cpp_artifact(plan, artifact_options(options, cpu_target(options)));
  if (form == "cpp") return sources;
  Text kernels;
  for (const CppSource& unit : sources.units) {
    kernels.text += unit.text.substr(unit.kernels_begin, unit.kernels_end - unit.kernels_begin);
  }
  return kernels;
}

State compile(const State& state, const std::string&, const Options& options) {
  const Compiled compiled =
      compile_graph(level_of<Graph>(state, "--compile takes a graph"), options, {});
  for (const std::string& warning : compiled.warnings) {
    std::cerr << "litz-opt: warning: " << warning << "\n";
  }
  if (!compiled.path.empty()) {
    return CompiledGraphState{LoadedArtifact::load(compiled.path), compiled.path};
  }
  if (!options.interpret) throw UserError("the graph could not be compiled");
  return CompiledGraphState{make_interpreted_graph(*compiled.program), ""};
}

State run(const State& state, const std::string&, const Options&) {
  if (const auto* program = std::get_if<Program>(&state)) {
    return Text{run_on_pattern(*make_interpreted_graph(*program))};
  }
  const auto& compiled =
      level_of<CompiledGraphState>(state, "--run takes a program or what --compile makes");
  return Text{run_on_pattern(*compiled.executable)};
}

constexpr OptStep kSteps[] = {
    {"--pass", "NAME", "Run one graph pass", run_pass},
    {"--split-frozen", "PART",
     "Graph to what depends on frozen inputs alone, for the part frozen, or to the rest",
     split_graph},
    {"--verify", nullptr, "Check the invariants of a graph, a program or a plan", verify},
    {"--lower", nullptr, "Graph to program", lower},
    {"--lower-for-triton", nullptr, "Graph to program, with the attention that is a Triton kernel",
     lower_for_triton},
    {"--schedule", nullptr, "Program to plan", schedule},
    {"--schedule-for-triton", nullptr, "Program to plan for a GPU, as --emit triton prints it",
     schedule_for_triton},
    {"--schedule-for-cuda", nullptr, "Program to plan for a GPU, as --emit cuda prints it",
     schedule_for_cuda},
    {"--schedule-to", "STEP", "Program to what stands after one step of the scheduler",
     schedule_to},
    {"--emit", "FORM",
     "Plan to C++: cpp is all of it, kernels the kernels alone; cuda, cuda-kernels, triton "
     "and triton-kernels for a GPU; "
     "backend:LIBRARY what a backend outside Litz compiles",
     emit},
    {"--compile", nullptr, "Graph to shared library, as the driver does it, passes included",
     compile},
    {"--run", nullptr, "Run a program in the interpreter, or what --compile made", run},
};

std::string print(const Graph& graph) { return to_string(graph); }
std::string print(const Program& program) { return to_string(program); }
std::string print(const Plan& plan) { return to_string(plan); }
std::string print(const Text& text) { return text.text; }

std::string print(const CppSources& sources) {
  std::string text;
  for (const CppSource& unit : sources.units) text += "// ---- " + unit.name + "\n" + unit.text;
  return text;
}

std::string print(const CompiledGraphState& compiled) {
  const LitzArtifact& table = compiled.executable->table();
  std::string text = compiled.path.empty() ? "interpreted" : "compiled";
  text += ": " + std::to_string(table.num_inputs) + " inputs, " +
          std::to_string(table.num_outputs) + " outputs, " + std::to_string(table.num_extern_ops) +
          " library ops\n";
  for (int32_t i = 0; i < table.num_extern_ops; ++i) {
    text += "library op " + std::string(table.extern_ops[i].name) + "\n";
  }
  return text;
}

// Behind empty lines and comments, which programs begin with # and graphs with //.
std::string_view first_word(std::string_view text) {
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    if (!text.starts_with("//") && !text.starts_with("#")) break;
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
  return text.substr(0, text.find_first_of("( \t\r\n"));
}

}  // namespace

std::span<const OptStep> opt_steps() { return kSteps; }

State parse_state(std::string_view text) {
  if (first_word(text) == "program") return parse_program(text);
  return parse_graph(text);
}

std::string print_state(const State& state) {
  return std::visit([](const auto& level) { return print(level); }, state);
}

}  // namespace litz
