#include "driver/check_options.h"

#include <algorithm>
#include <set>

#include "driver/stage_options.h"
#include "passes/pipeline.h"
#include "support/error.h"

namespace litz {
namespace {

template <class Names>
std::string listed(const Names& names) {
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

std::set<std::string> ops_of(const Graph& graph) {
  std::set<std::string> ops;
  for (uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const Node& node = graph.node(NodeId(i));
    if (node.kind != NodeKind::kCall) continue;
    ops.insert(node.schema->name);
    ops.insert(node.schema->full_name());
  }
  return ops;
}

// The name with or without overload, or a namespace with "::", begins an entry of the table.
bool is_in_table(std::string_view prefix, std::string_view ends) {
  const std::span<const BuiltinSchema> table = builtin_schemas();
  const auto found = std::lower_bound(
      table.begin(), table.end(), prefix,
      [](const BuiltinSchema& row, std::string_view name) { return row.full_name() < name; });
  if (found == table.end() || !found->full_name().starts_with(prefix)) return false;
  if (ends.empty() || found->full_name().size() == prefix.size()) return true;
  return ends.find(found->full_name()[prefix.size()]) != ends.npos;
}

bool is_known_op(const std::string& name, const std::set<std::string>& ops) {
  if (ops.contains(name)) return true;
  const size_t colons = name.find("::");
  if (colons == name.npos) return false;
  return is_in_table(name, ".") || is_in_table(name + ".", "") ||
         !is_in_table(name.substr(0, colons + 2), "");
}

}  // namespace

void check_options(const Options& options, const Graph& graph) {
  const std::vector<std::string> dialects = {"auto", "triton", "cuda"};
  if (std::find(dialects.begin(), dialects.end(), options.gpu_dialect) == dialects.end()) {
    throw UserError("option gpu_dialect: there is no '" + options.gpu_dialect + "'; there are " +
                    listed(dialects));
  }
  if (options.guard != "off" && options.guard != "measure")
    throw UserError("option guard: there is no '" + options.guard + "'; there are off, measure");
  pass_options(options);
  lowering_options(options);
  for (const std::string& name : split_list(options.disable_passes)) {
    if (find_graph_pass(name) != nullptr) continue;
    std::vector<std::string_view> passes;
    for (const GraphPass& pass : graph_passes()) passes.push_back(pass.name);
    throw UserError("option disable_passes: there is no pass '" + name + "'; passes are " +
                    listed(passes));
  }
  const std::vector<std::string> fallback_ops = split_list(options.fallback_ops);
  if (fallback_ops.empty()) return;
  const std::set<std::string> ops = ops_of(graph);
  for (const std::string& name : fallback_ops) {
    if (!is_known_op(name, ops)) {
      throw UserError("option fallback_ops: there is no op '" + name + "'; ops of the graph are " +
                      listed(ops));
    }
  }
}

}  // namespace litz
