#include "lowering/join_tables.h"
#include "lowering/pooling_rows.h"

namespace litz {

std::span<const LoweringRow> pooling_lowerings() {
  static const std::vector<LoweringRow> rows = join_tables(
      {average_pooling_rows(), max_pooling_rows(), upsampling_rows(), grid_sampling_rows()});
  return rows;
}

}  // namespace litz
