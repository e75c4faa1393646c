#include "codegen/cpp/cpp_body.h"

#include <algorithm>
#include <bit>

#include "codegen/cpp/cpp_ops.h"
#include "codegen/cpp/cpp_text.h"
#include "ir/check_status.h"
#include "support/error.h"

namespace litz {

std::string KernelArguments::pointer(BufferId buffer) {
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i] == buffer) return "p" + std::to_string(i);
  }
  buffers_.push_back(buffer);
  return "p" + std::to_string(buffers_.size() - 1);
}

std::string KernelArguments::symbol(Index symbol) {
  if (std::find(symbols_.begin(), symbols_.end(), symbol) == symbols_.end())
    symbols_.push_back(symbol);
  const size_t position = std::find(symbols_.begin(), symbols_.end(), symbol) - symbols_.begin();
  return "n" + std::to_string(position);
}

DType register_dtype(DType dtype) { return is_half(dtype) ? DType::kFloat32 : dtype; }

namespace {

bool is_random(ExprOp op) { return op == ExprOp::kPhilox32 || op == ExprOp::kPhilox64; }

std::string check_failed(LitzStatus status) {
  return "check_failed(status, " + std::to_string(status) + ");";
}

std::string call(const std::string& function, std::initializer_list<std::string> arguments) {
  std::string text = function + "(";
  bool first = true;
  for (const std::string& a : arguments) {
    if (!first) text += ", ";
    text += a;
    first = false;
  }
  return text + ")";
}

constexpr int kExactDepth = 8;

bool is_bfloat16(const Scalar& scalar) {
  const auto value = static_cast<float>(scalar.real);
  return value == value && (std::bit_cast<uint32_t>(value) & 0xffff) == 0;
}

// Whether its values, as float32 in registers, are bfloat16 without rounding.
bool is_exact(Expr e, int depth = 0) {
  const bool is_half_float = e.dtype() == DType::kBFloat16;
  if ((!is_half_float && e.dtype() != DType::kFloat32) || depth > kExactDepth) return false;
  const auto operands_are = [&](size_t first) {
    for (size_t i = first; i < e.operands().size(); ++i) {
      if (!is_exact(e.operand(i), depth + 1)) return false;
    }
    return true;
  };
  switch (e.op()) {
    case ExprOp::kLoad:
      return is_half_float;
    case ExprOp::kCast:
      return is_half_float || is_exact(e.operand(0), depth + 1);
    case ExprOp::kConstant:
      return is_bfloat16(e.scalar());
    case ExprOp::kNeg:
    case ExprOp::kAbs:
    case ExprOp::kMax:
    case ExprOp::kMin:
      return operands_are(0);
    case ExprOp::kWhere:
    case ExprOp::kMasked:
      return operands_are(1);
    default:
      return false;
  }
}

}  // namespace

// ---- scopes ----

IndentedBuffer& CppBody::push_scope(size_t loop, std::string name) {
  LITZ_CHECK(scopes_.size() < kMaxScopes, "blocks nested too deeply");
  Scope scope;
  scope.text = IndentedBuffer(scopes_.empty() ? 1 : scopes_.back().text.level() + 1);
  scope.bound = scopes_.empty() ? 0 : scopes_.back().bound;
  if (loop != kNoLoop) {
    scope.bound |= LoopMask{1} << loop;
    names_[analysis_.variable(loop)] = std::move(name);
  }
  scopes_.push_back(std::move(scope));
  return scopes_.back().text;
}

IndentedBuffer& CppBody::push_iteration_scope() {
  IndentedBuffer& text = push_scope(kNoLoop, "");
  scopes_.back().bound |= kIterationBit;
  return text;
}

IndentedBuffer& CppBody::push_vector_scope(size_t loop, std::string name, int lanes,
                                           std::string valid) {
  IndentedBuffer& text = push_scope(loop, std::move(name));
  vector_loop_ = lanes > 1 ? loop : kNoLoop;
  lanes_ = lanes;
  valid_ = std::move(valid);
  return text;
}

IndentedBuffer CppBody::take_scope() {
  IndentedBuffer text = std::move(scopes_.back().text);
  scopes_.pop_back();
  if (vector_loop_ != kNoLoop && (scopes_.back().bound >> vector_loop_ & 1) == 0) {
    vector_loop_ = kNoLoop;
    lanes_ = 1;
    valid_.clear();
  }
  return text;
}

