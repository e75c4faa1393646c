#include "lowering/join_tables.h"
#include "lowering/normalization_rows.h"

namespace litz {

std::span<const LoweringRow> normalization_lowerings() {
  static const std::vector<LoweringRow> rows =
      join_tables({softmax_rows(), layer_norm_rows(), rms_norm_rows(), batch_norm_rows(),
                   loss_rows(), nll_loss_rows()});
  return rows;
}

}  // namespace litz
