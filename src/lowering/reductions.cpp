// Reductions of one tensor to sums, products, extrema and truth values. Sums of integers and bools
// are int64 and halves add up in float32, as in eager.
#include "lowering/reduction_helpers.h"
#include "lowering/reduction_rows.h"

namespace litz {
namespace {

using Lowered = std::optional<Unsupported>;

// Result 0 becomes the reduction of `body` over the call's dimensions. It may be narrower than what
// `body` computes in.
void set_reduction(OpCall& call, ReductionKind kind, const OpCall::Body& body) {
  const TensorValue& input = call.tensor("self");
  set_rounded(call, 0,
              call.reduce(kind, input.sizes, call_dims(call, input.rank()), keepdim(call), body));
}

// ---- sums ----

Lowered lower_sum(OpCall& call) {
  const TensorValue input = call.tensor("self");
  const DType dtype = call.result().dtype;
  if (dtype == DType::kBool) return Unsupported{"a sum of bools that stays bool"};
  set_reduction(call, ReductionKind::kSum,
                [&](std::span<const Index> p) { return load_as(call, input, p, dtype); });
  return std::nullopt;
}

Lowered lower_nansum(OpCall& call) {
  const TensorValue input = call.tensor("self");
  const DType dtype = call.result().dtype;
  if (dtype == DType::kBool) return Unsupported{"a sum of bools that stays bool"};
  set_reduction(call, ReductionKind::kSum, [&](std::span<const Index> p) {
    const Expr value = load_as(call, input, p, dtype);
    return select(is_nan(value), 0.0, value);
  });
  return std::nullopt;
}

Lowered lower_prod(OpCall& call) {
  const TensorValue input = call.tensor("self");
  const DType dtype = call.result().dtype;
  if (dtype == DType::kBool) return Unsupported{"a product of bools that stays bool"};
  set_reduction(call, ReductionKind::kProd,
                [&](std::span<const Index> p) { return load_as(call, input, p, dtype); });
  return std::nullopt;
}

Lowered lower_mean(OpCall& call) {
  const TensorValue input = call.tensor("self");
  const DType dtype = call.result().dtype;
  const std::vector<size_t> dims = call_dims(call, input.rank());
  const TensorValue sum =
      call.reduce(ReductionKind::kSum, input.sizes, dims, keepdim(call),
                  [&](std::span<const Index> p) { return load_as(call, input, p, dtype); });
  set_pointwise(call, 0, [&](std::span<const Index> p) {
    return call.load(sum, p) / index_as(call, count_elements(call, input.sizes, dims), sum.dtype);
  });
  return std::nullopt;
}

Lowered lower_count_nonzero(OpCall& call) {
  const TensorValue input = call.tensor("self");
  set_reduction(call, ReductionKind::kSum, [&](std::span<const Index> p) {
    return cast(cast(call.load(input, p), DType::kBool), DType::kInt64);
  });
  return std::nullopt;
}

// ---- truth values ----

Lowered lower_truth(OpCall& call, ReductionKind kind) {
  const TensorValue input = call.tensor("self");
  const auto truth = [&](std::span<const Index> p) {
    return cast(call.load(input, p), DType::kBool);
  };
  const bool reduces_nothing = call.node().schema->find("dim") >= 0 &&
                               call.argument("dim").is_list() && call.integer_list("dim").empty();
  if (reduces_nothing) {
    set_pointwise(call, 0, truth);
  } else {
    set_reduction(call, kind, truth);
  }
  return std::nullopt;
}

Lowered lower_any(OpCall& call) { return lower_truth(call, ReductionKind::kAny); }
Lowered lower_all(OpCall& call) { return lower_truth(call, ReductionKind::kAll); }

// ---- extrema ----

constexpr const char* kNoElement = "it reduces over no element, which is an error in eager";

bool has_no_element(const OpCall& call) {
  const TensorValue& input = call.tensor("self");
  return is_empty(call, input.sizes, call_dims(call, input.rank()));
}

// Result number `output` becomes an extremum, or its position, over the call's dimensions.
void set_extremum(OpCall& call, size_t output, ReductionKind kind) {
  const TensorValue input = call.tensor("self");
  set_rounded(call, output,
              call.reduce(kind, input.sizes, call_dims(call, input.rank()), keepdim(call),
                          [&](std::span<const Index> p) { return load_wide(call, input, p); }));
}

Lowered lower_extremum(OpCall& call, ReductionKind kind) {
  if (has_no_element(call)) return Unsupported{kNoElement};
  set_extremum(call, 0, kind);
  return std::nullopt;
}

Lowered lower_max(OpCall& call) { return lower_extremum(call, ReductionKind::kMax); }
Lowered lower_min(OpCall& call) { return lower_extremum(call, ReductionKind::kMin); }
Lowered lower_argmax(OpCall& call) { return lower_extremum(call, ReductionKind::kArgMax); }
Lowered lower_argmin(OpCall& call) { return lower_extremum(call, ReductionKind::kArgMin); }

Lowered lower_extremum_pair(OpCall& call, ReductionKind first, ReductionKind second) {
  if (has_no_element(call)) return Unsupported{kNoElement};
  set_extremum(call, 0, first);
  set_extremum(call, 1, second);
  return std::nullopt;
}

Lowered lower_max_dim(OpCall& call) {
  return lower_extremum_pair(call, ReductionKind::kMax, ReductionKind::kArgMax);
}
Lowered lower_min_dim(OpCall& call) {
  return lower_extremum_pair(call, ReductionKind::kMin, ReductionKind::kArgMin);
}
Lowered lower_aminmax(OpCall& call) {
  return lower_extremum_pair(call, ReductionKind::kMin, ReductionKind::kMax);
}

constexpr LoweringRow kRows[] = {
    {"aten::sum", lower_sum},
    {"aten::sum.dim_IntList", lower_sum},
    {"aten::nansum", lower_nansum},
    {"aten::prod", lower_prod},
    {"aten::prod.dim_int", lower_prod},
    {"aten::mean", lower_mean},
    {"aten::mean.dim", lower_mean},
    {"aten::count_nonzero", lower_count_nonzero},
    {"aten::count_nonzero.dim_IntList", lower_count_nonzero},
    {"aten::any", lower_any},
    {"aten::any.dim", lower_any},
    {"aten::any.dims", lower_any},
    {"aten::all", lower_all},
    {"aten::all.dim", lower_all},
    {"aten::all.dims", lower_all},
    {"aten::amax", lower_max},
    {"aten::max", lower_max},
    {"aten::max.dim", lower_max_dim},
    {"aten::amin", lower_min},
    {"aten::min", lower_min},
    {"aten::min.dim", lower_min_dim},
    {"aten::aminmax", lower_aminmax},
    {"aten::argmax", lower_argmax},
    {"aten::argmin", lower_argmin},
};

}  // namespace

std::span<const LoweringRow> basic_reduction_rows() { return kRows; }

}  // namespace litz