void CppBody::pop_scope(const std::string& header) {
  const IndentedBuffer text = take_scope();
  if (!header.empty()) scopes_.back().text.line(header == kBlock ? "{" : header + " {");
  scopes_.back().text.append(text);
  if (!header.empty()) scopes_.back().text.line("}");
}

std::string CppBody::take_text() {
  LITZ_CHECK(scopes_.size() == 1, "statements are taken while a block is open");
  std::string text = scopes_[0].text.text();
  scopes_[0] = Scope{IndentedBuffer(1), 0, false, {}, {}};
  return text;
}

CppBody::Scope& CppBody::scope_for(LoopMask depends) {
  size_t first = 0;
  for (size_t i = 0; i < scopes_.size(); ++i) {
    if (scopes_[i].conditional) first = i;
  }
  for (size_t i = first; i < scopes_.size(); ++i) {
    if ((depends & ~scopes_[i].bound) == 0) return scopes_[i];
  }
  LITZ_CHECK(false, "a value is needed outside the loops that it varies along");
}

std::string CppBody::fresh(std::string_view stem) {
  // u8, i32 and f64 are types.
  LITZ_CHECK(stem != "u" && stem != "i" && stem != "f", "a name that may be a type's");
  return std::string(stem) + std::to_string(next_++);
}

// ---- values ----

const CppBody::Value* CppBody::find(Expr e) const {
  for (size_t i = scopes_.size(); i-- > 0;) {
    const auto found = scopes_[i].values.find(e);
    if (found != scopes_[i].values.end() && (!found->second.is_vector || vector_loop_ != kNoLoop))
      return &found->second;
  }
  return nullptr;
}

const CppBody::Value& CppBody::emit(Expr root) {
  if (const Value* known = find(root)) return *known;
  // Operands first, without recursion; what lies under a condition is printed by the condition.
  std::vector<std::pair<Expr, bool>> pending = {{root, false}};
  while (!pending.empty()) {
    const auto [e, ready] = pending.back();
    pending.pop_back();
    if (find(e) != nullptr) continue;
    const bool runtime_load = e.op() == ExprOp::kLoad && !e.operands().empty();
    const bool by_itself =
        varies(e) && (runtime_load || e.op() == ExprOp::kCheckIndex || is_random(e.op()));
    if (!ready && e.op() != ExprOp::kMasked && !by_itself) {
      pending.emplace_back(e, true);
      for (size_t i = e.operands().size(); i-- > 0;) pending.emplace_back(e.operand(i), false);
      continue;
    }
    Scope& scope = scope_for(analysis_.depends(e));
    const size_t position = static_cast<size_t>(&scope - scopes_.data());
    Value value = compute(e, scope, varies(e));
    scopes_[position].values[e] = std::move(value);
  }
  return *find(root);
}

CppBody::Value CppBody::compute(Expr e, Scope& scope, bool as_vector) {
  return as_vector ? compute_vector(e, scope) : compute_scalar(e, scope);
}

CppBody::Value CppBody::define(Scope& scope, const std::string& type, const std::string& expression,
                               bool is_vector, int mask_bytes) {
  const std::string name = fresh("t");
  scope.text.line("const " + type + " " + name + " = " + expression + ";");
  return {name, is_vector, mask_bytes};
}

std::string CppBody::scalar(Expr e) {
  LITZ_CHECK(!varies(e), "a scalar is wanted of a value that varies along the vector loop");
  return emit(e).text;
}

std::string CppBody::vector(Expr e) {
  LITZ_CHECK(e.dtype() != DType::kBool, "vector() of a bool; use mask()");
  const Value known = emit(e);
  if (known.is_vector) return known.text;
  return call(prelude_.splat(register_dtype(e.dtype()), lanes_), {known.text});
}

std::string CppBody::mask(Expr e, int mask_bytes) {
  const Value known = emit(e);
  if (!known.is_vector) {
    return call(prelude_.splat(integer_of_bytes(mask_bytes), lanes_),
                {"(" + prelude_.type(integer_of_bytes(mask_bytes), 1) + ")-(" +
                 prelude_.type(DType::kInt32, 1) + ")" + known.text});
  }
  if (known.mask_bytes == mask_bytes) return known.text;
  Scope& scope = scope_for(analysis_.depends(e));
  const std::string key = known.text + ":" + std::to_string(mask_bytes);
  const auto made = scope.derived.find(key);
  if (made != scope.derived.end()) return made->second;
  const std::string convert = prelude_.convert_mask(known.mask_bytes, mask_bytes, lanes_);
  const Value converted = define(scope, prelude_.type_mask(mask_bytes, lanes_),
                                 call(convert, {known.text}), true, mask_bytes);
  scope.derived[key] = converted.text;
  return converted.text;
}

