#include "driver/report.h"

#include <algorithm>
#include <map>

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

// Texts come from the user's program and from compilers: they may be no UTF-8.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// From the nodes of one graph, [name, line] each, to those of another that is the same but for
// them.
class Renaming {
 public:
  Renaming(const Json& nodes, const Graph& graph) {
    for (uint32_t i = 0; i < nodes.size() && i < graph.num_nodes(); ++i) {
      const Node& node = graph.node(NodeId(i));
      const std::string name = nodes[i][0];
      const std::string line = nodes[i][1];
      nodes_[name] = &node;
      if (node_origin(name, line) != node_origin(node.name, node.stack))
        places_[node_origin(name, line)] = node_origin(node.name, node.stack);
    }
  }

  void apply(Json& name) const {
    if (const Node* node = find(name)) name = node->name;
  }
  void apply_to_call(Json& call) const {
    const Node* node = find(call["node"]);
    if (node == nullptr) return;
    call["node"] = node->name;
    if (call.contains("line")) call["line"] = node->stack;
  }
  const std::map<std::string, std::string>& places() const { return places_; }

 private:
  const Node* find(const Json& name) const {
    const auto found = nodes_.find(name.get<std::string>());
    return found == nodes_.end() ? nullptr : found->second;
  }

  std::map<std::string, const Node*> nodes_;
  std::map<std::string, std::string> places_;
};

}  // namespace

std::string report_plan(const Plan& plan, const CppSources& sources,
                        const std::vector<LoweringNote>& fallbacks) {
  Json report;
  report["kernels"] = kernels(plan, sources.kernels);
  report["launches"] = sources.launches;
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
  return dump(report);
}

std::string with_dialect(const std::string& report, const std::string& dialect,
                         const std::string& reason) {
  Json all = Json::parse(report);
  all["dialect"] = dialect;
  all["dialect_reason"] = reason;
  return dump(all);
}

std::string with_candidates(const std::string& report,
                            const std::vector<MeasuredCandidate>& measured) {
  Json json = Json::parse(report);
  json["measured"] = Json::array();
  for (const MeasuredCandidate& candidate : measured) {
    json["measured"].push_back({{"what", candidate.key},
                                {"count", candidate.count},
                                {"is_kernel", candidate.is_kernel},
                                {"kernel_seconds", candidate.kernel_seconds},
                                {"library_seconds", candidate.library_seconds}});
  }
  return dump(json);
}

std::string with_layouts(const std::string& report, const std::vector<uint32_t>& channels_last) {
  Json all = Json::parse(report);
  all["channels_last_outputs"] = channels_last;
  return dump(all);
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
  return dump(report);
}

std::string with_nodes(const std::string& report, const Graph& graph) {
  Json all = Json::parse(report);
  Json nodes = Json::array();
  for (uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const Node& node = graph.node(NodeId(i));
    nodes.push_back({node.name, node.stack});
  }
  all["nodes"] = std::move(nodes);
  return dump(all);
}

std::string for_nodes_of(const std::string& cached_report, const Graph& graph) {
  Json all = Json::parse(cached_report);
  const Json nodes = std::move(all["nodes"]);
  all.erase("nodes");
  Renaming renaming(nodes, graph);
  for (Json& kernel : all["kernels"]) {
    for (Json& op : kernel["ops"]) renaming.apply(op);
  }
  for (const char* list : {"library_calls", "fallbacks"}) {
    for (Json& call : all[list]) renaming.apply_to_call(call);
  }
  for (Json& buffer : all["buffers"]) {
    renaming.apply(buffer["name"]);
    renaming.apply(buffer["reuses"]);
  }
  for (Json& pair : all["not_fused"]) {
    renaming.apply(pair["first"]);
    renaming.apply(pair["second"]);
  }
  all["places"] = renaming.places();
  return dump(all);
}

std::string complete_report(const std::string& report, const Timings& timings,
                            const std::string& source_path, bool cached) {
  Json all = Json::parse(report);
  Json seconds = Json::object();
  for (const auto& [stage, time] : timings.seconds()) seconds[stage] = time;
  all["timings"] = std::move(seconds);
  all["source_path"] = source_path;
  all["cached"] = cached;
  return dump(all);
}

std::string report_with_device(const std::string& report, const std::string& device,
                               const std::string& note) {
  Json all = Json::parse(report);
  all["device"] = device;
  all["device_note"] = note;
  return dump(all);
}

}  // namespace litz
