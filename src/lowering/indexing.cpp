// Reading and writing elements that index tensors choose. Indices are checked as eager checks them;
// stores to the same element happen in row-major order of the indices.
#include "lowering/index_helpers.h"
#include "lowering/indexing_rows.h"
#include "lowering/join_tables.h"
#include "lowering/reduction_helpers.h"

namespace litz {
namespace {

using Lowered = std::optional<Unsupported>;
using Position = std::span<const Index>;

// `position` with one coordinate replaced; a tensor without dimensions has none.
std::vector<Index> replaced(Position position, size_t dim, Index coordinate) {
  std::vector<Index> out(position.begin(), position.end());
  if (!out.empty()) out[dim] = coordinate;
  return out;
}

// The size that `dim` has; 1 for a tensor without dimensions.
Index size_of_dim(OpCall& call, const TensorValue& value, size_t dim) {
  return value.rank() == 0 ? call.indices().constant(1) : value.sizes[dim];
}

// The index at a place in a list of indices, which may be a tensor without dimensions.
Expr load_list_index(OpCall& call, const TensorValue& index, Index place, Index size,
                     Negative negative, IndexFault fault = IndexFault::kIndexError) {
  const Index position[] = {place};
  return load_index(call, index, Position(position).first(index.rank()), size, negative, fault);
}

// ---- reading ----

Lowered lower_embedding(OpCall& call) {
  const TensorValue weight = call.tensor("weight");
  const TensorValue index = call.tensor("indices");
  set_pointwise(call, 0, [&](Position p) {
    const Expr row =
        load_index(call, index, p.first(p.size() - 1), weight.sizes[0], Negative::kIsError);
    const Index at[] = {runtime_index(call, weight.sizes[0]), p.back()};
    return call.load(weight, at, {{row}});
  });
  return std::nullopt;
}

Lowered lower_index_select(OpCall& call) {
  const TensorValue self = call.tensor("self");
  const TensorValue index = call.tensor("index");
  const size_t dim = normalize_dim(call.integer("dim"), self.rank());
  const Index size = size_of_dim(call, self, dim);
  set_pointwise(call, 0, [&](Position p) {
    const Index place = p.empty() ? call.indices().constant(0) : p[dim];
    return call.load(self, replaced(p, dim, runtime_index(call, size)),
                     {{load_list_index(call, index, place, size, Negative::kIsError)}});
  });
  return std::nullopt;
}

Lowered lower_gather(OpCall& call) {
  const TensorValue self = call.tensor("self");
  const TensorValue index = call.tensor("index");
  if (self.rank() != index.rank()) return Unsupported{"self and index differ in rank"};
  const size_t dim = normalize_dim(call.integer("dim"), self.rank());
  const Index size = size_of_dim(call, self, dim);
  set_pointwise(call, 0, [&](Position p) {
    return call.load(
        self, replaced(p, dim, runtime_index(call, size)),
        {{load_index(call, index, p, size, Negative::kIsError, IndexFault::kRuntimeError)}});
  });
  return std::nullopt;
}

Lowered lower_index(OpCall& call) {
  const TensorValue self = call.tensor("self");
  const std::optional<AdvancedIndex> index = AdvancedIndex::make(call, self.sizes);
  if (!index) return Unsupported{"an index is a mask"};
  set_pointwise(call, 0, [&](Position p) {
    std::vector<Expr> runtime;
    const std::vector<Index> element = index->element(call, p, &runtime);
    return call.load(self, element, runtime);
  });
  return std::nullopt;
}

Lowered lower_take(OpCall& call) {
  const TensorValue self = call.tensor("self");
  const TensorValue index = call.tensor("index");
  const Index count = product(call.indices(), self.sizes);
  set_pointwise(call, 0, [&](Position p) {
    const Expr place = load_index(call, index, p, count, Negative::kWraps);
    return call.load(self, delinearize(runtime_index(call, count), self.sizes), {{place}});
  });
  return std::nullopt;
}

// ---- writing ----

// The same for stores into `self`.
void set_scatter(OpCall& call, StoreMode mode, std::span<const Index> sizes, const StoreAt& store) {
  const TensorValue self = call.tensor("self");
  set_scatter(call, [&](Position p) { return call.load(self, p); }, mode, sizes, store);
}

Lowered refuse_bool(const OpCall& call, StoreMode mode) {
  if (call.result().dtype == DType::kBool && (mode == StoreMode::kAdd || mode == StoreMode::kMul))
    return Unsupported{"it adds or multiplies bools"};
  return std::nullopt;
}

// Every element of `index` names the place along `dim` where a value goes.
Lowered lower_scatter(OpCall& call, StoreMode mode, const OpCall::Body& value) {
  const TensorValue self = call.tensor("self");
  const TensorValue index = call.tensor("index");
  if (self.rank() != index.rank()) return Unsupported{"self and index differ in rank"};
  if (const Lowered refused = refuse_bool(call, mode)) return refused;
  const size_t dim = normalize_dim(call.integer("dim"), self.rank());
  const Index size = size_of_dim(call, self, dim);
  set_scatter(call, mode, index.sizes, [&](Position p) {
    return OpCall::Store{
        replaced(p, dim, runtime_index(call, size)),
        {load_index(call, index, p, size, Negative::kIsError, IndexFault::kRuntimeError)},
        value(p)};
  });
  return std::nullopt;
}

Lowered lower_scatter_tensor(OpCall& call, StoreMode mode) {
  const TensorValue source = call.tensor("src");
  if (source.rank() != call.tensor("index").rank())
    return Unsupported{"src and index differ in rank"};
  return lower_scatter(call, mode, [&](Position p) { return call.load(source, p); });
}

Lowered lower_scatter_number(OpCall& call, StoreMode mode) {
  const Argument value = call.scalar("value");
  if (value.is_value() || value.holds<std::complex<double>>())
    return Unsupported{"the value is not a real number"};
  return lower_scatter(call, mode,
                       [&](Position) { return call.scalar_expr(value, call.result().dtype); });
}

// "add" and "multiply" of scatter, "sum" and so on of scatter_reduce.
std::optional<StoreMode> store_mode(std::string_view reduce) {
  if (reduce == "add" || reduce == "sum") return StoreMode::kAdd;
  if (reduce == "multiply" || reduce == "prod") return StoreMode::kMul;
  if (reduce == "amax") return StoreMode::kMax;
  if (reduce == "amin") return StoreMode::kMin;
  return std::nullopt;
}

Lowered lower_scatter_src(OpCall& call) { return lower_scatter_tensor(call, StoreMode::kStore); }
Lowered lower_scatter_add(OpCall& call) { return lower_scatter_tensor(call, StoreMode::kAdd); }
Lowered lower_scatter_value(OpCall& call) { return lower_scatter_number(call, StoreMode::kStore); }

Lowered lower_scatter_value_reduce(OpCall& call) {
  const std::optional<StoreMode> mode = store_mode(call.string("reduce"));
  if (!mode) return Unsupported{"its reduction has no store mode"};
  return lower_scatter_number(call, *mode);
}

Lowered lower_scatter_reduce(OpCall& call) {
  const std::optional<StoreMode> mode = store_mode(call.string("reduce"));
  if (!mode) return Unsupported{"its reduction has no store mode"};
  return lower_scatter_tensor(call, *mode);
}

// What the first value that is combined leaves as it is.
Scalar neutral_element(StoreMode mode, DType dtype) {
  switch (mode) {
    case StoreMode::kMul:
      return identity(ReductionKind::kProd, dtype);
    case StoreMode::kMax:
      return identity(ReductionKind::kMax, dtype);
    case StoreMode::kMin:
      return identity(ReductionKind::kMin, dtype);
    case StoreMode::kAdd:
    case StoreMode::kStore:
      break;
  }
  return identity(ReductionKind::kSum, dtype);
}

// scatter_reduce.two: first the elements of self that do not count are overwritten, then the values
// are combined, and a mean is divided by how many there were.
Lowered lower_scatter_reduce_two(OpCall& call) {
  const TensorValue self = call.tensor("self");
  const TensorValue index = call.tensor("index");
  const TensorValue source = call.tensor("src");
  const bool is_mean = call.string("reduce") == "mean";
  const std::optional<StoreMode> mode =
      is_mean ? StoreMode::kAdd : store_mode(call.string("reduce"));
  if (!mode) return Unsupported{"its reduction has no store mode"};
  if (self.rank() != index.rank() || source.rank() != index.rank())
    return Unsupported{"self, index and src differ in rank"};
  if (const Lowered refused = refuse_bool(call, *mode)) return refused;
  const size_t dim = normalize_dim(call.integer("dim"), self.rank());
  const Index size = size_of_dim(call, self, dim);
  const bool include_self = call.boolean("include_self");
  TensorMeta meta = call.result();
  if (*mode == StoreMode::kAdd || *mode == StoreMode::kMul)
    meta.dtype = computation_dtype(meta.dtype);

  const auto scatter_into = [&](const TensorMeta& of, const OpCall::Body& initial, StoreMode how,
                                const OpCall::Body& value) {
    return call.scatter(of, initial, how, index.sizes, [&](Position p) {
      return OpCall::Store{
          replaced(p, dim, runtime_index(call, size)),
          {load_index(call, index, p, size, Negative::kIsError, IndexFault::kRuntimeError)},
          value(p)};
    });
  };
  const auto constant = [&](Scalar scalar) {
    return [&call, scalar](Position) { return call.exprs().constant(scalar); };
  };
  OpCall::Body initial = [&](Position p) { return cast(call.load(self, p), meta.dtype); };
  TensorValue start;
  if (!include_self) {
    start = scatter_into(meta, initial, StoreMode::kStore,
                         constant(neutral_element(*mode, meta.dtype)));
    initial = [&](Position p) { return call.load(start, p); };
  }
  const TensorValue combined = scatter_into(
      meta, initial, *mode, [&](Position p) { return cast(call.load(source, p), meta.dtype); });
  if (!is_mean) {
    set_rounded(call, 0, combined);
    return std::nullopt;
  }
  TensorMeta counts = meta;
  counts.dtype = DType::kInt64;
  const TensorValue count =
      scatter_into(counts, constant(Scalar::of_int(DType::kInt64, include_self ? 1 : 0)),
                   StoreMode::kAdd, constant(Scalar::of_int(DType::kInt64, 1)));
  set_pointwise(call, 0, [&](Position p) {
    const Expr sum = rounded(call.load(combined, p), call.result().dtype);
    const Expr number = cast(maximum(call.load(count, p), 1), sum.dtype());
    return is_floating(sum.dtype()) ? sum / number : apply<ExprOp::kFloorDiv>(sum, number);
  });
  return std::nullopt;
}

// ---- writing slices ----

// Slice number k of a space of `sizes` goes to the slice that `index` names.
Lowered lower_slices(OpCall& call, StoreMode mode, Negative negative, std::span<const Index> sizes,
                     const OpCall::Body& value, IndexFault fault = IndexFault::kIndexError) {
  const TensorValue self = call.tensor("self");
  const TensorValue index = call.tensor("index");
  if (sizes.size() != self.rank()) return Unsupported{"source and self differ in rank"};
  if (const Lowered refused = refuse_bool(call, mode)) return refused;
  const size_t dim = normalize_dim(call.integer("dim"), self.rank());
  const Index size = size_of_dim(call, self, dim);
  set_scatter(call, mode, sizes, [&](Position p) {
    const Index place = p.empty() ? call.indices().constant(0) : p[dim];
    return OpCall::Store{replaced(p, dim, runtime_index(call, size)),
                         {load_list_index(call, index, place, size, negative, fault)},
                         value(p)};
  });
  return std::nullopt;
}

// Eager calls scatter_add for what that can do quickly.
IndexFault index_add_fault(const OpCall& call) {
  const TensorValue& self = call.tensor("self");
  const size_t dim = normalize_dim(call.integer("dim"), self.rank());
  const bool at_an_end = dim == 0 || dim + 1 == self.rank();
  const bool scatters = self.rank() > 1 && at_an_end &&
                        call.tensor("index").dtype == DType::kInt64 &&
                        real_argument(call, "alpha") == 1.0;
  return scatters ? IndexFault::kRuntimeError : IndexFault::kIndexError;
}

Lowered lower_index_add(OpCall& call) {
  const TensorValue source = call.tensor("source");
  const Argument alpha = call.scalar("alpha");
  if (source.dtype == DType::kBool) return Unsupported{"it adds bools"};
  return lower_slices(
      call, StoreMode::kAdd, Negative::kIsError, source.sizes,
      [&](Position p) {
        const Expr value = load_wide(call, source, p);
        return value * call.scalar_expr(alpha, value.dtype());
      },
      index_add_fault(call));
}

Lowered lower_index_copy(OpCall& call) {
  const TensorValue source = call.tensor("source");
  return lower_slices(call, StoreMode::kStore, Negative::kIsError, source.sizes,
                      [&](Position p) { return call.load(source, p); });
}

// The sizes of self, with as many slices as there are indices.
std::vector<Index> filled_sizes(OpCall& call) {
  const TensorValue& self = call.tensor("self");
  const TensorValue& index = call.tensor("index");
  const Index count = product(call.indices(), index.sizes);
  return replaced(self.sizes, normalize_dim(call.integer("dim"), self.rank()), count);
}

Lowered lower_index_fill_scalar(OpCall& call) {
  const Argument value = call.scalar("value");
  return lower_slices(call, StoreMode::kStore, Negative::kWraps, filled_sizes(call),
                      [&](Position) { return call.scalar_expr(value, call.result().dtype); });
}

Lowered lower_index_fill_tensor(OpCall& call) {
  const TensorValue value = call.tensor("value");
  return lower_slices(call, StoreMode::kStore, Negative::kWraps, filled_sizes(call),
                      [&](Position) { return cast(call.load(value, {}), call.result().dtype); });
}

// ---- writing single elements ----

Lowered lower_index_put(OpCall& call) {
  const TensorValue self = call.tensor("self");
  const TensorValue values = call.tensor("values");
  const StoreMode mode = call.boolean("accumulate") ? StoreMode::kAdd : StoreMode::kStore;
  const std::optional<AdvancedIndex> index = AdvancedIndex::make(call, self.sizes);
  if (!index) return lower_masked_put(call);
  if (const Lowered refused = refuse_bool(call, mode)) return refused;
  const std::vector<Index> sizes = index->result_sizes();
  if (values.rank() > sizes.size()) return Unsupported{"the values have more dimensions"};
  set_scatter(call, mode, sizes, [&](Position p) {
    OpCall::Store store;
    store.target = index->element(call, p, &store.runtime_indices);
    store.value = call.load_broadcast(values, p);
    return store;
  });
  return std::nullopt;
}

Lowered lower_put(OpCall& call) {
  const TensorValue self = call.tensor("self");
  const TensorValue index = call.tensor("index");
  const TensorValue source = call.tensor("source");
  const StoreMode mode = call.boolean("accumulate") ? StoreMode::kAdd : StoreMode::kStore;
  if (const Lowered refused = refuse_bool(call, mode)) return refused;
  if (source.sizes != index.sizes) return Unsupported{"source and index differ in sizes"};
  const Index count = product(call.indices(), self.sizes);
  set_scatter(call, mode, index.sizes, [&](Position p) {
    return OpCall::Store{delinearize(runtime_index(call, count), self.sizes),
                         {load_index(call, index, p, count, Negative::kWraps)},
                         call.load(source, p)};
  });
  return std::nullopt;
}

// Adds up the gradients of the rows that each index has read. The padding row gets none, and
// indices that name no row are passed over.
Lowered lower_embedding_backward(OpCall& call) {
  const TensorValue grad = call.tensor("grad_output");
  const TensorValue index = call.tensor("indices");
  if (call.boolean("scale_grad_by_freq"))
    return Unsupported{"gradients are scaled by how often an index occurs"};
  if (const Lowered refused = refuse_bool(call, StoreMode::kAdd)) return refused;
  const Index rows = call.result().sizes[0];
  if (is_empty(call, call.result().sizes)) {
    set_constant(call, 0, 0);
    return std::nullopt;
  }
  const Expr padding = call.exprs().index_value(call.index("padding_idx"));
  const Expr end = call.exprs().index_value(rows);
  const auto zero = [&](Position) { return call.exprs().constant(call.result().dtype, 0); };
  set_scatter(call, zero, StoreMode::kAdd, grad.sizes, [&](Position p) {
    const Position at = p.first(p.size() - 1);
    const Expr given = cast(call.load(index, at), DType::kInt64);
    const Expr counts =
        both(not_equal(given, padding), both(greater_equal(given, 0), less(given, end)));
    const Expr row = call.exprs().check_index(select(counts, given, 0.0), rows);
    return OpCall::Store{
        {runtime_index(call, rows), p.back()}, {row}, select(counts, call.load(grad, p), 0.0)};
  });
  return std::nullopt;
}

constexpr LoweringRow kRows[] = {
    {"aten::embedding", lower_embedding},
    {"aten::embedding_dense_backward", lower_embedding_backward},
    {"aten::index_select", lower_index_select},
    {"aten::gather", lower_gather},
    {"aten::index.Tensor", lower_index},
    {"aten::_unsafe_index.Tensor", lower_index},
    {"aten::take", lower_take},
    {"aten::scatter.src", lower_scatter_src},
    {"aten::scatter.value", lower_scatter_value},
    {"aten::scatter.reduce", lower_scatter_reduce},
    {"aten::scatter.value_reduce", lower_scatter_value_reduce},
    {"aten::scatter_add", lower_scatter_add},
    {"aten::scatter_reduce.two", lower_scatter_reduce_two},
    {"aten::index_add", lower_index_add},
    {"aten::index_copy", lower_index_copy},
    {"aten::index_fill.int_Scalar", lower_index_fill_scalar},
    {"aten::index_fill.int_Tensor", lower_index_fill_tensor},
    {"aten::index_put", lower_index_put},
    {"aten::_unsafe_index_put", lower_index_put},
    {"aten::put", lower_put},
};

}  // namespace

std::span<const LoweringRow> indexing_lowerings() {
  static const std::vector<LoweringRow> rows = join_tables({kRows, masked_store_rows()});
  return rows;
}

}  // namespace litz
