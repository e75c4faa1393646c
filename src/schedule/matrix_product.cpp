#include "schedule/matrix_product.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "schedule/match_loops.h"

namespace litz {
namespace {

constexpr int64_t kVectorBytes = 16;
constexpr size_t kMostBatchLoops = 3;  // of a descriptor, which has five dimensions

// Half floats have them without rounding.
bool is_of_bytes(DType dtype) { return dtype == DType::kInt8 || dtype == DType::kUInt8; }

// The load of a float32, or of a half float or an integer of 8 bits as one.
std::optional<Expr> factor(Expr e) {
  if (e.dtype() != DType::kFloat32) return std::nullopt;
  const bool widens = e.op() == ExprOp::kCast;
  const Expr load = widens ? e.operands()[0] : e;
  if (load.op() != ExprOp::kLoad || !load.operands().empty()) return std::nullopt;
  if (widens && !is_half(load.dtype()) && !is_of_bytes(load.dtype())) return std::nullopt;
  return load;
}

// What loads of these are multiplied as.
std::optional<DType> common_dtype(DType a, DType b) {
  if (is_of_bytes(a)) std::swap(a, b);
  if (is_of_bytes(a) || (a != b && !(is_half(a) && is_of_bytes(b)))) return std::nullopt;
  return a;
}

bool varies_along(Expr load, Index variable) {
  const std::span<const Index> at = load.coordinates();
  return std::any_of(at.begin(), at.end(), [&](Index i) { return i.depends_on(variable); });
}

std::optional<MatrixProduct> product_of(Expr value, Index m, Index n, Index k) {
  if (value.op() != ExprOp::kMul || !m.is_symbol() || !n.is_symbol() || !k.is_symbol())
    return std::nullopt;
  const std::optional<Expr> a = factor(value.operands()[0]);
  const std::optional<Expr> b = factor(value.operands()[1]);
  if (!a || !b) return std::nullopt;
  const std::optional<DType> dtype = common_dtype(a->dtype(), b->dtype());
  if (!dtype) return std::nullopt;
  const auto is_left = [&](Expr load) {
    return varies_along(load, m) && varies_along(load, k) && !varies_along(load, n);
  };
  const auto is_right = [&](Expr load) {
    return varies_along(load, n) && varies_along(load, k) && !varies_along(load, m);
  };
  if (is_left(*a) && is_right(*b)) return MatrixProduct{*a, *b, *dtype};
  if (is_left(*b) && is_right(*a)) return MatrixProduct{*b, *a, *dtype};
  return std::nullopt;
}

}  // namespace

std::optional<MatrixProduct> matrix_product(const Operation& operation) {
  const auto* op = std::get_if<Reduction>(&operation.v);
  if (op == nullptr || !op->is_product || op->kind != ReductionKind::kSum ||
      op->loops.variables.size() < 2 || op->reduction.variables.empty())
    return std::nullopt;
  const size_t m = op->loops.variables.size() - 2;
  return product_of(op->value, op->loops.variables[m], op->loops.variables[m + 1],
                    op->reduction.variables.back());
}

std::optional<MatrixProduct> matrix_product(const Kernel& kernel) {
  if (!kernel.is_product || kernel.reductions.size() != 1 || kernel.outer.size() < 2 ||
      kernel.inner.empty())
    return std::nullopt;
  const KernelReduction& r = kernel.reductions[0];
  const bool only_behind = std::all_of(kernel.stores.begin(), kernel.stores.end(),
                                       [](const KernelStore& s) { return !s.inner; });
  if (r.kind != ReductionKind::kSum || r.running || r.over_outer || !only_behind)
    return std::nullopt;
  const size_t m = kernel.outer.size() - 2;
  return product_of(r.value, kernel.outer[m].variable, kernel.outer[m + 1].variable,
                    kernel.inner.back().variable);
}

bool lies_in_panels(Index at, Index n, Index k, int64_t columns, int64_t elements) {
  if (!n.is_symbol() || !k.is_symbol() || !n.extent().is_constant() || !k.extent().is_constant())
    return false;
  // One panel of single elements is a matrix like any other, and may have no zeros behind it.
  if (elements == 1 && n.extent().constant() <= columns) return false;
  const int64_t words = (k.extent().constant() + elements - 1) / elements;
  const Index column = mod(n, columns) * elements + mod(k, elements);
  const Index word = floor_div(n, columns) * words + floor_div(k, elements);
  return at == word * (columns * elements) + column;
}

std::optional<OperandLayout> operand_layout(Index at, std::span<const Index> batches, Index outer,
                                            Index k) {
  OperandLayout layout;
  // Takes the loop's stride off; nothing where it is no constant.
  const auto take = [&](Index variable) -> std::optional<int64_t> {
    const auto linear = linear_in(at, variable);
    if (!linear || !linear->stride.is_constant()) return std::nullopt;
    at = linear->rest;
    return linear->stride.constant();
  };
  for (size_t loop = 0; loop < batches.size(); ++loop) {
    const std::optional<int64_t> stride = take(batches[loop]);
    if (!stride) return std::nullopt;
    if (*stride != 0) layout.batches.push_back({loop, *stride});
  }
  const std::optional<int64_t> outer_stride = take(outer);
  const std::optional<int64_t> k_stride = take(k);
  if (!outer_stride || !k_stride || !at.is_constant()) return std::nullopt;
  layout.offset = at.constant();
  layout.outer_stride = *outer_stride;
  layout.k_stride = *k_stride;
  return layout;
}

bool has_tiles(const OperandLayout& layout, int64_t size) {
  const int64_t vector = kVectorBytes / size;
  const auto is_whole = [&](int64_t elements) { return elements > 0 && elements % vector == 0; };
  return layout.batches.size() <= kMostBatchLoops && layout.offset % vector == 0 &&
         std::all_of(layout.batches.begin(), layout.batches.end(),
                     [&](const OperandLayout::Batch& batch) { return is_whole(batch.stride); }) &&
         (layout.k_stride == 1 ? is_whole(layout.outer_stride)
                               : layout.outer_stride == 1 && is_whole(layout.k_stride));
}

bool has_tiles(const Program& program, const Operation& operation) {
  const std::optional<MatrixProduct> product = matrix_product(operation);
  if (!product) return false;
  IndexContext& context = program.indices();
  const auto& op = std::get<Reduction>(operation.v);
  if (op.reduction.variables.size() != 1) return false;
  std::vector<Index> variables;
  for (Index v : op.loops.variables) {
    if (v.is_symbol()) variables.push_back(v);
  }
  std::vector<size_t> boundaries = {variables.size()};
  variables.push_back(op.reduction.variables[0]);
  std::vector<Index> sides;
  for (Expr load : {product->left, product->right})
    sides.push_back(dot(context, load.coordinates(), program.buffer(load.buffer()).strides));
  for (const bool orders : {true, false}) {
    std::vector<size_t> parts;
    LoopRewrite rewrite = simplify_loops(context, variables, boundaries, sides, &parts);
    if (orders) order_product_loops(context, rewrite, parts[0], sides);
    Substitution substitution = as_substitution(rewrite.replacements);
    for (Index& side : sides) side = substitution.apply(side);
    variables = rewrite.variables;
    boundaries = parts;
  }
  if (boundaries[0] < 2 || variables.size() != boundaries[0] + 1) return false;
  const size_t batches = boundaries[0] - 2;
  for (const size_t side : {0, 1}) {
    // Neither operand varies along the other one's loop.
    if (sides[side].depends_on(variables[batches + 1 - side])) return false;
    const std::optional<OperandLayout> layout =
        operand_layout(sides[side], std::span(variables).first(batches), variables[batches + side],
                       variables.back());
    const DType dtype = (side == 0 ? product->left : product->right).dtype();
    if (!layout || !has_tiles(*layout, size_of(dtype))) return false;
  }
  return true;
}

void order_product_loops(IndexContext& context, LoopRewrite& rewrite, size_t boundary,
                         std::span<const Index> sides) {
  Substitution substitution = as_substitution(rewrite.replacements);
  const Index left = substitution.apply(sides[0]);
  const Index right = substitution.apply(sides[1]);
  std::vector<std::pair<int, int64_t>> keys;
  std::vector<std::optional<int64_t>> strides;
  std::vector<size_t> batches;
  for (size_t i = 0; i < boundary; ++i) {
    const Index v = rewrite.variables[i];
    const bool in_left = left.depends_on(v);
    const int group = in_left == right.depends_on(v) ? 0 : in_left ? 1 : 2;
    const auto linear = linear_in(in_left ? left : right, v);
    const bool is_known = linear && linear->stride.is_constant();
    strides.push_back(is_known ? std::optional(linear->stride.constant()) : std::nullopt);
    keys.emplace_back(group, -strides.back().value_or(0));
  }
  std::vector<size_t> order(rewrite.variables.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto sort = [&] {
    std::stable_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(boundary),
                     [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  };
  sort();
  // What does not become one loop with the last one of its side is of batches.
  bool is_batch = false;
  for (size_t i = boundary; i-- > 1;) {
    const size_t outer = order[i - 1];
    const size_t inner = order[i];
    const Index extent = rewrite.variables[inner].extent();
    is_batch = keys[outer].first == keys[inner].first &&
               (is_batch || !strides[outer] || !strides[inner] || !extent.is_constant() ||
                *strides[outer] != *strides[inner] * extent.constant());
    if (is_batch && keys[outer].first != 0) batches.push_back(outer);
  }
  for (size_t loop : batches) keys[loop].first = 0;
  sort();
  reorder_loops(context, rewrite, order);
}

}  // namespace litz
