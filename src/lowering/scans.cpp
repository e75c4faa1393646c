// Cumulative sums and products.
#include "lowering/reduction_helpers.h"
#include "lowering/reduction_rows.h"

namespace litz {
namespace {

using Lowered = std::optional<Unsupported>;

// What eager keeps the running value in: double for float32, float32 for the halves.
DType running_dtype(DType dtype) {
  return dtype == DType::kFloat32 ? DType::kFloat64 : computation_dtype(dtype);
}

Lowered lower_scan(OpCall& call, ScanKind kind) {
  const TensorValue input = call.tensor("self");
  const DType dtype = call.result().dtype;
  if (dtype == DType::kBool) return Unsupported{"a scan of bools that stays bool"};
  const auto value = [&](std::span<const Index> p) {
    return cast(load_as(call, input, p, dtype), running_dtype(dtype));
  };
  if (input.rank() == 0) {
    set_pointwise(call, 0, value);
    return std::nullopt;
  }
  const size_t axis = normalize_dim(call.integer("dim"), input.rank());
  set_rounded(call, 0, call.scan(kind, input.sizes, axis, value));
  return std::nullopt;
}

Lowered lower_cumsum(OpCall& call) { return lower_scan(call, ScanKind::kSum); }
Lowered lower_cumprod(OpCall& call) { return lower_scan(call, ScanKind::kProd); }

constexpr LoweringRow kRows[] = {
    {"aten::cumsum", lower_cumsum},
    {"aten::cumprod", lower_cumprod},
};

}  // namespace

std::span<const LoweringRow> scan_rows() { return kRows; }

}  // namespace litz
