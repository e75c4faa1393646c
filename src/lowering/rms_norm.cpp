// RMS norm, which PyTorch traces as one op where a kernel of its own serves it (CUDA). The gradient
// of a row is that of layer norm without a mean.
#include <limits>

#include "lowering/normalization_rows.h"
#include "lowering/normalized_rows.h"
#include "lowering/reduction_helpers.h"

namespace litz {
namespace {

using Lowered = std::optional<Unsupported>;

double epsilon(const OpCall& call, DType computation) {
  if (!call.is_none("eps")) return std::get<double>(call.argument("eps").v);
  return computation == DType::kFloat64 ? std::numeric_limits<double>::epsilon()
                                        : std::numeric_limits<float>::epsilon();
}

// A float64 weight would be multiplied with in float64.
bool fits(const std::optional<TensorValue>& weight, DType computation) {
  return !weight || computation_dtype(weight->dtype) == computation;
}

Lowered lower_rms_norm(OpCall& call) {
  const TensorValue input = call.tensor("input");
  const std::optional<TensorValue> weight = call.optional_tensor("weight");
  const DType dtype = computation_dtype(input.dtype);
  const double eps = epsilon(call, dtype);
  const RowSplit split = split_rows(call, input.rank());
  if (is_empty(call, input.sizes, split.row)) return Unsupported{"the normalized rows are empty"};
  if (!fits(weight, dtype)) return Unsupported{"the weight is of a wider dtype than the input"};

  const auto value = [&](std::span<const Index> p) { return load_wide(call, input, p); };
  const TensorValue squares =
      call.reduce(ReductionKind::kSum, input.sizes, split.row, true, [&](std::span<const Index> p) {
        const Expr x = value(p);
        return x * x;
      });
  const Index count = count_elements(call, input.sizes, split.row);
  const auto rstd = [&](std::span<const Index> p) {
    const Expr mean = call.load_broadcast(squares, p) / index_as(call, count, dtype);
    return apply<ExprOp::kRsqrt>(mean + eps);
  };
  set_pointwise(call, 1, rstd);
  set_pointwise(call, 0, [&](std::span<const Index> p) {
    const Expr normal = value(p) * rstd(p);
    return weight ? normal * load_row(call, *weight, p, dtype) : normal;
  });
  return std::nullopt;
}

Lowered lower_rms_norm_backward(OpCall& call) {
  const TensorValue grad = call.tensor("grad_out");
  const TensorValue input = call.tensor("input");
  const TensorValue rstd = call.tensor("rstd");
  const std::optional<TensorValue> weight = call.optional_tensor("weight");
  const DType dtype = computation_dtype(input.dtype);
  const RowSplit split = split_rows(call, input.rank());
  if (is_empty(call, input.sizes)) return Unsupported{"the input is empty"};
  if (!fits(weight, dtype)) return Unsupported{"the weight is of a wider dtype than the input"};

  const auto wanted = [&](size_t i) { return call.node().outputs[i].is_tensor(); };
  const auto scale = [&](std::span<const Index> p) {
    return cast(load_wide_broadcast(call, rstd, p), dtype);
  };
  const auto normal = [&](std::span<const Index> p) {
    return load_wide(call, input, p) * scale(p);
  };
  const auto upstream = [&](std::span<const Index> p) { return load_wide(call, grad, p); };
  const auto weighted = [&](std::span<const Index> p) {
    return weight ? upstream(p) * load_row(call, *weight, p, dtype) : upstream(p);
  };
  if (wanted(0)) {
    const TensorValue dot =
        call.reduce(ReductionKind::kSum, input.sizes, split.row, true,
                    [&](std::span<const Index> p) { return normal(p) * weighted(p); });
    const Index count = count_elements(call, input.sizes, split.row);
    set_pointwise(call, 0, [&](std::span<const Index> p) {
      const Expr mean = call.load_broadcast(dot, p) / index_as(call, count, dtype);
      return (weighted(p) - normal(p) * mean) * scale(p);
    });
  }
  if (wanted(1)) {
    set_rounded(call, 1,
                call.reduce(ReductionKind::kSum, input.sizes, split.outer, false,
                            [&](std::span<const Index> p) { return upstream(p) * normal(p); }));
  }
  return std::nullopt;
}

constexpr LoweringRow kRows[] = {
    {"aten::_fused_rms_norm", lower_rms_norm},
    {"aten::_fused_rms_norm_backward", lower_rms_norm_backward},
};

}  // namespace

std::span<const LoweringRow> rms_norm_rows() { return kRows; }

}  // namespace litz