int CppBody::bytes_of(Expr e) const { return static_cast<int>(size_of(register_dtype(e.dtype()))); }

int CppBody::mask_bytes_of(Expr e) {
  const Value& value = emit(e);
  return value.is_vector ? value.mask_bytes : 1;
}

std::string CppBody::literal(const Scalar& scalar, DType dtype) {
  if (dtype == DType::kBool) return scalar.integer != 0 ? "true" : "false";
  if (is_floating(dtype)) return cpp_float_literal(scalar.real, dtype == DType::kFloat64);
  return "(" + prelude_.type(dtype, 1) + ")" +
         cpp_integer_literal(scalar.integer, prelude_.int64_suffix());
}

// ---- addresses ----

std::string CppBody::bound_name(Index symbol) const {
  const auto found = names_.find(symbol);
  LITZ_CHECK(found != names_.end(),
             "loop variable " + std::string(symbol.symbol_name()) + " is not bound here");
  return found->second;
}

std::string CppBody::index(Index e) {
  return cpp_index(e, prelude_, [&](Index symbol) {
    return symbol.symbol_kind() == SymbolKind::kSize ? arguments_.symbol(symbol)
                                                     : bound_name(symbol);
  });
}

std::string CppBody::address(BufferId buffer, const std::string& offset) {
  const DType dtype = arguments_.program().buffer(buffer).dtype;
  const DType memory = dtype == DType::kBool ? DType::kUInt8
                       : is_half(dtype)      ? DType::kInt16
                                             : dtype;
  return "((" + prelude_.global() + prelude_.type(memory, 1) + "*)" + arguments_.pointer(buffer) +
         " + " + offset + ")";
}

// Text of an offset whose i0, i1, ... are the values of `runtime`, given by scalar_of.
std::string CppBody::runtime_offset(Index offset, std::span<const Expr> runtime,
                                    const std::function<std::string(Expr)>& scalar_of) {
  std::vector<Index> bound;
  if (!runtime.empty()) {
    for (Index symbol : free_symbols(offset)) {
      if (symbol.symbol_kind() != SymbolKind::kIndirect) continue;
      names_[symbol] = scalar_of(runtime[symbol.symbol_number()]);
      bound.push_back(symbol);
    }
  }
  std::string text = index(offset);
  for (Index symbol : bound) names_.erase(symbol);
  return text;
}

// ---- scalars ----

CppBody::Value CppBody::compute_scalar(Expr e, Scope& scope) {
  const DType dtype = register_dtype(e.dtype());
  const std::string type = dtype == DType::kBool ? "bool" : prelude_.type(dtype, 1);
  switch (e.op()) {
    case ExprOp::kConstant:
      return {literal(e.scalar(), e.dtype()), false, 0};
    case ExprOp::kIndexValue:
      return define(scope, type, index(e.index()), false);
    case ExprOp::kLoad: {
      const std::string offset = runtime_offset(e.coordinates()[0], e.operands(),
                                                [&](Expr operand) { return find(operand)->text; });
      const std::string at = address(e.buffer(), offset);
      if (e.dtype() == DType::kBool) return define(scope, type, "*" + at + " != 0", false);
      if (is_half(e.dtype()))
        return define(scope, type, call(prelude_.load(e.dtype(), 1), {at}), false);
      return define(scope, type, "*" + at, false);
    }
    case ExprOp::kReduced:
      return define(scope, type, "*(" + type + "*)" + accumulator_element(e.number()), false);
    case ExprOp::kMasked:
      return masked_scalar(e, scope);
    case ExprOp::kCheckIndex: {
      arguments_.set_checks_values();
      const std::string runs = loops_run(scope);
      const std::string status = runs.empty() ? "status" : "(" + runs + " ? status : 0)";
      return define(scope, type,
                    call("checked_index", {find(e.operand(0))->text, index(e.index()), status,
                                           std::to_string(status_of(e.fault()))}),
                    false);
    }
    case ExprOp::kCheck: {
      arguments_.set_checks_values();
      const std::string runs = loops_run(scope);
      scope.text.line("if (!" + find(e.operand(1))->text + (runs.empty() ? "" : " && " + runs) +
                      ") " + check_failed(LITZ_VALUE_OUT_OF_RANGE));
      return *find(e.operand(0));
    }
    case ExprOp::kCheckDivisor: {
      arguments_.set_checks_values();
      const Value divisor = *find(e.operand(0));
      const std::string runs = loops_run(scope);
      scope.text.line("if (" + divisor.text + " == 0" + (runs.empty() ? "" : " && " + runs) + ") " +
                      check_failed(LITZ_DIVISION_BY_ZERO));
      return divisor;
    }
    default: {
      std::vector<CppOperand> operands;
      for (Expr operand : e.operands())
        operands.push_back({find(operand)->text, operand.dtype(), 0});
      return define(scope, type, cpp_scalar_expression(prelude_, e.op(), e.dtype(), operands),
                    false);
    }
  }
}

