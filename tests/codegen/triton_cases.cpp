// Prints the kernels of the graphs of files such as tests/lowering/cases as Triton, and how they
// are launched: one JSON object a line, for run_triton_cases.py.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "codegen/triton/tile_plan.h"
#include "codegen/triton/triton_program.h"
#include "graph/parse_graph.h"
#include "lowering/lowering.h"
#include "schedule/schedule.h"

namespace litz {
namespace {

using Json = nlohmann::ordered_json;

struct Case {
  std::string name;
  std::string graph;
  std::vector<std::string> expected;
};

std::vector<Case> read_cases(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<Case> cases;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("case ")) {
      cases.push_back({path.stem().string() + ": " + line.substr(5), {}, {}});
    } else if (line.starts_with("expect ")) {
      cases.back().expected.push_back(line);
    } else if (line.starts_with("graph(")) {
      inside = true;
    }
    if (inside) cases.back().graph += line + "\n";
    if (line == "}") inside = false;
  }
  return cases;
}

std::string hex(const std::vector<std::byte>& bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (std::byte b : bytes) {
    text += kDigits[static_cast<unsigned>(b) >> 4];
    text += kDigits[static_cast<unsigned>(b) & 15];
  }
  return text;
}

Json numbers(const std::vector<Index>& values) {
  Json list = Json::array();
  for (Index value : values) list.push_back(value.constant());
  return list;
}

Json buffers_of(const Plan& plan) {
  Json list = Json::array();
  for (uint32_t i = 0; i < plan.program->buffers().size(); ++i) {
    const Buffer& buffer = plan.program->buffer(BufferId(i));
    const Storage& storage = plan.storage[BufferId(i)];
    Json entry = {{"dtype", std::string(to_string(buffer.dtype))},
                  {"elements", storage_elements(*plan.program, buffer).constant()}};
    if (storage.kind == Storage::Kind::kConstant) entry["bytes"] = hex(buffer.bytes);
    if (storage.kind == Storage::Kind::kInput) entry["input"] = storage.number;
    if (storage.kind == Storage::Kind::kWorkspace)
      entry["offset"] = storage.offset_bytes.constant();
    list.push_back(std::move(entry));
  }
  return list;
}

Json functions_of(const TritonProgram& program) {
  Json list = Json::array();
  for (const TritonProgram::Function& f : program.functions) {
    list.push_back({{"name", f.name},
                    {"signature", f.signature},
                    {"aligned", f.aligned},
                    {"warps", f.warps},
                    {"stages", f.stages},
                    {"checks", f.checks}});
  }
  return list;
}

Json launches_of(const TritonProgram& program, const DeviceCall& call) {
  const TritonProgram::Kernel& kernel = program.kernels[call.kernel];
  Json partials = Json::array();
  for (const TritonKernel::Partial& p : kernel.printed.partials)
    partials.push_back({std::string(to_string(p.dtype)), p.elements});
  Json buffers = Json::array();
  for (BufferId b : call.buffers) buffers.push_back(b.value);
  Json list = Json::array();
  for (size_t i = 0; i < kernel.printed.functions.size(); ++i) {
    const TritonFunction& f = kernel.printed.functions[i];
    list.push_back({{"function", kernel.first + i},
                    {"grid", {f.programs.constant(), f.splits}},
                    {"partials", partials},
                    {"buffers", buffers}});
  }
  return list;
}

Json outputs_of(const Program& program) {
  Json list = Json::array();
  for (const ProgramOutput& output : program.outputs) {
    const auto* view = std::get_if<BufferView>(&output.v);
    if (view == nullptr) {
      list.push_back(nullptr);
      continue;
    }
    list.push_back({{"buffer", view->buffer.value},
                    {"dtype", std::string(to_string(view->dtype))},
                    {"sizes", numbers(view->sizes)},
                    {"strides", numbers(view->strides)},
                    {"offset", view->offset.constant()}});
  }
  return list;
}

Json describe(const Case& test) {
  LoweringOptions lowering;
  lowering.matrix_products = ProductKernels::kOn;
  lowering.attention = AttentionKernels::kOn;
  const LoweringResult lowered = lower_graph(parse_graph(test.graph), lowering);
  ScheduleOptions options;
  options.matrix_products = true;
  options.converts_factors = true;
  options.sums_of_deviations = true;
  options.column_sums = triton_column_sums();
  options.combined_iterations = int64_t{1} << 20;
  const Plan plan = schedule_program(std::make_shared<const Program>(lowered.program), options);
  Json entry = {{"case", test.name}};
  const Result<TritonProgram> triton = print_triton_program(plan);
  if (!triton) {
    entry["refused"] = triton.reason();
    return entry;
  }
  entry["text"] = triton->text();
  entry["functions"] = functions_of(*triton);
  Json steps = Json::array();
  entry["library"] = false;
  for (const Step& step : plan.steps) {
    for (KernelId kernel : kernels_of(step)) {
      const DeviceCall& call = triton->calls[kernel.value];
      if (call.launched_with == kernel) steps.push_back(launches_of(*triton, call));
    }
    if (const auto* library = std::get_if<OperationId>(&step.v)) {
      const auto& call = std::get<ExternKernel>(plan.program->operations()[*library].v);
      if (call.node == "seeds") {
        entry["seeds"] = call.outputs[0].value;
      } else {
        entry["library"] = true;
      }
    }
  }
  entry["steps"] = std::move(steps);
  entry["buffers"] = buffers_of(plan);
  entry["workspace"] = plan.workspace_bytes.constant();
  entry["outputs"] = outputs_of(*plan.program);
  entry["expected"] = test.expected;
  return entry;
}

}  // namespace
}  // namespace litz

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    for (const litz::Case& test : litz::read_cases(argv[i]))
      std::cout << litz::describe(test).dump() << "\n";
  }
  return 0;
}
