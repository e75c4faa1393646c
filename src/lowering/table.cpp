#include <unordered_map>

#include "lowering/lowering_context.h"
#include "support/error.h"

namespace litz {
namespace {

using Table = std::unordered_map<std::string_view, LoweringFunction>;

Table build_table() {
  Table table;
  for (const LoweringFamily& family : lowering_families()) {
    for (const LoweringRow& row : family.rows) {
      const bool is_new = table.emplace(row.op, row.function).second;
      LITZ_CHECK(is_new, "two lowerings of " + std::string(row.op));
    }
  }
  return table;
}

}  // namespace

std::vector<LoweringFamily> lowering_families() {
  return {{"pointwise", pointwise_lowerings()},
          {"views", view_lowerings()},
          {"creation", creation_lowerings()},
          {"joins, pads, rearrangements", join_lowerings()},
          {"reductions and scans", reduction_lowerings()},
          {"normalizations and losses", normalization_lowerings()},
          {"activations", activation_lowerings()},
          {"indexing", indexing_lowerings()},
          {"pools and upsampling", pooling_lowerings()},
          {"random numbers", random_lowerings()},
          {"library", library_lowerings()}};
}

bool is_library_lowering(const LoweringRow& row) { return row.function == lower_to_library; }

LoweringFunction find_lowering(std::string_view op) {
  static const Table table = build_table();
  const auto found = table.find(op);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace litz