// A condition: the inner loops that a value stands in front of, instead of inside, have iterations.
// Empty where that is known. Outer loops that have none never get here.
std::string CppBody::loops_run(const Scope& scope) {
  std::string condition;
  const LoopMask inside =
      (scopes_.back().bound | set_aside_) & ~scope.bound & analysis_.inner_mask();
  for (size_t loop = 0; loop < analysis_.num_loops(); ++loop) {
    if ((inside >> loop & 1) == 0 || analysis_.extent(loop).range().lo >= 1) continue;
    condition += (condition.empty() ? "" : " && ") + index(analysis_.extent(loop)) + " > 0";
  }
  return condition.empty() ? "" : "(" + condition + ")";
}

CppBody::Value CppBody::masked_scalar(Expr e, Scope& scope) {
  const size_t position = static_cast<size_t>(&scope - scopes_.data());
  const bool as_vector = varies(e);
  const bool is_bool = e.dtype() == DType::kBool;
  const std::string condition = scalar(e.operand(0));
  const int mask_bytes = 1;
  std::string type;
  if (as_vector) {
    type = is_bool ? prelude_.type_mask(mask_bytes, lanes_)
                   : prelude_.type(register_dtype(e.dtype()), lanes_);
  } else {
    type = is_bool ? "bool" : prelude_.type(register_dtype(e.dtype()), 1);
  }
  const auto text_of = [&](Expr operand) {
    if (!as_vector) return scalar(operand);
    return is_bool ? mask(operand, mask_bytes) : vector(operand);
  };
  const std::string name = fresh("t");
  const std::string other = text_of(e.operand(2));
  scopes_[position].text.line(type + " " + name + " = " + other + ";");
  // The block must follow in the same scope, so scopes further in are set aside while it is
  // printed.
  const size_t loop = vector_loop_;
  const int lanes = lanes_;
  const std::string valid = valid_;
  const LoopMask set_aside = set_aside_;
  set_aside_ |= scopes_.back().bound;
  std::vector<Scope> inner(
      std::make_move_iterator(scopes_.begin() + static_cast<std::ptrdiff_t>(position) + 1),
      std::make_move_iterator(scopes_.end()));
  scopes_.resize(position + 1);
  push_scope(kNoLoop, "");
  scopes_.back().conditional = true;
  const std::string taken = text_of(e.operand(1));
  scopes_.back().text.line(name + " = " + taken + ";");
  pop_scope("if (" + condition + ")");
  for (Scope& s : inner) scopes_.push_back(std::move(s));
  set_aside_ = set_aside;
  vector_loop_ = loop;
  lanes_ = lanes;
  valid_ = valid;
  return {name, as_vector, as_vector && is_bool ? mask_bytes : 0};
}

// ---- vectors ----

