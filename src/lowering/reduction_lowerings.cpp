#include "lowering/join_tables.h"
#include "lowering/reduction_rows.h"

namespace litz {

std::span<const LoweringRow> reduction_lowerings() {
  static const std::vector<LoweringRow> rows =
      join_tables({basic_reduction_rows(), statistics_rows(), scan_rows()});
  return rows;
}

}  // namespace litz
