#include "lowering/lowering.h"
namespace litz {
std::span<const LoweringRow> pointwise_lowerings() { return {}; }
std::span<const LoweringRow> view_lowerings() { return {}; }
std::span<const LoweringRow> creation_lowerings() { return {}; }
std::span<const LoweringRow> join_lowerings() { return {}; }
std::span<const LoweringRow> reduction_lowerings() { return {}; }
std::span<const LoweringRow> normalization_lowerings() { return {}; }
std::span<const LoweringRow> activation_lowerings() { return {}; }
std::span<const LoweringRow> indexing_lowerings() { return {}; }
std::span<const LoweringRow> pooling_lowerings() { return {}; }
std::span<const LoweringRow> library_lowerings() { return {}; }
}