CppBody::Value CppBody::compute_vector(Expr e, Scope& scope) {
  const DType dtype = register_dtype(e.dtype());
  switch (e.op()) {
    case ExprOp::kConstant:
      LITZ_CHECK(false, "a constant does not vary");
    case ExprOp::kLoad:
      return load_vector(e, scope);
    case ExprOp::kCheckIndex:
      return lane_by_lane(e, scope);
    case ExprOp::kCheckDivisor: {
      arguments_.set_checks_values();
      const Value divisor = *find(e.operand(0));
      const int bytes = bytes_of(e);
      std::string zero = divisor.text + " == 0";
      if (!valid_.empty())
        zero = "(" + zero + ") & " + call(prelude_.first_lanes(bytes, lanes_), {valid_});
      scope.text.line("if (" + call(prelude_.any(bytes, lanes_), {zero}) + ") " +
                      check_failed(LITZ_DIVISION_BY_ZERO));
      return divisor;
    }
    case ExprOp::kCheck: {
      arguments_.set_checks_values();
      const int bytes = bytes_of(e);
      std::string fails = "~(" + mask(e.operand(1), bytes) + ")";
      if (!valid_.empty())
        fails = "(" + fails + ") & " + call(prelude_.first_lanes(bytes, lanes_), {valid_});
      scope.text.line("if (" + call(prelude_.any(bytes, lanes_), {fails}) + ") " +
                      check_failed(LITZ_VALUE_OUT_OF_RANGE));
      return define(scope, prelude_.type(dtype, lanes_), vector(e.operand(0)), true);
    }
    case ExprOp::kMasked:
      return masked_vector(e, scope);
    case ExprOp::kPhilox32:
    case ExprOp::kPhilox64:
      return random_vector(e, scope);
    case ExprOp::kReduced: {
      const std::string element = accumulator_element(e.number());
      if (dtype == DType::kBool) {
        return define(scope, prelude_.type_mask(1, lanes_),
                      call(prelude_.load(DType::kBool, lanes_), {element}), true, 1);
      }
      return define(scope, prelude_.type(dtype, lanes_),
                    call(prelude_.load(dtype, lanes_), {element}), true);
    }
    case ExprOp::kIndexValue: {
      const auto linear = linear_in(e.index(), analysis_.variable(vector_loop_));
      if (!linear || !linear->stride.is_constant()) return lane_by_lane(e, scope);
      const std::string iota = prelude_.iota(DType::kInt64, lanes_);
      const std::string type = prelude_.type(DType::kInt64, lanes_);
      if (linear->stride.is_constant(1))
        return define(scope, type, call(iota, {index(e.index())}), true);
      const std::string multiply = prelude_.function(PreludeFn::kMul, DType::kInt64, lanes_);
      const std::string add = prelude_.function(PreludeFn::kAdd, DType::kInt64, lanes_);
      const std::string splat = prelude_.splat(DType::kInt64, lanes_);
      return define(
          scope, type,
          call(add, {call(splat, {index(e.index())}),
                     call(multiply, {call(iota, {"0"}), call(splat, {index(linear->stride)})})}),
          true);
    }
    default:
      break;
  }
  std::vector<CppOperand> operands;
  int mask_bytes = 0;  // width at which bool operands meet
  for (Expr operand : e.operands()) {
    if (operand.dtype() == DType::kBool) mask_bytes = std::max(mask_bytes, mask_bytes_of(operand));
  }
  if (e.op() == ExprOp::kWhere && e.dtype() != DType::kBool) mask_bytes = bytes_of(e);
  for (Expr operand : e.operands()) {
    const bool is_bool = operand.dtype() == DType::kBool;
    operands.push_back({is_bool ? mask(operand, mask_bytes) : vector(operand), operand.dtype(),
                        is_bool ? mask_bytes : 0});
  }
  const CppVectorExpression expression =
      cpp_vector_expression(prelude_, e.op(), e.dtype(), operands, lanes_);
  const bool is_mask = e.dtype() == DType::kBool;
  const std::string type =
      is_mask ? prelude_.type_mask(expression.mask_bytes, lanes_) : prelude_.type(dtype, lanes_);
  return define(scope, type, expression.text, true, is_mask ? expression.mask_bytes : 0);
}

CppBody::Value CppBody::load_vector(Expr e, Scope& scope) {
  const bool runtime_varies =
      std::any_of(e.operands().begin(), e.operands().end(), [&](Expr o) { return varies(o); });
  const Index offset = e.coordinates()[0];
  if (runtime_varies || analysis_.walk(offset, vector_loop_) != KernelAnalysis::Walk::kContiguous) {
    return lane_by_lane(e, scope);
  }
  const size_t position = static_cast<size_t>(&scope - scopes_.data());
  const std::string at =
      address(e.buffer(), runtime_offset(e.coordinates()[0], e.operands(),
                                         [&](Expr operand) { return scalar(operand); }));
  const bool is_bool = e.dtype() == DType::kBool;
  const std::string type =
      is_bool ? prelude_.type_mask(1, lanes_) : prelude_.type(register_dtype(e.dtype()), lanes_);
  const std::string text = valid_.empty()
                               ? call(prelude_.load(e.dtype(), lanes_), {at})
                               : call(prelude_.load_tail(e.dtype(), lanes_), {at, valid_});
  return define(scopes_[position], type, text, true, is_bool ? 1 : 0);
}

