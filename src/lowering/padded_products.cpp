// Products of half floats on a GPU whose sizes are no multiples of 8.
//
// cuBLAS uses its fast kernels only where rows of all three matrices begin at multiples of 16 bytes
// and are whole vectors: on an H200 a product with 50257 columns takes 3357 us, with 50264 it takes
// 449, and what is left of the larger one is the same. Where the arithmetic that this saves is more
// than the copies, operands are copied into larger ones first. Along the dimension that is summed
// over, the new elements are zeros; the others give results that nobody reads.
#include <algorithm>
#include <array>

#include "lowering/join_rows.h"
#include "lowering/lowering_context.h"

namespace litz {
namespace {

constexpr int64_t kUnit = 8;
// What an H200 does, in units that other devices have in about the same proportion.
constexpr double kSlowFlops = 1e14;
constexpr double kFastFlops = 6e14;
constexpr double kBytesPerSecond = 3e12;
constexpr double kSecondsOfKernel = 3e-6;

int64_t whole_units(int64_t size) { return (size + kUnit - 1) / kUnit * kUnit; }
bool is_whole(int64_t size) { return size % kUnit == 0; }

// A matrix in memory: neighbours along dimension `fast` are neighbours there.
struct Matrix {
  TensorValue value;
  std::array<int64_t, 2> sizes{};
  size_t fast = 1;
  int64_t stride = 0;  // of the other dimension

  bool is_aligned() const { return is_whole(sizes[fast]) && is_whole(stride); }
};

std::optional<Matrix> matrix_of(const TensorValue& value) {
  if (!value.strided || value.rank() != 2) return std::nullopt;
  Matrix m{value};
  for (size_t d = 0; d < 2; ++d) {
    if (!value.sizes[d].is_constant() || !value.strided->strides[d].is_constant())
      return std::nullopt;
    m.sizes[d] = value.sizes[d].constant();
  }
  const auto stride = [&](size_t d) { return value.strided->strides[d].constant(); };
  if (stride(1) != 1 && stride(0) != 1) return std::nullopt;
  m.fast = stride(1) == 1 ? 1 : 0;
  m.stride = stride(1 - m.fast);
  return m;
}

}  // namespace

// Elements past the matrix are zeros. Equal copies are made once.
TensorValue LoweringContext::padded(OpCall& call, const TensorValue& value, size_t fast,
                                    std::array<int64_t, 2> sizes) {
  const size_t slow = 1 - fast;
  std::string key = std::to_string(value.buffer.value) + " " + std::string(to_string(value.dtype)) +
                    " " + to_string(value.strided->offset);
  for (size_t d : {slow, fast})
    key += " " + to_string(value.sizes[d]) + " " + to_string(value.strided->strides[d]) + " " +
           std::to_string(sizes[d]);
  const auto [found, added] = padded_.try_emplace(key);
  if (added) {
    const std::array<Index, 2> laid_out = {call.indices().constant(sizes[slow]),
                                           call.indices().constant(sizes[fast])};
    found->second = call.pointwise(value.dtype, laid_out, [&](std::span<const Index> position) {
      std::array<Index, 2> at;
      at[slow] = position[0];
      at[fast] = position[1];
      Expr element = call.load(value, at);
      for (size_t d = 0; d < 2; ++d) {
        if (value.sizes[d].is_constant(sizes[d])) continue;
        element = call.exprs().masked(index_below(call, at[d], value.sizes[d]), element,
                                      call.exprs().constant(value.dtype, 0));
      }
      return element;
    });
  }
  if (fast == 1) return found->second;
  const std::array<Index, 2> turned = {found->second.sizes[1], found->second.sizes[0]};
  return call.view(found->second, turned,
                   [](std::span<const Index> p) { return std::vector<Index>{p[1], p[0]}; });
}

bool LoweringContext::pad_product(NodeId id) {
  OpCall call(*this, id);
  const bool adds = call.node().schema->name == "aten::addmm";
  const auto factors = factors_of(call);
  const std::optional<Matrix> left = matrix_of(factors.first);
  const std::optional<Matrix> right = matrix_of(factors.second);
  if (!left || !right) return false;
  if (adds && !call.tensor("self").sizes[0].is_constant(right->sizes[1])) return false;
  const int64_t rows = left->sizes[0];
  const int64_t inner = left->sizes[1];
  const int64_t columns = right->sizes[1];
  // The dimensions that lie along vectors of some matrix, the result among them.
  const int64_t new_rows = left->fast == 0 ? whole_units(rows) : rows;
  const int64_t new_inner = left->fast == 1 || right->fast == 0 ? whole_units(inner) : inner;
  const int64_t new_columns = whole_units(columns);
  const std::array<int64_t, 2> left_sizes = {new_rows, new_inner};
  const std::array<int64_t, 2> right_sizes = {new_inner, new_columns};
  const bool copies_left = !left->is_aligned() || left->sizes != left_sizes;
  const bool copies_right = !right->is_aligned() || right->sizes != right_sizes;
  if (!copies_left && !copies_right) return false;

  const bool copies_result =
      new_columns != columns && (is_output_[Value{id, 0}] || !feeds_kernels({id, 0}));
  double copied = 0;
  int kernels = 0;
  const auto count = [&](bool copies, double elements) {
    if (!copies) return;
    copied += 2 * 2 * elements;
    ++kernels;
  };
  const auto area = [](int64_t a, int64_t b) { return static_cast<double>(a) * b; };
  count(copies_left, area(rows, inner));
  count(copies_right, area(inner, columns));
  count(copies_result, area(rows, columns));
  const double saved = 2 * area(rows, columns) * inner * (1 / kSlowFlops - 1 / kFastFlops);
  if (saved < copied / kBytesPerSecond + kernels * kSecondsOfKernel) return false;

  const TensorValue a =
      copies_left ? padded(call, left->value, left->fast, left_sizes) : left->value;
  const TensorValue b =
      copies_right ? padded(call, right->value, right->fast, right_sizes) : right->value;
  std::vector<ExternArgument> arguments = {{*a.strided}, {*b.strided}};
  if (adds) {
    const TensorValue bias = call.tensor("self");
    TensorValue longer = bias;
    if (new_columns != columns) {
      const std::array<Index, 1> sizes = {call.indices().constant(new_columns)};
      longer = call.pointwise(bias.dtype, sizes, [&](std::span<const Index> p) {
        return call.exprs().masked(index_below(call, p[0], bias.sizes[0]), call.load(bias, p),
                                   call.exprs().constant(bias.dtype, 0));
      });
    }
    if (!longer.strided) return false;
    arguments.insert(arguments.begin(), {*longer.strided});
    for (const char* name : {"beta", "alpha"})
      arguments.push_back(extern_argument(call.argument(name)));
  }
  TensorMeta meta = call.result();
  meta.sizes = {call.indices().constant(new_rows), call.indices().constant(new_columns)};
  meta.strides = {call.indices().constant(new_columns), call.indices().constant(1)};
  const TensorValue product = whole(add_library_call(
      id, call.node().schema->name, to_string(*call.node().schema), std::move(arguments), meta));
  call.set(0, call.view(product, call.result().sizes, [](std::span<const Index> p) {
    return std::vector<Index>(p.begin(), p.end());
  }));
  return true;
}

}  // namespace litz
