// Cumulative sums, products and extrema.
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

// Where the running extremum is: eager moves on to an element that is as good, and stays at a NaN
// but for another one. The value is the element there, which tells apart what compares equal.
Lowered lower_extremum(OpCall& call, ScanKind kind) {
  const TensorValue input = call.tensor("self");
  if (input.rank() == 0) {
    set_pointwise(call, 0, [&](std::span<const Index> p) { return call.load(input, p); });
    set_constant(call, 1, 0);
    return std::nullopt;
  }
  const size_t axis = normalize_dim(call.integer("dim"), input.rank());
  const auto value = [&](std::span<const Index> p) {
    const Expr element = load_wide(call, input, p);
    return input.dtype == DType::kBool ? cast(element, DType::kInt64) : element;
  };
  const TensorValue best = call.scan(kind, input.sizes, axis, value);
  const TensorValue place =
      call.scan(ScanKind::kMax, input.sizes, axis, [&](std::span<const Index> p) {
        const Expr element = value(p);
        const Expr moves = either(equal(element, call.load(best, p)), is_nan(element));
        return select(moves, call.exprs().index_value(p[axis]), 0.0);
      });
  set_pointwise(call, 0, [&](std::span<const Index> p) {
    std::vector<Index> at(p.begin(), p.end());
    at[axis] = call.indices().indirect(0, input.sizes[axis]);
    return call.load(input, at, {{call.load(place, p)}});
  });
  set_pointwise(call, 1, [&](std::span<const Index> p) { return call.load(place, p); });
  return std::nullopt;
}

Lowered lower_cummax(OpCall& call) { return lower_extremum(call, ScanKind::kMax); }
Lowered lower_cummin(OpCall& call) { return lower_extremum(call, ScanKind::kMin); }

constexpr LoweringRow kRows[] = {
    {"aten::cumsum", lower_cumsum},
    {"aten::cumprod", lower_cumprod},
    {"aten::cummax", lower_cummax},
    {"aten::cummin", lower_cummin},
};

}  // namespace

std::span<const LoweringRow> scan_rows() { return kRows; }

}  // namespace litz
