#include "codegen/cpp/cpp_accumulators.h"

#include "codegen/common/online_sums.h"
#include "codegen/cpp/cpp_text.h"
#include "support/error.h"

namespace litz {
namespace {

std::string text(int64_t value) { return std::to_string(value); }

}  // namespace

Accumulator::Accumulator(const KernelReduction& reduction, uint32_t number, int lanes,
                         Prelude& prelude)
    : reduction_(&reduction),
      number_(number),
      lanes_(lanes),
      prelude_(&prelude),
      dtype_(register_dtype(reduction.value.dtype())),
      mask_bytes_(1) {}

bool Accumulator::is_arg() const {
  return reduction_->kind == ReductionKind::kArgMax || reduction_->kind == ReductionKind::kArgMin;
}

std::string Accumulator::scalar_type() const {
  return is_bool() ? "bool" : prelude_->type(dtype_, 1);
}

std::string Accumulator::vector_type() {
  return is_bool() ? prelude_->type_mask(mask_bytes_, lanes_) : prelude_->type(dtype_, lanes_);
}

std::string Accumulator::vector_or_scalar_type() {
  return lanes_ == 1 ? scalar_type() : vector_type();
}

std::string Accumulator::start(int lanes) {
  const ReductionKind kind =
      is_arg()
          ? (reduction_->kind == ReductionKind::kArgMax ? ReductionKind::kMax : ReductionKind::kMin)
          : reduction_->kind;
  std::string value;
  if (is_bool()) {
    const bool one =
        kind == ReductionKind::kAll || kind == ReductionKind::kMin || kind == ReductionKind::kProd;
    if (lanes == 1) return one ? "true" : "false";
    return prelude_->splat(DType::kInt8, lanes) + "((i8)" + (one ? "-1" : "0") + ")";
  }
  const Scalar s = identity(kind, reduction_->value.dtype());
  if (is_floating(dtype_)) {
    if (s.real == 0 || s.real == 1) {
      value = s.real == 0 ? "0.0" : "1.0";
      if (dtype_ == DType::kFloat32) value += "f";
    } else {
      value = std::string(s.real < 0 ? "-" : "") +
              (dtype_ == DType::kFloat64 ? "__builtin_inf()" : "__builtin_inff()");
    }
  } else if (s.integer == INT64_MIN) {
    value = cpp_integer_literal(s.integer, prelude_->int64_suffix());
  } else {
    value = "(" + scalar_type() + ")" + text(s.integer) + std::string(prelude_->int64_suffix());
  }
  return lanes == 1 ? value : prelude_->splat(dtype_, lanes) + "(" + value + ")";
}

std::string Accumulator::combine(const std::string& a, const std::string& b, int lanes) {
  const auto call = [&](PreludeFn fn) {
    return prelude_->function(fn, dtype_, lanes) + "(" + a + ", " + b + ")";
  };
  switch (reduction_->kind) {
    case ReductionKind::kSum:
      return is_bool() ? a + " | " + b : call(PreludeFn::kAdd);
    case ReductionKind::kProd:
      return is_bool() ? a + " & " + b : call(PreludeFn::kMul);
    case ReductionKind::kMax:
      return is_bool() ? a + " | " + b : call(PreludeFn::kMax);
    case ReductionKind::kMin:
      return is_bool() ? a + " & " + b : call(PreludeFn::kMin);
    case ReductionKind::kAny:
      return a + " | " + b;
    case ReductionKind::kAll:
      return a + " & " + b;
    case ReductionKind::kArgMax:
    case ReductionKind::kArgMin:
      break;
  }
  LITZ_CHECK(false, "an arg-reduction is not one operation");
}

// A condition, scalar or mask: value wins over best, or is its equal and `earlier`. Without
// `earlier` positions come in order.
std::string Accumulator::better(const std::string& value, const std::string& best,
                                const std::string& earlier) const {
  const std::string symbol = reduction_->kind == ReductionKind::kArgMax ? " > " : " < ";
  std::string condition = "(" + value + symbol + best + ")";
  if (is_floating(dtype_))
    condition += " | ((" + value + " != " + value + ") & (" + best + " == " + best + "))";
  if (earlier.empty()) return condition;
  std::string equal = "(" + value + " == " + best + ")";
  if (is_floating(dtype_))
    equal = "(" + equal + " | ((" + value + " != " + value + ") & (" + best + " != " + best + ")))";
  return condition + " | (" + equal + " & (" + earlier + "))";
}

// A mask of 64-bit lanes as one of the value's width.
std::string Accumulator::narrow_mask(const std::string& mask) {
  const int bytes = static_cast<int>(size_of(dtype_));
  return bytes == 8 ? mask : prelude_->convert_mask(8, bytes, lanes_) + "(" + mask + ")";
}

// And the other way round.
std::string Accumulator::wide_mask(const std::string& mask) {
  const int bytes = static_cast<int>(size_of(dtype_));
  return bytes == 8 ? mask : prelude_->convert_mask(bytes, 8, lanes_) + "(" + mask + ")";
}

// ---- registers ----

void Accumulator::declare(IndentedBuffer& out, const std::string& suffix) {
  out.line(vector_or_scalar_type() + " " + name(suffix) + " = " + start(lanes_) + ";");
  if (!is_pair()) return;
  out.line(companion_type(lanes_) + " " + companion(suffix) + " = " + companion_start(lanes_) +
           ";");
}

void Accumulator::declare_turns(IndentedBuffer& out, int turns) {
  out.line(vector_or_scalar_type() + " " + name("[" + text(turns) + "]") + ";");
  for (int t = 0; t < turns; ++t) out.line(name("[" + text(t) + "]") + " = " + start(lanes_) + ";");
}

std::string Accumulator::companion_type(int lanes) const {
  return prelude_->type(is_online() ? dtype_ : DType::kInt64, lanes);
}

std::string Accumulator::companion_start(int lanes) const {
  const DType dtype = is_online() ? dtype_ : DType::kInt64;
  const std::string value =
      is_online() ? cpp_float_literal(lowest_finite(dtype), dtype == DType::kFloat64) : "0";
  return lanes == 1 ? value : prelude_->splat(dtype, lanes) + "(" + value + ")";
}

std::string Accumulator::exponential(const std::string& x, int lanes) {
  return prelude_->function(PreludeFn::kExp, dtype_, lanes) + "(" + x + ")";
}

void Accumulator::accumulate(CppBody& body, const std::string& suffix) {
  const std::string acc = name(suffix);
  const bool in_vector = body.lanes() > 1;
  LITZ_CHECK(in_vector == (lanes_ > 1), "an accumulator of another width than its loop");
  const Expr e = reduction_->value;
  const std::string value = !in_vector  ? body.scalar(e)
                            : is_bool() ? body.mask(e, mask_bytes_)
                                        : body.vector(e);
  const int bytes = is_bool() ? mask_bytes_ : static_cast<int>(size_of(dtype_));
  if (is_online()) return accumulate_exponential(body, suffix, value);
  if (!is_arg()) {
    update(body, acc, combine(acc, value, lanes_), bytes);
    return;
  }
  const std::string pos = companion(suffix);
  const std::string better_name = body.fresh("m");
  if (!in_vector) {
    const std::string here = body.index(reduction_->position);
    body.out().open("if (" + better(value, acc, here + " < " + pos) + ") {");
    body.out().line(acc + " = " + value + ";");
    body.out().line(pos + " = " + here + ";");
    body.out().close();
    return;
  }
  const std::string here = body.fresh("q");
  body.out().line("const " + prelude_->type(DType::kInt64, lanes_) + " " + here + " = " +
                  body.vector(reduction_->value.context().index_value(reduction_->position)) + ";");
  std::string condition = better(value, acc, "");
  if (!body.valid_lanes().empty()) {
    condition = "(" + condition + ") & " + prelude_->first_lanes(bytes, lanes_) + "(" +
                body.valid_lanes() + ")";
  }
  body.out().line("const " + prelude_->type_mask(bytes, lanes_) + " " + better_name + " = " +
                  condition + ";");
  body.out().line(acc + " = " + prelude_->select() + "(" + better_name + ", " + value + ", " + acc +
                  ");");
  body.out().line(pos + " = " + prelude_->select() + "(" + wide_mask(better_name) + ", " + here +
                  ", " + pos + ");");
}

// Sets the variable, in a tail only the lanes that are there.
void Accumulator::update(CppBody& body, const std::string& variable, std::string updated,
                         int bytes) {
  if (!body.valid_lanes().empty()) {
    const std::string valid = prelude_->first_lanes(bytes, lanes_) + "(" + body.valid_lanes() + ")";
    updated = prelude_->select() + "(" + valid + ", " + updated + ", " + variable + ")";
  }
  body.out().line(variable + " = " + updated + ";");
}

void Accumulator::accumulate_exponential(CppBody& body, const std::string& suffix,
                                         const std::string& value) {
  const std::string sum = name(suffix);
  const std::string top = companion(suffix);
  const std::string type = vector_or_scalar_type();
  const std::string scale = body.fresh("e");
  const std::string grows = body.fresh("m");
  const std::string one = cpp_float_literal(1, dtype_ == DType::kFloat64);
  const int bytes = static_cast<int>(size_of(dtype_));
  const auto call = [&](PreludeFn fn, const std::string& arguments) {
    return prelude_->function(fn, dtype_, lanes_) + "(" + arguments + ")";
  };
  body.out().line(
      "const " + type + " " + scale + " = " +
      exponential(call(PreludeFn::kNeg, call(PreludeFn::kAbs, value + " - " + top)), lanes_) + ";");
  body.out().line("const " +
                  (lanes_ == 1 ? std::string("bool") : prelude_->type_mask(bytes, lanes_)) + " " +
                  grows + " = " + value + " > " + top + ";");
  const std::string grown = sum + " * " + scale + " + " + one;
  const std::string added = sum + " + " + scale;
  update(body, sum,
         lanes_ == 1 ? grows + " ? " + grown + " : " + added
                     : prelude_->select() + "(" + grows + ", " + grown + ", " + added + ")",
         bytes);
  update(body, top, call(PreludeFn::kMax, top + ", " + value), bytes);
}

void Accumulator::settle(IndentedBuffer& out, const std::string& sum, const std::string& greatest) {
  const std::string zero = "(" + greatest + " - " + greatest + ")";
  if (!reduction_->online->of_finite) {
    out.line(sum + " += " + zero + ";");
    return;
  }
  out.line("if (" + zero + " != " + zero + " && " + greatest + " == " + greatest + ") " + sum +
           " = " + exponential(greatest, 1) + ";");
}

void Accumulator::merge(CppBody& body, const std::string& into, const std::string& from) {
  if (is_online()) {
    const std::string top = body.fresh("top");
    body.out().line("const " + vector_or_scalar_type() + " " + top + " = " +
                    prelude_->function(PreludeFn::kMax, dtype_, lanes_) + "(" + companion(into) +
                    ", " + companion(from) + ");");
    const auto part = [&](const std::string& suffix) {
      return name(suffix) + " * " + exponential(companion(suffix) + " - " + top, lanes_);
    };
    body.out().line(name(into) + " = " + part(into) + " + " + part(from) + ";");
    body.out().line(companion(into) + " = " + top + ";");
    return;
  }
  if (!is_arg()) {
    body.out().line(name(into) + " = " + combine(name(into), name(from), lanes_) + ";");
    return;
  }
  const int bytes = static_cast<int>(size_of(dtype_));
  const std::string m = body.fresh("m");
  const std::string earlier = companion(from) + " < " + companion(into);
  if (lanes_ == 1) {
    body.out().line("const bool " + m + " = " + better(name(from), name(into), earlier) + ";");
    body.out().line(name(into) + " = " + m + " ? " + name(from) + " : " + name(into) + ";");
    body.out().line(companion(into) + " = " + m + " ? " + companion(from) + " : " +
                    companion(into) + ";");
    return;
  }
  const std::string a = name(from);
  const std::string b = name(into);
  const std::string condition = better(a, b, narrow_mask(earlier));
  body.out().line("const " + prelude_->type_mask(bytes, lanes_) + " " + m + " = " + condition +
                  ";");
  body.out().line(b + " = " + prelude_->select() + "(" + m + ", " + a + ", " + b + ");");
  body.out().line(companion(into) + " = " + prelude_->select() + "(" + wide_mask(m) + ", " +
                  companion(from) + ", " + companion(into) + ");");
}

std::string Accumulator::finish(CppBody& body) {
  const std::string result = result_name();
  if (lanes_ == 1) {
    body.out().line(std::string(is_arg()      ? "const i64 "
                                : is_online() ? scalar_type() + " "
                                              : "const " + scalar_type() + " ") +
                    result + " = " + (is_arg() ? companion("") : name("")) + ";");
    if (is_online())
      body.out().line("const " + scalar_type() + " " + result + "_top = " + companion("") + ";");
    return result;
  }
  if (is_online()) {
    body.out().line("const " + scalar_type() + " " + result + "_top = " +
                    prelude_->reduce(PreludeFn::kMax, dtype_, lanes_) + "(" + companion("") + ");");
    body.out().line(scalar_type() + " " + result + " = " +
                    prelude_->reduce(PreludeFn::kAdd, dtype_, lanes_) + "(" + name("") + " * " +
                    exponential(companion("") + " - " + prelude_->splat(dtype_, lanes_) + "(" +
                                    result + "_top)",
                                lanes_) +
                    ");");
    return result;
  }
  if (is_arg()) {
    const std::string best = body.fresh("best");
    const std::string values = body.fresh("a");
    const std::string positions = body.fresh("a");
    const std::string at = body.fresh("best");
    body.out().line(prelude_->type(dtype_, 1) + " " + values + "[" + text(lanes_) + "];");
    body.out().line("i64 " + positions + "[" + text(lanes_) + "];");
    body.out().line(prelude_->store(dtype_, lanes_) + "(" + values + ", " + name("") + ");");
    body.out().line(prelude_->store(DType::kInt64, lanes_) + "(" + positions + ", " +
                    companion("") + ");");
    body.out().line(prelude_->type(dtype_, 1) + " " + best + " = " + values + "[0];");
    body.out().line("i64 " + at + " = " + positions + "[0];");
    body.out().open("for (int l = 1; l < " + text(lanes_) + "; ++l) {");
    body.out().line("if (" + better(values + "[l]", best, positions + "[l] < " + at) + ") { " +
                    best + " = " + values + "[l]; " + at + " = " + positions + "[l]; }");
    body.out().close();
    body.out().line("const i64 " + result + " = " + at + ";");
    // Partial results need the value too.
    body.out().line("const " + scalar_type() + " " + result + "_value = " + best + ";");
    return result;
  }
  if (is_bool()) {
    const bool all = reduction_->kind == ReductionKind::kAll ||
                     reduction_->kind == ReductionKind::kMin ||
                     reduction_->kind == ReductionKind::kProd;
    const std::string function =
        all ? prelude_->all(mask_bytes_, lanes_) : prelude_->any(mask_bytes_, lanes_);
    body.out().line("const bool " + result + " = " + function + "(" + name("") + ");");
    return result;
  }
  const PreludeFn fn = reduction_->kind == ReductionKind::kSum    ? PreludeFn::kAdd
                       : reduction_->kind == ReductionKind::kProd ? PreludeFn::kMul
                       : reduction_->kind == ReductionKind::kMax  ? PreludeFn::kMax
                                                                  : PreludeFn::kMin;
  body.out().line("const " + scalar_type() + " " + result + " = " +
                  prelude_->reduce(fn, dtype_, lanes_) + "(" + name("") + ");");
  return result;
}

// ---- groups of threads ----

std::vector<std::pair<std::string, std::string>> Accumulator::total_variables(
    const std::string& suffix) const {
  std::vector<std::pair<std::string, std::string>> variables = {{scalar_type(), name(suffix)}};
  if (is_pair()) variables.emplace_back(companion_type(1), companion(suffix));
  return variables;
}

void Accumulator::begin_total(IndentedBuffer& out, const std::string& suffix,
                              const std::string& finished) {
  if (!is_arg()) {
    out.line(scalar_type() + " " + name(suffix) + " = " + finished + ";");
    if (is_online()) out.line(scalar_type() + " " + companion(suffix) + " = " + finished + "_top;");
    return;
  }
  out.line(scalar_type() + " " + name(suffix) + " = " + name("") + ";");
  out.line("i64 " + companion(suffix) + " = " + finished + ";");
}

std::string Accumulator::total_name(const std::string& suffix) const {
  return is_arg() ? companion(suffix) : name(suffix);
}

// ---- arrays ----

void Accumulator::declare_array(IndentedBuffer& out, int64_t elements, const std::string& suffix) {
  array_elements_ = (elements + lanes_ - 1) / lanes_ * lanes_;
  const std::string element = is_bool() ? "u8" : prelude_->type(dtype_, 1);
  const std::string size = "[" + text(array_elements_) + "];";
  out.line("alignas(64) " + element + " " + name(suffix) + size);
  if (is_arg()) out.line("alignas(64) i64 " + companion(suffix) + size);
}

void Accumulator::fill_array(IndentedBuffer& out, const std::string& suffix) {
  std::string assignment = name(suffix) + "[i] = " + start(1) + ";";
  if (is_arg()) assignment += " " + companion(suffix) + "[i] = 0;";
  out.line("for (i64 i = 0; i < " + text(array_elements_) + "; ++i) { " + assignment + " }");
}

std::string Accumulator::accumulate_in_array(CppBody& body, const std::string& element) {
  const Expr e = reduction_->value;
  const std::string value = is_bool() ? body.mask(e, mask_bytes_) : body.vector(e);
  if (!is_arg()) return update_array(body, "", element, value, "");
  const std::string here = body.fresh("q");
  body.out().line("const " + prelude_->type(DType::kInt64, lanes_) + " " + here + " = " +
                  body.vector(e.context().index_value(reduction_->position)) + ";");
  return update_array(body, "", element, value, here);
}

void Accumulator::merge_into_array(CppBody& body, const std::string& element,
                                   const std::string& from, const std::string& into) {
  update_array(body, into, element, name(from), companion(from));
}

void Accumulator::merge_arrays(CppBody& body, const std::string& from) {
  const DType memory = is_bool() ? DType::kBool : dtype_;
  body.out().open("for (i64 i = 0; i < " + text(array_elements_) + "; i += " + text(lanes_) +
                  ") {");
  const std::string value = body.fresh("o");
  body.out().line("const " + vector_type() + " " + value + " = " + prelude_->load(memory, lanes_) +
                  "(" + name(from) + " + i);");
  std::string position;
  if (is_arg()) {
    position = body.fresh("q");
    body.out().line("const " + prelude_->type(DType::kInt64, lanes_) + " " + position + " = " +
                    prelude_->load(DType::kInt64, lanes_) + "(" + companion(from) + " + i);");
  }
  update_array(body, "", "i", value, position);
  body.out().close();
}

void Accumulator::store_in_array(CppBody& body, const std::string& element,
                                 const std::string& from) {
  const DType memory = is_bool() ? DType::kBool : dtype_;
  body.out().line(prelude_->store(memory, lanes_) + "(" + name("") + " + (" + element + "), " +
                  name(from) + ");");
  if (!is_arg()) return;
  body.out().line(prelude_->store(DType::kInt64, lanes_) + "(" + companion("") + " + (" + element +
                  "), " + companion(from) + ");");
}

// Combines the array's elements with a vector; returns the name of what they are now, of an
// arg-reduction the positions.
std::string Accumulator::update_array(CppBody& body, const std::string& suffix,
                                      const std::string& element, const std::string& value,
                                      const std::string& position) {
  const DType memory = is_bool() ? DType::kBool : dtype_;
  const std::string at = name(suffix) + " + (" + element + ")";
  const std::string old = body.fresh("o");
  const std::string updated = body.fresh("up");
  body.out().line("const " + vector_type() + " " + old + " = " + prelude_->load(memory, lanes_) +
                  "(" + at + ");");
  if (!is_arg()) {
    body.out().line("const " + vector_type() + " " + updated + " = " + combine(old, value, lanes_) +
                    ";");
    body.out().line(prelude_->store(memory, lanes_) + "(" + at + ", " + updated + ");");
    return updated;
  }
  const int bytes = static_cast<int>(size_of(dtype_));
  const std::string position_at = companion(suffix) + " + (" + element + ")";
  const std::string old_position = body.fresh("o");
  const std::string m = body.fresh("m");
  const std::string wide_type = prelude_->type(DType::kInt64, lanes_);
  body.out().line("const " + wide_type + " " + old_position + " = " +
                  prelude_->load(DType::kInt64, lanes_) + "(" + position_at + ");");
  const std::string condition = better(value, old, narrow_mask(position + " < " + old_position));
  body.out().line("const " + prelude_->type_mask(bytes, lanes_) + " " + m + " = " + condition +
                  ";");
  body.out().line(prelude_->store(dtype_, lanes_) + "(" + at + ", " + prelude_->select() + "(" + m +
                  ", " + value + ", " + old + "));");
  body.out().line("const " + wide_type + " " + updated + " = " + prelude_->select() + "(" +
                  wide_mask(m) + ", " + position + ", " + old_position + ");");
  body.out().line(prelude_->store(DType::kInt64, lanes_) + "(" + position_at + ", " + updated +
                  ");");
  return updated;
}

// ---- partial results ----

void Accumulator::store_partial(CppBody& body, const std::string& subscript) {
  const std::string result = finish(body);
  const std::string part = "part" + text(number_) + subscript;
  if (is_arg()) {
    body.out().line(part + " = " + (lanes_ == 1 ? name("") : result + "_value") + ";");
    body.out().line("part_pos" + text(number_) + subscript + " = " + result + ";");
  } else {
    body.out().line(part + " = " + result + ";");
  }
}

void Accumulator::declare_scalar(IndentedBuffer& out, const std::string& suffix) {
  out.line(scalar_type() + " " + name(suffix) + " = " + start(1) + ";");
  if (is_arg()) out.line("i64 " + companion(suffix) + " = 0;");
}

void Accumulator::merge_partial(CppBody& body, const std::string& subscript) {
  const std::string part = "part" + text(number_) + subscript;
  if (!is_arg()) {
    body.out().line(name("") + " = " +
                    combine(name(""), is_bool() ? "(" + part + " != 0)" : part, 1) + ";");
    return;
  }
  const std::string position = "part_pos" + text(number_) + subscript;
  body.out().line("if (" + better(part, name(""), position + " < " + companion("")) + ") { " +
                  name("") + " = " + part + "; " + companion("") + " = " + position + "; }");
}

std::string Accumulator::finish_scalar(CppBody& body) {
  const std::string result = result_name();
  body.out().line("const " + (is_arg() ? std::string("i64") : scalar_type()) + " " + result +
                  " = " + (is_arg() ? companion("") : name("")) + ";");
  return result;
}

std::vector<std::string> Accumulator::partial_members() const {
  const std::string element = is_bool() ? "u8" : prelude_->type(dtype_, 1);
  std::vector<std::string> members = {element + "* part" + text(number_)};
  if (is_arg()) members.push_back("i64* part_pos" + text(number_));
  return members;
}

std::vector<std::string> Accumulator::partial_unpacks() const {
  std::vector<std::string> lines;
  for (const std::string& member : partial_members()) {
    const std::string field = member.substr(member.rfind(' ') + 1);
    lines.push_back(member.substr(0, member.rfind(' ')) + " const " + field + " = s->" + field);
  }
  return lines;
}

std::vector<std::pair<std::string, std::string>> Accumulator::partial_arrays(
    const std::string& elements) const {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const std::string& member : partial_members()) {
    const std::string field = member.substr(member.rfind(' ') + 1);
    const std::string element = member.substr(0, member.find('*'));
    lines.emplace_back(element + " " + field + "[" + elements + "]", field + " = " + field);
  }
  return lines;
}

}  // namespace litz
