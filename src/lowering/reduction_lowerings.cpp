#include "lowering/concatenate_rows.h"
#include "lowering/reduction_families.h"

namespace litz {

std::span<const LoweringRow> reduction_lowerings() {
  static const std::vector<LoweringRow> rows =
      concatenate_rows({basic_reduction_lowerings(), statistics_lowerings(), scan_lowerings()});
  return rows;
}

}  // namespace litz
