#include <unordered_map>

#include "lowering/lowering.h"
#include "support/error.h"

namespace litz {
namespace {

using Table = std::unordered_map<std::string_view, LoweringFunction>;

Table build_table() {
  Table table;
  for (const std::span<const LoweringRow> family :
       {pointwise_lowerings(), view_lowerings(), creation_lowerings(), join_lowerings(),
        reduction_lowerings(), normalization_lowerings(), activation_lowerings(),
        indexing_lowerings(), pooling_lowerings(), library_lowerings()}) {
    for (const LoweringRow& row : family) {
      const bool is_new = table.emplace(row.op, row.function).second;
      LITZ_CHECK(is_new, "two lowerings of " + std::string(row.op));
    }
  }
  return table;
}

}  // namespace

LoweringFunction find_lowering(std::string_view op) {
  static const Table table = build_table();
  const auto found = table.find(op);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace litz
