#include "plan_of.h"

#include <algorithm>
#include <stdexcept>

#include "ir/parse_program.h"
#include "ir/verify_program.h"
#include "schedule/verify_plan.h"

namespace litz {
namespace {

// The parts between separators.
std::vector<std::string> split(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + separator.size(), text.size()));
  }
  return parts;
}

}  // namespace

std::string program_text(std::string_view buffers, std::string_view operations,
                         std::string_view results) {
  std::string text = "program() {\n";
  std::string inputs;
  int num_inputs = 0;
  for (const std::string& row : split(buffers, "; ")) {
    const size_t colon = row.find(": ");
    const bool is_input = row.ends_with(" input");
    for (const std::string& name : split(row.substr(0, colon), " ")) {
      text += "  buffer " + name + row.substr(colon);
      if (is_input) {
        inputs += (num_inputs == 0 ? "" : ", ") + name + " = tensor " + name;
        text += " " + std::to_string(num_inputs++);
      }
      text += "\n";
    }
  }
  text += "  inputs (" + inputs + ")\n" + std::string(operations) + "  return (";
  for (const std::string& name : split(results, " "))
    text += (text.ends_with('(') ? "tensor " : ", tensor ") + name;
  return text + ")\n}\n";
}

std::string backward_chain() {
  return program_text("x: f32[64] input; a b y: f32[64]",
                      unary("a", "d0 < 64", "exp", "x[d0]") +
                          unary("b", "d0 < 64", "sin", "a[-d0 + 63]") +
                          unary("y", "d0 < 64", "sin", "b[-d0 + 63]"),
                      "y");
}

Plan plan_of(std::string_view text, const ScheduleOptions& options) {
  const auto program = std::make_shared<Program>(parse_program(text));
  verify_program(*program);
  Plan plan = schedule_program(program, options);
  verify_plan(plan);
  return plan;
}

ScheduleOptions apart() {
  ScheduleOptions options;
  options.fuse = false;
  options.inline_producers = false;
  return options;
}

BufferId buffer_named(const Plan& plan, std::string_view name) {
  for (uint32_t i = 0; i < plan.program->buffers().size(); ++i) {
    if (plan.program->buffer(BufferId(i)).name == name) return BufferId(i);
  }
  throw std::invalid_argument("no buffer " + std::string(name));
}

const Storage& storage_of(const Plan& plan, std::string_view buffer) {
  return plan.storage[buffer_named(plan, buffer)];
}

int64_t offset_of(const Plan& plan, std::string_view buffer) {
  const Storage& storage = storage_of(plan, buffer);
  return storage.kind == Storage::Kind::kWorkspace ? storage.offset_bytes.constant() : -1;
}

std::vector<std::string> written_by_step(const Plan& plan) {
  std::vector<std::string> steps;
  for (const Step& step : plan.steps) {
    std::string names;
    for (KernelId kernel : kernels_of(step)) {
      if (!names.empty()) names += " |";
      for (BufferId id : plan.kernels[kernel].writes)
        names += (names.empty() ? "" : " ") + plan.program->buffer(id).name;
    }
    if (const auto* operation = std::get_if<OperationId>(&step.v))
      names = std::get<ExternKernel>(plan.program->operations()[*operation].v).name;
    steps.push_back(names);
  }
  return steps;
}

std::string unary(const std::string& name, const std::string& loops, const std::string& op,
                  const std::string& load) {
  return "  pointwise " + name + "[" + loops + "] {\n    t0 = load " + load + "\n    t1 = " + op +
         " t0\n    yield t1\n  }\n";
}

std::string binary(const std::string& name, const std::string& loops, const std::string& op,
                   const std::string& first, const std::string& second) {
  return "  pointwise " + name + "[" + loops + "] {\n    t0 = load " + first + "\n    t1 = load " +
         second + "\n    t2 = " + op + " t0, t1\n    yield t2\n  }\n";
}

}  // namespace litz
