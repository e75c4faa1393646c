// One table from those of several files.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "lowering/lowering.h"

namespace litz {

inline std::vector<LoweringRow> join_tables(
    std::initializer_list<std::span<const LoweringRow>> tables) {
  std::vector<LoweringRow> rows;
  for (const std::span<const LoweringRow> table : tables) {
    rows.insert(rows.end(), table.begin(), table.end());
  }
  return rows;
}

}  // namespace litz
