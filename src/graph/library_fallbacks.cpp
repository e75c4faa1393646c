#include "graph/library_fallbacks.h"

#include <algorithm>

namespace litz {

bool LibraryFallbacks::is_library_call(const Node& node) const {
  if (node.kind != NodeKind::kCall) return false;
  const auto has = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  return fallback_everything || has(fallback_ops, node.schema->name) ||
         has(fallback_ops, node.schema->full_name()) || has(fallback_nodes, node.name);
}

}  // namespace litz