CppBody::Value CppBody::random_vector(Expr e, Scope& scope) {
  const Expr number = e.operand(1);
  const bool counts = !varies(e.operand(0)) && number.op() == ExprOp::kIndexValue;
  const auto linear = counts ? linear_in(number.index(), analysis_.variable(vector_loop_))
                             : std::optional<LinearIn>();
  if (!linear || !linear->stride.is_constant(1)) return lane_by_lane(e, scope);
  const size_t position = static_cast<size_t>(&scope - scopes_.data());
  const std::string seed = scalar(e.operand(0));
  return define(scopes_[position], prelude_.type(e.dtype(), lanes_),
                call(prelude_.philox(e.dtype(), lanes_), {seed, index(number.index())}), true);
}

std::string CppBody::zero_filled_array(Scope& scope, DType dtype) {
  const std::string name = fresh("a");
  scope.text.line(prelude_.type(dtype == DType::kBool ? DType::kUInt8 : dtype, 1) + " " + name +
                  "[" + std::to_string(lanes_) + "]" + (valid_.empty() ? "" : " = {}") + ";");
  return name;
}

CppBody::Value CppBody::lane_by_lane(Expr e, Scope& scope) {
  const size_t position = static_cast<size_t>(&scope - scopes_.data());
  LITZ_CHECK(position + 1 == scopes_.size(),
             "a value that varies along the vector loop belongs to the innermost scope");
  const DType dtype = register_dtype(e.dtype());
  const std::string array = zero_filled_array(scope, dtype);
  const std::string limit = valid_.empty() ? std::to_string(lanes_) : valid_;
  const std::string lane = fresh("l");

  // Scalar printing with the vector loop's variable at one lane.
  const size_t loop = vector_loop_;
  const int lanes = lanes_;
  std::string valid = std::move(valid_);
  const std::string base = names_.at(analysis_.variable(loop));
  vector_loop_ = kNoLoop;
  lanes_ = 1;
  valid_.clear();
  names_[analysis_.variable(loop)] = "(" + base + " + " + lane + ")";
  push_scope(kNoLoop, "");
  scopes_.back().conditional = true;
  const std::string value = scalar(e);
  scopes_.back().text.line(array + "[" + lane + "] = " + value + ";");
  pop_scope("for (" + prelude_.type(DType::kInt64, 1) + " " + lane + " = 0; " + lane + " < " +
            limit + "; ++" + lane + ")");
  names_[analysis_.variable(loop)] = base;
  vector_loop_ = loop;
  lanes_ = lanes;
  valid_ = std::move(valid);

  const bool is_bool = dtype == DType::kBool;
  const std::string type = is_bool ? prelude_.type_mask(1, lanes_) : prelude_.type(dtype, lanes_);
  return define(scopes_[position], type, call(prelude_.load(dtype, lanes_), {array}), true,
                is_bool ? 1 : 0);
}

CppBody::Value CppBody::masked_vector(Expr e, Scope& scope) {
  const Expr condition = e.operand(0);
  if (!varies(condition)) return masked_scalar(e, scope);
  const size_t position = static_cast<size_t>(&scope - scopes_.data());
  const bool is_bool = e.dtype() == DType::kBool;
  const int mask_bytes = is_bool ? 1 : bytes_of(e);
  const std::string chosen = mask(condition, mask_bytes);
  const std::string type =
      is_bool ? prelude_.type_mask(1, lanes_) : prelude_.type(register_dtype(e.dtype()), lanes_);
  const auto text_of = [&](Expr operand) { return is_bool ? mask(operand, 1) : vector(operand); };
  const std::string name = fresh("t");
  const std::string other = text_of(e.operand(2));
  scopes_[position].text.line(type + " " + name + " = " + other + ";");
  push_scope(kNoLoop, "");
  scopes_.back().conditional = true;
  const std::string taken = text_of(e.operand(1));
  scopes_.back().text.line(name + " = " + taken + ";");
  pop_scope("if (" + call(prelude_.all(mask_bytes, lanes_), {chosen}) + ")");
  push_scope(kNoLoop, "");
  scopes_.back().conditional = true;
  const Value mixed = lane_by_lane(e, scopes_.back());
  scopes_.back().text.line(name + " = " + mixed.text + ";");
  pop_scope("else if (" + call(prelude_.any(mask_bytes, lanes_), {chosen}) + ")");
  return {name, true, is_bool ? 1 : 0};
}

