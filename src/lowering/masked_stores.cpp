// Stores where a mask holds.
#include "lowering/index_helpers.h"
#include "lowering/indexing_rows.h"
#include "lowering/reduction_helpers.h"
#include "lowering/view_helpers.h"

namespace litz {

// One mask over the first dimensions, and values that are the same wherever it holds.
std::optional<Unsupported> lower_masked_put(OpCall& call) {
  const std::vector<std::optional<TensorValue>> indices = call.tensor_list("indices");
  const TensorValue self = call.tensor("self");
  const TensorValue values = call.tensor("values");
  if (indices.empty() || !indices[0] || indices[0]->dtype != DType::kBool)
    return Unsupported{"an index is a mask among others"};
  for (size_t i = 1; i < indices.size(); ++i) {
    if (indices[i]) return Unsupported{"an index is a mask among others"};
  }
  const TensorValue mask = *indices[0];
  const size_t kept = self.rank() - mask.rank();
  if (values.rank() > kept + 1 || (values.rank() == kept + 1 && !values.sizes[0].is_constant(1)))
    return Unsupported{"a mask chooses among several values"};
  const bool accumulate = call.boolean("accumulate");
  if (accumulate && self.dtype == DType::kBool) return Unsupported{"it adds bools"};
  set_pointwise(call, 0, [&](std::span<const Index> p) {
    const Expr old = load_wide(call, self, p);
    std::vector<Index> chosen = {call.indices().constant(0)};
    chosen.insert(chosen.end(), p.begin() + static_cast<std::ptrdiff_t>(mask.rank()), p.end());
    const Expr value = load_wide_broadcast(call, values, chosen);
    return select(call.load(mask, p.first(mask.rank())), accumulate ? old + value : value, old);
  });
  return std::nullopt;
}

namespace {

using Lowered = std::optional<Unsupported>;
using Position = std::span<const Index>;

// The number of elements before each where the mask holds, plus one where it holds there.
TensorValue count_up_to(OpCall& call, const TensorValue& mask, std::span<const Index> sizes) {
  const Index flat[] = {product(call.indices(), sizes)};
  const TensorValue number = call.scan(ScanKind::kSum, flat, 0, [&](Position p) {
    return cast(call.load_broadcast(mask, delinearize(p[0], sizes)), DType::kInt64);
  });
  return reshaped(call, number, sizes);
}

// The elements where the mask holds take the elements of source in turn: a running count of the
// mask says which.
Lowered lower_masked_scatter(OpCall& call) {
  const TensorValue self = call.tensor("self");
  const TensorValue mask = call.tensor("mask");
  const TensorValue source = call.tensor("source");
  if (mask.dtype != DType::kBool) return Unsupported{"the mask is not of bools"};
  const std::vector<Index> sizes = call.result().sizes;
  const Index available = product(call.indices(), source.sizes);
  const TensorValue place_of = count_up_to(call, mask, sizes);
  set_pointwise(call, 0, [&](Position p) {
    const Expr place = call.exprs().check_index(call.load(place_of, p) - 1.0, available,
                                                IndexFault::kRuntimeError);
    const Expr taken =
        call.load(source, delinearize(runtime_index(call, available), source.sizes), {{place}});
    return call.exprs().masked(call.load_broadcast(mask, p), taken, call.load_broadcast(self, p));
  });
  return std::nullopt;
}

// The gradient of masked_scatter's source: where the mask holds, the elements in turn; zeros after.
Lowered lower_masked_scatter_backward(OpCall& call) {
  const TensorValue grad = call.tensor("grad_output");
  const TensorValue mask = call.tensor("mask");
  const std::vector<Index>& sizes = call.result().sizes;
  if (mask.dtype != DType::kBool) return Unsupported{"the mask is not of bools"};
  if (is_empty(call, sizes)) return Unsupported{"the source is empty"};
  const Index count = product(call.indices(), sizes);
  const TensorValue number = count_up_to(call, mask, grad.sizes);
  const auto zero = [&](Position) { return call.exprs().constant(call.result().dtype, 0); };
  set_scatter(call, zero, StoreMode::kAdd, grad.sizes, [&](Position p) {
    const Expr holds = call.load_broadcast(mask, p);
    const Expr place = select(holds, call.load(number, p) - 1.0, 0.0);
    const Expr value = call.load(grad, p);
    return OpCall::Store{delinearize(runtime_index(call, count), sizes),
                         {call.exprs().check_index(place, count)},
                         call.exprs().where(holds, value, call.exprs().constant(value.dtype(), 0))};
  });
  return std::nullopt;
}

constexpr LoweringRow kRows[] = {
    {"aten::masked_scatter", lower_masked_scatter},
    {"aten::masked_scatter_backward", lower_masked_scatter_backward},
};

}  // namespace

std::span<const LoweringRow> masked_store_rows() { return kRows; }

}  // namespace litz
