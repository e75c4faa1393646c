#include "codegen/triton/triton_body.h"

#include <algorithm>
#include <tuple>

#include "codegen/triton/triton_ops.h"
#include "support/error.h"

namespace litz {
namespace {

std::string text(int64_t value) { return std::to_string(value); }

std::string integer(int64_t value) { return value < 0 ? "(" + text(value) + ")" : text(value); }

constexpr const char* kAssertion = "\"index or value out of range\"";

}  // namespace

// ---- the tile ----

void TritonBody::set_axis(TileAxes axis, int block, std::string mask) {
  axes_[axis == kRows ? 0 : 1] = {block, std::move(mask)};
}

TileAxes TritonBody::all_axes() const {
  return (axes_[0].block > 0 ? kRows : kNoAxes) | (axes_[1].block > 0 ? kColumns : kNoAxes);
}

std::string TritonBody::shape(TileAxes axes) const {
  std::string dimensions;
  for (TileAxes axis : {kRows, kColumns}) {
    if ((all_axes() & axis) == 0) continue;
    const int block = axes_[axis == kRows ? 0 : 1].block;
    dimensions += (dimensions.empty() ? "" : ", ") + text((axes & axis) != 0 ? block : 1);
  }
  return axes == kNoAxes ? "[]" : "[" + dimensions + "]";
}

int TritonBody::dimension(TileAxes axis) const {
  return axis == kColumns && (all_axes() & kRows) != 0 ? 1 : 0;
}

std::string TritonBody::place(TileAxes axis) const {
  if (all_axes() != (kRows | kColumns)) return "";
  return axis == kRows ? "[:, None]" : "[None, :]";
}

TileValue TritonBody::mask_in(size_t scope, TileAxes axes) const {
  TileValue mask;
  const auto add = [&](const std::string& term, TileAxes along) {
    mask.text += (mask.text.empty() ? "" : " & ") + term;
    mask.axes |= along;
  };
  for (size_t i = 0; i <= scope; ++i) {
    if (scopes_[i].conditional) {
      axes |= scopes_[i].condition.axes;
      add(scopes_[i].condition.text, scopes_[i].condition.axes);
    }
  }
  for (TileAxes axis : {kRows, kColumns}) {
    const TileAxis& a = axes_[axis == kRows ? 0 : 1];
    if ((axes & axis) != 0 && !a.mask.empty()) add(a.mask, axis);
  }
  return mask;
}

TileValue TritonBody::mask(TileAxes axes) const { return mask_in(scopes_.size() - 1, axes); }

// ---- scopes ----

void TritonBody::bind(size_t loop, TileValue value) {
  scopes_.back().bound |= LoopMask{1} << loop;
  names_[analysis_.variable(loop)] = std::move(value);
}

void TritonBody::open_loop() {
  LITZ_CHECK(scopes_.size() < 64, "blocks nested too deeply");
  Scope scope;
  scope.text = IndentedBuffer(scopes_.back().text.level() + 2);
  scope.bound = scopes_.back().bound;
  scopes_.push_back(std::move(scope));
}

void TritonBody::close_loop(const std::string& header) {
  Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  scopes_.back().text.line(header + ":");
  if (scope.text.empty()) scope.text.line("pass");
  scopes_.back().text.append(scope.text);
}

std::string TritonBody::take_text() {
  LITZ_CHECK(scopes_.size() == 1, "statements are taken while a loop is open");
  std::string statements = scopes_[0].text.text();
  scopes_[0] = Scope();
  names_.clear();
  axes_ = {};
  return statements;
}

size_t TritonBody::scope_for(LoopMask depends) const {
  size_t first = 0;
  for (size_t i = 0; i < scopes_.size(); ++i) {
    if (scopes_[i].conditional) first = i;
  }
  for (size_t i = first; i < scopes_.size(); ++i) {
    if ((depends & ~scopes_[i].bound) == 0) return i;
  }
  LITZ_CHECK(false, "a value is needed outside the loops that it varies along");
}

std::string TritonBody::fresh(std::string_view stem) { return std::string(stem) + text(next_++); }

// ---- index expressions ----

TileValue TritonBody::index_sum(Index e) {
  TileValue sum;
  // In an order of their own, so that equal kernels have equal texts; what is added first.
  std::vector<std::tuple<bool, std::string, int64_t>> parts;
  for (const auto& [coefficient, term] : e.terms()) {
    const TileValue part = index(term);
    sum.axes |= part.axes;
    parts.emplace_back(coefficient < 0, part.text, coefficient);
  }
  std::sort(parts.begin(), parts.end());
  for (const auto& [is_negative, part, coefficient] : parts) {
    if (coefficient == -1 && !sum.text.empty()) {
      sum.text += " - " + part;
      continue;
    }
    const std::string product = coefficient == 1 ? part : part + " * " + integer(coefficient);
    sum.text += sum.text.empty() ? product : " + " + product;
  }
  if (e.sum_constant() > 0) sum.text += " + " + text(e.sum_constant());
  if (e.sum_constant() < 0) sum.text += " - " + text(-e.sum_constant());
  sum.text = "(" + sum.text + ")";
  return sum;
}

TileValue TritonBody::index(Index e) {
  switch (e.kind()) {
    case IndexKind::kConstant:
      return {integer(e.constant()), kNoAxes, ""};
    case IndexKind::kSymbol: {
      if (e.symbol_kind() == SymbolKind::kSize) return {arguments_.symbol(e), kNoAxes, ""};
      const auto found = names_.find(e);
      LITZ_CHECK(found != names_.end(),
                 "loop variable " + std::string(e.symbol_name()) + " is not bound here");
      return found->second;
    }
    case IndexKind::kSum:
      return index_sum(e);
    case IndexKind::kProduct: {
      TileValue product;
      for (Index factor : e.operands()) {
        const TileValue part = index(factor);
        product.text += (product.text.empty() ? "" : " * ") + part.text;
        product.axes |= part.axes;
      }
      product.text = "(" + product.text + ")";
      return product;
    }
    case IndexKind::kFloorDiv:
    case IndexKind::kMod: {
      const bool divides = e.kind() == IndexKind::kFloorDiv;
      const TileValue a = index(e.operands()[0]);
      const TileValue b = index(e.operands()[1]);
      // Triton rounds to zero, which is the floor of what is not negative.
      if (e.operands()[0].range().lo >= 0)
        return {"(" + a.text + (divides ? " // " : " % ") + b.text + ")", a.axes | b.axes, ""};
      return {prelude_.use(divides ? "floor_div_index" : "mod_index") + "(" + a.text + ", " +
                  b.text + ")",
              a.axes | b.axes, ""};
    }
    case IndexKind::kMin:
    case IndexKind::kMax: {
      TileValue extreme = index(e.operands()[0]);
      for (size_t i = 1; i < e.operands().size(); ++i) {
        const TileValue part = index(e.operands()[i]);
        extreme.text = std::string(e.kind() == IndexKind::kMin ? "tl.minimum(" : "tl.maximum(") +
                       extreme.text + ", " + part.text + ")";
        extreme.axes |= part.axes;
      }
      return extreme;
    }
  }
  return {};
}

// ---- values ----

const TileValue* TritonBody::find(Expr e) const {
  for (size_t i = scopes_.size(); i-- > 0;) {
    const auto found = scopes_[i].values.find(e);
    if (found != scopes_[i].values.end()) return &found->second;
  }
  return nullptr;
}

TileValue TritonBody::emit(Expr root) {
  // Operands first, without recursion; what lies under a condition is printed by the condition.
  std::vector<std::pair<Expr, bool>> pending = {{root, false}};
  while (!pending.empty()) {
    const auto [e, ready] = pending.back();
    pending.pop_back();
    if (find(e) != nullptr) continue;
    if (!ready && e.op() != ExprOp::kMasked) {
      pending.emplace_back(e, true);
      for (size_t i = e.operands().size(); i-- > 0;) pending.emplace_back(e.operand(i), false);
      continue;
    }
    const size_t scope = scope_for(analysis_.depends(e));
    TileValue value = compute(e, scope);
    scopes_[scope].values[e] = std::move(value);
  }
  return *find(root);
}

TileValue TritonBody::define_in(size_t scope, const std::string& expression, TileAxes axes) {
  const std::string name = fresh("t");
  scopes_[scope].text.line(name + " = " + expression);
  return {name, axes, ""};
}

TileValue TritonBody::define(const std::string& expression, TileAxes axes, std::string_view stem) {
  const std::string name = fresh(stem);
  out().line(name + " = " + expression);
  return {name, axes, ""};
}

std::string TritonBody::block(const TileValue& value, TileAxes axes, DType dtype) const {
  if ((axes & ~value.axes) == 0) return value.text;
  if (value.axes == kNoAxes)
    return "tl.full(" + shape(axes) + ", " + value.text + ", " + triton_type(dtype) + ")";
  return "tl.broadcast_to(" + value.text + ", " + shape(axes | value.axes) + ")";
}

void TritonBody::define_reduced(uint32_t number, TileValue value) {
  const KernelReduction& reduction = analysis_.kernel().reductions[number];
  const Expr e = reduction.value.context().reduced(
      number, result_dtype(reduction.kind, reduction.value.dtype()));
  scopes_.back().values[e] = std::move(value);
}

TileValue TritonBody::compute(Expr e, size_t scope) {
  switch (e.op()) {
    case ExprOp::kConstant: {
      const Scalar& s = e.scalar();
      const DType dtype = register_dtype(e.dtype());
      const bool is_integer = !is_floating(dtype);
      return {triton_constant(is_integer, s.integer, s.real, dtype), kNoAxes,
              triton_literal(is_integer, s.integer, s.real, dtype)};
    }
    case ExprOp::kIndexValue: {
      const TileValue value = index(e.index());
      if (e.index().is_constant())
        return {triton_constant(true, e.index().constant(), 0, DType::kInt64), kNoAxes,
                triton_literal(true, e.index().constant(), 0, DType::kInt64)};
      return define_in(scope, value.text + ".to(tl.int64)", value.axes);
    }
    case ExprOp::kLoad:
      return load(e, scope);
    case ExprOp::kReduced:
      LITZ_CHECK(false, "a reduction is used before it is finished");
    case ExprOp::kMasked:
      return masked(e, scope);
    case ExprOp::kCheckIndex: {
      const TileValue value = *find(e.operand(0));
      const TileValue extent = index(e.index());
      const TileAxes axes = value.axes | extent.axes;
      const TileValue holds = define_in(
          scope, "(" + value.text + " >= 0) & (" + value.text + " < " + extent.text + ")", axes);
      assert_holds(scope, holds);
      return define_in(scope, "tl.where(" + holds.text + ", " + value.text + ", 0)", axes);
    }
    case ExprOp::kCheck:
      assert_holds(scope, *find(e.operand(1)));
      return *find(e.operand(0));
    // Division of integers by zero has no meaning on a device, and no check.
    case ExprOp::kCheckDivisor:
      return *find(e.operand(0));
    default: {
      std::vector<TritonOperand> operands;
      TileAxes axes = kNoAxes;
      for (Expr operand : e.operands()) {
        const TileValue& value = *find(operand);
        operands.push_back({value.text, operand.dtype(), value.literal});
        axes |= value.axes;
      }
      const bool near_erf =
          near_functions_ && e.op() == ExprOp::kErf && e.dtype() == DType::kFloat32;
      const std::string expression = near_erf
                                         ? prelude_.use("erf_near") + "(" + operands[0].text + ")"
                                         : triton_expression(prelude_, e.op(), e.dtype(), operands);
      // Widening a half is nothing.
      if (expression == operands[0].text) return *find(e.operand(0));
      return define_in(scope, expression, axes);
    }
  }
}

// A failed check ends the kernel, as a failed assertion of eager PyTorch does.
void TritonBody::assert_holds(size_t scope, const TileValue& holds) {
  checks_ = true;
  std::string condition = holds.text;
  TileValue mask = mask_in(scope, holds.axes);
  // The loops that the check stands in front of, instead of inside, have iterations.
  const LoopMask inside =
      (scopes_.back().bound | set_aside_) & ~scopes_[scope].bound & analysis_.inner_mask();
  for (size_t loop = 0; loop < analysis_.num_loops(); ++loop) {
    if ((inside >> loop & 1) == 0 || analysis_.extent(loop).range().lo >= 1) continue;
    mask.text += (mask.text.empty() ? "(" : " & (") + index(analysis_.extent(loop)).text + " > 0)";
  }
  if (!mask.text.empty()) condition = "(" + condition + ") | ((" + mask.text + ") == 0)";
  scopes_[scope].text.line("tl.device_assert(" + condition + ", " + kAssertion + ")");
}

TileValue TritonBody::masked(Expr e, size_t scope) {
  // Statements follow in the same scope, so scopes further in are set aside while it is printed.
  const LoopMask set_aside = set_aside_;
  set_aside_ |= scopes_.back().bound;
  const auto inner_begin = scopes_.begin() + static_cast<std::ptrdiff_t>(scope) + 1;
  std::vector<Scope> inner(std::make_move_iterator(inner_begin),
                           std::make_move_iterator(scopes_.end()));
  scopes_.resize(scope + 1);
  const TileValue condition = emit(e.operand(0));
  const TileValue other = emit(e.operand(2));
  LITZ_CHECK(scopes_.size() < 64, "conditions nested too deeply");
  Scope under;
  under.text = IndentedBuffer(scopes_.back().text.level());
  under.bound = scopes_.back().bound;
  under.conditional = true;
  under.condition = condition;
  scopes_.push_back(std::move(under));
  const TileValue taken = emit(e.operand(1));
  const IndentedBuffer statements = std::move(scopes_.back().text);
  scopes_.pop_back();
  scopes_.back().text.append(statements);
  for (Scope& s : inner) scopes_.push_back(std::move(s));
  set_aside_ = set_aside;
  return define_in(scope,
                   "tl.where(" + condition.text + ", " + taken.text + ", " + other.text + ")",
                   condition.axes | taken.axes | other.axes);
}

// ---- memory ----

TileValue TritonBody::offset(Index offset, std::span<const Expr> runtime) {
  std::vector<Index> bound;
  if (!runtime.empty()) {
    for (Index symbol : free_symbols(offset)) {
      if (symbol.symbol_kind() != SymbolKind::kIndirect) continue;
      names_[symbol] = *find(runtime[symbol.symbol_number()]);
      bound.push_back(symbol);
    }
  }
  TileValue value = index(offset);
  for (Index symbol : bound) names_.erase(symbol);
  return value;
}

std::string TritonBody::address(BufferId buffer, const TileValue& offset, TileAxes axes) {
  std::string at = offset.text;
  if ((axes & ~offset.axes) != 0)
    at = offset.axes == kNoAxes ? "tl.full(" + shape(axes) + ", " + at + ", " +
                                      (narrow_ ? "tl.int32" : "tl.int64") + ")"
                                : "tl.broadcast_to(" + at + ", " + shape(axes | offset.axes) + ")";
  return arguments_.pointer(buffer) + " + " + at;
}

TileValue TritonBody::load(Expr e, size_t scope) {
  const TileValue at = offset(e.coordinates()[0], e.operands());
  const TileValue mask = mask_in(scope, at.axes);
  const TileAxes axes = at.axes | mask.axes;
  std::string text = "tl.load(" + address(e.buffer(), at, axes);
  if (!mask.text.empty()) text += ", mask=" + mask.text;
  if (const std::string policy = eviction_ ? eviction_(e) : ""; !policy.empty())
    text += ", eviction_policy=\"" + policy + "\"";
  text += ")";
  if (e.dtype() == DType::kBool) text += " != 0";
  if (is_half(e.dtype())) text += ".to(tl.float32)";
  return define_in(scope, text, axes);
}

void TritonBody::forget_loads(const std::vector<BufferId>& buffers) {
  for (Scope& scope : scopes_) {
    for (auto it = scope.values.begin(); it != scope.values.end();) {
      bool reads = false;
      const Expr root = it->first;
      visit_postorder(std::span<const Expr>(&root, 1), [&](Expr e) {
        if (e.op() == ExprOp::kLoad &&
            std::find(buffers.begin(), buffers.end(), e.buffer()) != buffers.end())
          reads = true;
      });
      it = reads ? scope.values.erase(it) : std::next(it);
    }
  }
}

void TritonBody::store(const std::vector<const KernelStore*>& stores, TileAxes axes, bool barrier) {
  if (stores.empty()) return;
  const auto memory_dtype = [&](const KernelStore& s) {
    return arguments_.program().buffer(s.buffer).dtype;
  };
  // A store of a half rounds, so what is rounded for the store alone is stored as it is.
  const auto stored = [&](const KernelStore& s) {
    const bool rounds = is_half(memory_dtype(s)) && s.value.op() == ExprOp::kCast &&
                        s.value.operand(0).dtype() == DType::kFloat32;
    return rounds && find(s.value) == nullptr ? s.value.operand(0) : s.value;
  };
  std::vector<TileValue> values;
  for (const KernelStore* s : stores) {
    values.push_back(emit(stored(*s)));
    for (Expr e : s->runtime_indices) emit(e);
  }
  if (barrier) out().line("tl.debug_barrier()");
  for (size_t i = 0; i < stores.size(); ++i) {
    const KernelStore& s = *stores[i];
    const DType dtype = memory_dtype(s);
    const TileValue at = offset(s.offset, s.runtime_indices);
    const TileValue m = mask(axes | at.axes);
    std::string value = values[i].text;
    if (is_half(dtype)) value += ".to(" + triton_type(dtype) + ")";
    if (dtype == DType::kBool) value += ".to(tl.uint8)";
    const std::string operation = s.mode == StoreMode::kStore ? "tl.store("
                                  : s.mode == StoreMode::kAdd ? "tl.atomic_add("
                                  : s.mode == StoreMode::kMin ? "tl.atomic_min("
                                                              : "tl.atomic_max(";
    std::string text = operation + address(s.buffer, at, axes | at.axes) + ", " + value;
    if (!m.text.empty()) text += ", mask=" + m.text;
    out().line(text + ")");
  }
}

}  // namespace litz
