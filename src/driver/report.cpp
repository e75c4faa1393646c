#include "driver/report.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace litz {
namespace {

using Json = nlohmann::ordered_json;

// A number of bytes where it is known at compile time, else 0.
int64_t constant_or_zero(Index index) {
  return index.valid() && index.is_constant() ? index.constant() : 0;
}

int64_t bytes_of(const Plan& plan, const std::vector<BufferId>& buffers) {
  int64_t total = 0;
  for (BufferId id : buffers) total += constant_or_zero(plan.storage[id].size_bytes);
  return total;
}

std::string node_of(const std::string& origin) { return origin.substr(0, origin.find(':')); }

Json kernels(const Plan& plan, const std::vector<std::string>& names) {
  Json list = Json::array();
  for (uint32_t i = 0; i < plan.kernels.size(); ++i) {
    const Kernel& kernel = plan.kernels[KernelId(i)];
    Json ops = Json::array();
    for (const std::string& origin : kernel.origins) {
      const std::string node = node_of(origin);
      if (std::find(ops.begin(), ops.end(), node) == ops.end()) ops.push_back(node);
    }
    list.push_back({{"name", i < names.size() ? names[i] : "kernel" + std::to_string(i)},
                    {"ops", ops},
                    {"reads", bytes_of(plan, kernel.reads)},
                    {"writes", bytes_of(plan, kernel.writes)},
                    {"bytes_saved", constant_or_zero(kernel.bytes_saved)}});
  }
  return list;
}

void add_library_call(Json& list, const Operation& operation) {
  const auto* kernel = std::get_if<ExternKernel>(&operation.v);
  if (kernel == nullptr || !kernel->reason.empty()) return;
  list.push_back({{"op", kernel->name},
                  {"node", kernel->node},
                  {"reason", "the library is the choice for it"}});
}

Json library_calls(const Plan& plan) {
  Json list = Json::array();
  for (const Step& step : plan.steps) {
    if (const auto* id = std::get_if<OperationId>(&step.v))
      add_library_call(list, plan.program->operations()[*id]);
  }
  return list;
}

Json library_calls(const Program& program) {
  Json list = Json::array();
  for (const Operation& operation : program.operations()) add_library_call(list, operation);
  return list;
}

Json fallback_list(const std::vector<LoweringNote>& fallbacks) {
  Json list = Json::array();
  for (const LoweringNote& note : fallbacks) {
    list.push_back(
        {{"op", note.op}, {"node", note.node}, {"reason", note.reason}, {"line", note.stack}});
  }
  return list;
}

Json buffers(const Plan& plan) {
  Json list = Json::array();
  std::map<uint32_t, std::string> owner;  // by offset, for constant ones
  for (uint32_t i = 0; i < plan.program->buffers().size(); ++i) {
    const Storage& storage = plan.storage[BufferId(i)];
    if (storage.kind != Storage::Kind::kWorkspace) continue;
    const std::string& name = plan.program->buffer(BufferId(i)).name;
    std::string reuses;
    if (storage.offset_bytes.is_constant()) {
      const auto [found, added] = owner.emplace(storage.offset_bytes.id(), name);
      if (!added) reuses = found->second;
    }
    list.push_back(
        {{"name", name}, {"bytes", constant_or_zero(storage.size_bytes)}, {"reuses", reuses}});
  }
  return list;
}

}  // namespace

std::string report_plan(const Plan& plan, const std::vector<std::string>& kernel_names,
                        const std::vector<LoweringNote>& fallbacks) {
  Json report;
  report["kernels"] = kernels(plan, kernel_names);
  report["library_calls"] = library_calls(plan);
  report["fallbacks"] = fallback_list(fallbacks);
  report["buffers"] = buffers(plan);
  report["not_fused"] = Json::array();
  for (const NotFused& pair : plan.not_fused) {
    report["not_fused"].push_back({{"first", node_of(pair.producer)},
                                   {"second", node_of(pair.consumer)},
                                   {"reason", pair.reason}});
  }
  report["interpreted"] = "";
  return report.dump();
}

std::string report_interpreted(const Program& program, const std::vector<LoweringNote>& fallbacks,
                               const std::string& reason) {
  Json report;
  report["kernels"] = Json::array();
  report["library_calls"] = library_calls(program);
  report["fallbacks"] = fallback_list(fallbacks);
  report["buffers"] = Json::array();
  report["not_fused"] = Json::array();
  report["interpreted"] = reason;
  return report.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string complete_report(const std::string& report, const std::map<std::string, double>& timings,
                            const std::string& source_path, bool cached) {
  Json all = Json::parse(report);
  all["timings"] = timings;
  all["source_path"] = source_path;
  all["cached"] = cached;
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace litz