// ---- stores and reductions ----

void CppBody::define_reduced(uint32_t number, std::string name, bool is_vector) {
  const KernelReduction& reduction = analysis_.kernel().reductions[number];
  ExprContext& exprs = reduction.value.context();
  const DType dtype = result_dtype(reduction.kind, reduction.value.dtype());
  const Expr e = exprs.reduced(number, dtype);
  const int mask_bytes = dtype == DType::kBool && is_vector ? 1 : 0;
  scopes_.back().values[e] = {std::move(name), is_vector, mask_bytes};
}

std::string CppBody::load_along(Expr load, int lanes, const std::string& valid) {
  if (!valid.empty())
    return call(prelude_.load_tail(load.dtype(), lanes), {address_of(load), valid});
  return call(prelude_.load(load.dtype(), lanes), {address_of(load)});
}

void CppBody::set_accumulator_array(uint32_t number, std::string array, size_t loop,
                                    std::string first) {
  arrays_[number] = {std::move(array), loop, std::move(first)};
}

std::string CppBody::accumulator_element(uint32_t number) {
  const auto found = arrays_.find(number);
  LITZ_CHECK(found != arrays_.end(), "a reduction is used before it is finished");
  const AccumulatorArray& array = found->second;
  return "(" + array.name + " + (" + index(analysis_.variable(array.loop)) + " - " + array.first +
         "))";
}

// A store of a half rounds, so what is rounded for the store alone is stored as it is.
Expr CppBody::stored_value(const KernelStore& store) const {
  const Expr value = store.value;
  const DType dtype = arguments_.program().buffer(store.buffer).dtype;
  if (!is_half(dtype) || store.mode != StoreMode::kStore || value.op() != ExprOp::kCast ||
      value.operand(0).dtype() != DType::kFloat32 || find(value) != nullptr)
    return value;
  const Expr rounded = value.operand(0);
  if ((rounded.op() != ExprOp::kMax && rounded.op() != ExprOp::kMin) || dtype != DType::kBFloat16 ||
      find(rounded) != nullptr)
    return rounded;
  // Rounding keeps the order, so that it may come behind the comparison.
  const Expr wide = rounded.operand(0);
  const Expr bound = rounded.operand(1);
  const auto is_new_cast = [&](Expr e, DType to) {
    return e.op() == ExprOp::kCast && e.dtype() == to && find(e) == nullptr;
  };
  if (!is_new_cast(wide, DType::kFloat32) || !is_new_cast(wide.operand(0), DType::kBFloat16) ||
      wide.operand(0).operand(0).dtype() != DType::kFloat32 || bound.op() != ExprOp::kConstant ||
      !is_exact(bound))
    return rounded;
  return value.context().binary(rounded.op(), wide.operand(0).operand(0), bound);
}

void CppBody::store_inner(uint32_t stage) {
  store_where([&](const KernelStore& s) { return s.inner && s.stage == stage; });
}

void CppBody::store_outer() {
  store_where([](const KernelStore& s) { return !s.inner && !s.after_outer; });
}

void CppBody::store_after_outer() {
  store_where([](const KernelStore& s) { return s.after_outer; });
}

template <class Select>
void CppBody::store_where(const Select& select) {
  for (const KernelStore& s : analysis_.kernel().stores) {
    if (select(s)) prepare(s);
  }
  for (const KernelStore& s : analysis_.kernel().stores) {
    if (select(s)) store(s);
  }
}

void CppBody::prepare(const KernelStore& store) {
  emit(stored_value(store));
  for (Expr e : store.runtime_indices) emit(e);
}

