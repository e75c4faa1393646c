// Matrix products on a CPU that are kernels instead of library calls (codegen/cpp/cpp_product.h).
#include <algorithm>

#include "lowering/lowering_context.h"
#include "lowering/reduction_helpers.h"

namespace litz {
namespace {

constexpr int64_t kMostFactors = 8192;  // whole columns of them are packed on the stack

// The matrices of a kernel lie in memory row by row or column by column.
bool has_neighbours(const Program& program, const TensorValue& value) {
  if (!value.strided || value.dtype != program.buffer(value.buffer).dtype) return false;
  const std::vector<Index>& strides = value.strided->strides;
  const size_t rank = value.rank();
  return std::all_of(strides.begin(), strides.end(), [](Index s) { return s.is_constant(); }) &&
         (strides[rank - 1].is_constant(1) || strides[rank - 2].is_constant(1));
}

// Its elements lie at sums of constants times coordinates: of some views that is not known.
bool is_linear(const Program& program, const TensorValue& value) {
  IndexContext& context = program.indices();
  std::vector<Index> position;
  for (size_t i = 0; i < value.rank(); ++i)
    position.push_back(context.variable(static_cast<uint32_t>(i), value.sizes[i]));
  Index offset =
      dot(context, coordinates_at(value, position), program.buffer(value.buffer).strides);
  for (Index p : position) {
    if (!p.is_symbol()) continue;
    const std::optional<LinearIn> linear = linear_in(offset, p);
    if (!linear || !linear->stride.is_constant()) return false;
    offset = linear->rest;
  }
  return true;
}

struct Extents {
  int64_t batches = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t factors = 0;
};

std::optional<Extents> extents_of(const TensorValue& left, const TensorValue& right) {
  for (const TensorValue* value : {&left, &right}) {
    for (Index size : value->sizes) {
      if (!size.is_constant()) return std::nullopt;
    }
  }
  Extents extents;
  const size_t rank = left.rank();
  for (size_t i = 0; i + 2 < rank; ++i) extents.batches *= left.sizes[i].constant();
  extents.rows = left.sizes[rank - 2].constant();
  extents.factors = left.sizes[rank - 1].constant();
  extents.columns = right.sizes[rank - 1].constant();
  return extents;
}

// What a kernel costs to compile, a call of the library does not.
constexpr int64_t kFewestMultiplyAdds = 1 << 15;

bool pays(const Extents& extents) {
  return extents.columns >= 16 && extents.factors >= 16 &&
         extents.batches * extents.rows * extents.columns * extents.factors >= kFewestMultiplyAdds;
}

}  // namespace

bool LoweringContext::compute_product_on_cpu(NodeId id) {
  if (options_.matrix_products == ProductKernels::kOff) return false;
  OpCall call(*this, id);
  const DType dtype = call.result().dtype;
  const bool is_possible = dtype == DType::kFloat32 ||
                           (is_half(dtype) && (options_.half_products ||
                                               options_.matrix_products == ProductKernels::kOn));
  if (!is_possible || call.node().schema->name == "aten::mv") return false;
  const auto [left, right] = factors_of(call);
  if (left.dtype != dtype || right.dtype != dtype) return false;
  const std::optional<Extents> extents = extents_of(left, right);
  if (!extents || extents->batches < 1 || extents->rows < 2 || extents->columns < 2 ||
      extents->factors < 2 || extents->factors > kMostFactors || !has_neighbours(program_, left) ||
      !has_neighbours(program_, right) || !is_linear(program_, left) || !is_linear(program_, right))
    return false;
  if (options_.matrix_products == ProductKernels::kAuto && !pays(*extents)) return false;
  set_product(call, left, right, true);
  return true;
}

}  // namespace litz
