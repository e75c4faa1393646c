#include "lowering/reduction_helpers.h"

#include <algorithm>
#include <numeric>

namespace litz {

Expr load_as(OpCall& call, const TensorValue& value, std::span<const Index> position, DType dtype) {
  return cast(cast(call.load(value, position), dtype), computation_dtype(dtype));
}

Expr load_wide(OpCall& call, const TensorValue& value, std::span<const Index> position) {
  return load_as(call, value, position, value.dtype);
}

Expr load_wide_broadcast(OpCall& call, const TensorValue& value, std::span<const Index> position) {
  return cast(call.load_broadcast(value, position), computation_dtype(value.dtype));
}

std::vector<size_t> all_dims(size_t rank) {
  std::vector<size_t> dims(rank);
  std::iota(dims.begin(), dims.end(), size_t{0});
  return dims;
}

std::vector<size_t> reduced_dims(const OpCall& call, std::string_view name, size_t rank) {
  if (rank == 0 || call.is_none(name)) return all_dims(rank);
  const std::vector<int64_t> given = call.integer_list(name);
  if (given.empty()) return all_dims(rank);
  std::vector<size_t> dims;
  for (int64_t dim : given) dims.push_back(normalize_dim(dim, rank));
  std::sort(dims.begin(), dims.end());
  return dims;
}

std::vector<size_t> call_dims(const OpCall& call, size_t rank) {
  return call.node().schema->find("dim") >= 0 ? reduced_dims(call, "dim", rank) : all_dims(rank);
}

bool keepdim(const OpCall& call) {
  return call.node().schema->find("keepdim") >= 0 && call.boolean("keepdim");
}

TensorValue without_dims(OpCall& call, const TensorValue& value, std::span<const size_t> dims) {
  std::vector<bool> dropped(value.rank(), false);
  for (size_t dim : dims) dropped[dim] = true;
  std::vector<Index> sizes;
  for (size_t i = 0; i < value.rank(); ++i) {
    if (!dropped[i]) sizes.push_back(value.sizes[i]);
  }
  return call.view(value, sizes, [&](std::span<const Index> p) {
    std::vector<Index> position;
    size_t next = 0;
    for (bool drop : dropped) position.push_back(drop ? call.indices().constant(0) : p[next++]);
    return position;
  });
}

Index count_elements(const OpCall& call, std::span<const Index> sizes,
                     std::span<const size_t> dims) {
  Index count = call.indices().constant(1);
  for (size_t dim : dims) count = count * sizes[dim];
  return count;
}

bool is_empty(const OpCall& call, std::span<const Index> sizes, std::span<const size_t> dims) {
  return count_elements(call, sizes, dims).is_constant(0);
}

bool is_empty(const OpCall& call, std::span<const Index> sizes) {
  return product(call.indices(), sizes).is_constant(0);
}

Expr index_as(OpCall& call, Index index, DType dtype) {
  return cast(call.exprs().index_value(index), dtype);
}

void set_rounded(OpCall& call, size_t output, const TensorValue& value) {
  if (value.dtype == call.result(output).dtype) {
    call.set(output, value);
    return;
  }
  set_pointwise(call, output,
                [&](std::span<const Index> position) { return call.load(value, position); });
}

void set_pointwise(OpCall& call, size_t output, const OpCall::Body& body) {
  const TensorMeta& meta = call.result(output);
  call.set(output, call.pointwise(meta, [&](std::span<const Index> position) {
    return cast(body(position), meta.dtype);
  }));
}

void set_constant(OpCall& call, size_t output, double number) {
  const TensorMeta& meta = call.result(output);
  call.set(output, call.pointwise(meta, [&](std::span<const Index>) {
    return call.exprs().constant(meta.dtype, number);
  }));
}

}  // namespace litz
