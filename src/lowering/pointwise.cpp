// The pointwise family: its parts, joined.
#include <vector>

#include "lowering/pointwise_rows.h"

namespace litz {

std::span<const LoweringRow> pointwise_lowerings() {
  static const std::vector<LoweringRow> rows = [] {
    std::vector<LoweringRow> joined;
    for (const std::span<const LoweringRow> part :
         {arithmetic_rows(), math_rows(), comparison_rows(), selection_rows(), copy_rows()}) {
      joined.insert(joined.end(), part.begin(), part.end());
    }
    return joined;
  }();
  return rows;
}

}  // namespace litz
