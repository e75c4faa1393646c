#include "lowering/concatenate_rows.h"
#include "lowering/normalization_families.h"

namespace litz {

std::span<const LoweringRow> normalization_lowerings() {
  static const std::vector<LoweringRow> rows =
      concatenate_rows({softmax_lowerings(), layer_norm_lowerings(), batch_norm_lowerings(),
                 loss_lowerings(), nll_loss_lowerings()});
  return rows;
}

}  // namespace litz
