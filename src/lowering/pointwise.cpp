// The pointwise family: its parts, joined.
#include "lowering/join_tables.h"
#include "lowering/pointwise_rows.h"

namespace litz {

std::span<const LoweringRow> pointwise_lowerings() {
  static const std::vector<LoweringRow> rows = join_tables(
      {arithmetic_rows(), math_rows(), comparison_rows(), selection_rows(), copy_rows()});
  return rows;
}

}  // namespace litz