void CppBody::store(const KernelStore& store) {
  DType dtype = arguments_.program().buffer(store.buffer).dtype;
  const bool is_bool = dtype == DType::kBool;
  const Expr source = stored_value(store);
  const bool runtime_varies =
      std::any_of(store.runtime_indices.begin(), store.runtime_indices.end(),
                  [&](Expr o) { return varies(o); });
  const auto offset_text = [&](const std::function<std::string(Expr)>& scalar_of) {
    return runtime_offset(store.offset, store.runtime_indices, scalar_of);
  };
  const PreludeFn fn = store.mode == StoreMode::kAdd   ? PreludeFn::kAdd
                       : store.mode == StoreMode::kMul ? PreludeFn::kMul
                       : store.mode == StoreMode::kMin ? PreludeFn::kMin
                                                       : PreludeFn::kMax;
  const auto combine = [&](const std::string& old, const std::string& value, int lanes) {
    return call(prelude_.function(fn, register_dtype(dtype), lanes), {old, value});
  };
  if (lanes_ == 1) {
    std::string value = scalar(source);
    const std::string at = address(store.buffer, offset_text([&](Expr e) { return scalar(e); }));
    if (store.mode != StoreMode::kStore) {
      LITZ_CHECK(!is_bool, "a scatter of bools only stores");
      if (prelude_.has_atomics()) {
        out().line(call(prelude_.atomic(fn, dtype), {at, value}) + ";");
        return;
      }
      const std::string old = is_half(dtype) ? call(prelude_.load(dtype, 1), {at}) : "*" + at;
      value = combine(old, value, 1);
    }
    if (is_half(dtype)) {
      out().line(call(prelude_.store(dtype, 1), {at, value}) + ";");
    } else {
      out().line("*" + at + " = " + value + ";");
    }
    return;
  }
  std::string value = is_bool ? mask(source, 1) : vector(source);
  const bool contiguous = !runtime_varies && analysis_.walk(store.offset, vector_loop_) ==
                                                 KernelAnalysis::Walk::kContiguous;
  if (contiguous) {
    const std::string at = address(store.buffer, offset_text([&](Expr e) { return scalar(e); }));
    if (store.mode != StoreMode::kStore) {
      const std::string old = valid_.empty()
                                  ? call(prelude_.load(dtype, lanes_), {at})
                                  : call(prelude_.load_tail(dtype, lanes_), {at, valid_});
      value = combine(old, value, lanes_);
    }
    const bool exact = store.mode == StoreMode::kStore && is_exact(source);
    if (!valid_.empty()) {
      const std::string tail = exact      ? prelude_.store_exact_tail(dtype, lanes_)
                               : flushes_ ? prelude_.store_flushed_tail(dtype, lanes_)
                                          : prelude_.store_tail(dtype, lanes_);
      out().line(call(tail, {at, value, valid_}) + ";");
    } else {
      const std::string whole = exact      ? prelude_.store_exact(dtype, lanes_)
                                : flushes_ ? prelude_.store_flushed(dtype, lanes_)
                                           : prelude_.store(dtype, lanes_);
      out().line(call(whole, {at, value}) + ";");
    }
    return;
  }
  LITZ_CHECK(!runtime_varies,
             "a store at a position that varies by lane is printed in a scalar loop");
  const DType element = register_dtype(dtype);
  const std::string array = fresh("a");
  const std::string lane = fresh("l");
  out().line(prelude_.type(is_bool ? DType::kUInt8 : element, 1) + " " + array + "[" +
             std::to_string(lanes_) + "];");
  out().line(call(prelude_.store(element, lanes_), {array, value}) + ";");
  const std::string base = names_.at(analysis_.variable(vector_loop_));
  const std::string limit = valid_.empty() ? std::to_string(lanes_) : valid_;
  std::unordered_map<Expr, std::string> runtime_values;
  for (Expr e : store.runtime_indices) runtime_values[e] = scalar(e);
  names_[analysis_.variable(vector_loop_)] = "(" + base + " + " + lane + ")";
  const std::string at =
      address(store.buffer, offset_text([&](Expr e) { return runtime_values.at(e); }));
  names_[analysis_.variable(vector_loop_)] = base;
  std::string assignment = "*" + at + " = " + array + "[" + lane + "];";
  if (is_half(dtype))
    assignment = call(prelude_.store(dtype, 1), {at, array + "[" + lane + "]"}) + ";";
  LITZ_CHECK(store.mode == StoreMode::kStore, "a strided scatter is printed in a scalar loop");
  out().line("for (" + prelude_.type(DType::kInt64, 1) + " " + lane + " = 0; " + lane + " < " +
             limit + "; ++" + lane + ") " + assignment);
}

}  // namespace litz
