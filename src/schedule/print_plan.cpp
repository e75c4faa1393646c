#include "schedule/print_plan.h"

#include <sstream>

#include "ir/print_program.h"

namespace litz {
namespace {

std::string loops_text(const std::vector<KernelLoop>& loops) {
  std::string text;
  for (const KernelLoop& loop : loops) {
    text += (text.empty() ? "" : ", ") + to_string(loop.variable) + " < " + to_string(loop.extent);
  }
  return "[" + text + "]";
}

std::string storage_text(const Program& program, const Storage& storage) {
  switch (storage.kind) {
    case Storage::Kind::kNone:
      return "not stored";
    case Storage::Kind::kInput:
      return "input " + std::to_string(storage.number);
    case Storage::Kind::kConstant:
      return "constant";
    case Storage::Kind::kWorkspace:
      return "workspace at " + to_string(storage.offset_bytes) + ", " +
             to_string(storage.size_bytes) + " bytes";
    case Storage::Kind::kOutput:
      return "output " + std::to_string(storage.number);
    case Storage::Kind::kHost:
      return "result of a library call";
    case Storage::Kind::kTaken:
      return "in the memory of " + program.buffer(BufferId(storage.number)).name;
  }
  return {};
}

// The value's instructions, indented.
std::string value_text(const Program& program, Expr value) {
  std::string text;
  std::istringstream lines(to_string(program, value));
  for (std::string line; std::getline(lines, line);) text += "    " + line + "\n";
  return text;
}

void print_kernel(const Plan& plan, const Kernel& kernel, std::string& text) {
  const Program& program = *plan.program;
  text += " outer " + loops_text(kernel.outer);
  if (!kernel.inner.empty()) text += " inner " + loops_text(kernel.inner);
  if (kernel.sequential) text += " in order";
  if (kernel.is_product) text += " product";
  if (kernel.attention) {
    text += " attention factors " + loops_text({kernel.attention->factors});
  }
  if (kernel.attention && kernel.attention->logsumexp.valid())
    text += " logsumexp " + program.buffer(kernel.attention->logsumexp).name + "[" +
            to_string(kernel.attention->logsumexp_offset) + "]";
  text += " {\n";
  for (const std::string& origin : kernel.origins) text += "  # " + origin + "\n";
  for (size_t i = 0; i < kernel.reductions.size(); ++i) {
    const KernelReduction& r = kernel.reductions[i];
    text += "  stage " + std::to_string(r.stage) + ": r" + std::to_string(i) + " = " +
            (r.running ? "running " : "") + std::string(to_string(r.kind)) +
            (r.over_outer ? " over outer" : "") + "\n" + value_text(program, r.value);
  }
  if (kernel.attention) text += "  score\n" + value_text(program, kernel.attention->score);
  for (const KernelStore& store : kernel.stores) {
    const std::string place = store.inner         ? "stage " + std::to_string(store.stage)
                              : store.after_outer ? "after outer"
                                                  : "outer";
    text += "  " + place + ": " + program.buffer(store.buffer).name + "[" +
            to_string(store.offset) + "] " + std::string(to_string(store.mode)) + "\n" +
            value_text(program, store.value);
  }
  text += "}\n";
}

}  // namespace

std::string to_string(const Plan& plan) {
  std::string text;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    text += "step " + std::to_string(i) + ": ";
    if (const auto* operation = std::get_if<OperationId>(&plan.steps[i].v)) {
      text += to_string(*plan.program, plan.program->operations()[*operation]) + "\n";
    }
    if (std::holds_alternative<KernelSet>(plan.steps[i].v)) text += "at once\n";
    for (KernelId kernel : kernels_of(plan.steps[i])) {
      text += "kernel " + std::to_string(kernel.value);
      print_kernel(plan, plan.kernels[kernel], text);
    }
  }
  if (plan.storage.empty()) return text;
  for (uint32_t i = 0; i < plan.program->buffers().size(); ++i) {
    text += "buffer " + plan.program->buffer(BufferId(i)).name + ": " +
            storage_text(*plan.program, plan.storage[BufferId(i)]) + "\n";
  }
  return text + "workspace: " + to_string(plan.workspace_bytes) + " bytes\n";
}

}  // namespace litz
