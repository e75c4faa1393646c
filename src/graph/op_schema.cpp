#include "graph/op_schema.h"

#include <cctype>
#include <charconv>

#include "support/error.h"
#include "support/escape.h"

namespace litz {
namespace {

struct TypeRow {
  SchemaType type;
  std::string_view spelling;
};

constexpr TypeRow kTypes[] = {
#define LITZ_SCHEMA_TYPE_ROW(name, spelling) {SchemaType::name, spelling},
    LITZ_SCHEMA_TYPES(LITZ_SCHEMA_TYPE_ROW)
#undef LITZ_SCHEMA_TYPE_ROW
};

SchemaType base_of(std::string_view spelling) {
  for (const TypeRow& row : kTypes) {
    if (row.spelling == spelling) return row.type;
  }
  return SchemaType::kOther;
}

class SchemaParser {
 public:
  explicit SchemaParser(std::string_view text) : text_(text) {}

  OpSchema parse() {
    OpSchema schema;
    schema.name = identifier("an op name");
    expect("::");
    schema.name += "::" + identifier("an op name");
    if (accept(".")) schema.overload = identifier("an overload name");
    expect("(");
    bool keyword_only = false;
    if (!accept(")")) {
      do {
        skip_space();
        if (accept("*")) {
          keyword_only = true;
          continue;
        }
        schema.arguments.push_back(argument());
        schema.arguments.back().keyword_only = keyword_only;
      } while (accept(","));
      expect(")");
    }
    skip_space();
    expect("->");
    skip_space();
    parse_returns(schema);
    skip_space();
    if (position_ != text_.size()) fail("the end of the schema");
    return schema;
  }

 private:
  void parse_returns(OpSchema& schema) {
    if (!accept("(")) {
      schema.returns.push_back(return_value());
      return;
    }
    if (accept(")")) return;
    do {
      skip_space();
      schema.returns.push_back(return_value());
    } while (accept(","));
    expect(")");
  }

  SchemaArgument argument() {
    SchemaArgument result;
    parse_type(result);
    skip_space();
    result.name = identifier("an argument name");
    skip_space();
    if (accept("=")) {
      skip_space();
      result.has_default = true;
      const size_t start = position_;
      Argument value = default_value();
      result.default_text = text_.substr(start, position_ - start);
      result.default_value = typed_default(result, std::move(value), start);
      skip_space();
    }
    return result;
  }

  SchemaArgument return_value() {
    SchemaArgument result;
    parse_type(result);
    skip_space();
    if (at_identifier()) result.name = identifier("a name");
    skip_space();
    return result;
  }

  // Base type, then any number of "(alias)", "[]", "[N]", "?".
  void parse_type(SchemaArgument& result) {
    const size_t start = position_;
    std::string spelling = identifier("a type");
    while (accept(".")) spelling += "." + identifier("a type");
    if (spelling == "Dict") skip_parenthesis();
    result.base = base_of(spelling);
    result.type = text_.substr(start, position_ - start);
    for (;;) {
      if (accept("(")) {
        parse_alias(result);
      } else if (accept("[")) {
        result.is_element_optional = result.is_optional;
        result.is_optional = false;
        result.is_list = true;
        result.type += "[";
        const size_t digits = position_;
        while (position_ < text_.size() && std::isdigit(static_cast<unsigned char>(peek())))
          ++position_;
        const std::string_view count = text_.substr(digits, position_ - digits);
        std::from_chars(count.data(), count.data() + count.size(), result.list_size);
        expect("]");
        result.type += std::string(count) + "]";
      } else if (accept("?")) {
        result.is_optional = true;
        result.type += "?";
      } else {
        return;
      }
    }
  }

  // After "(": "a)", "a!)", "a -> *)", "a! -> *)", "a|b)".
  void parse_alias(SchemaArgument& result) {
    const size_t start = position_;
    while (position_ < text_.size() && peek() != '!' && peek() != ')' && peek() != ' ') ++position_;
    result.alias_set = text_.substr(start, position_ - start);
    result.is_mutated = accept("!");
    if (accept(" -> ")) {
      const size_t after = position_;
      while (position_ < text_.size() && peek() != ')') ++position_;
      result.alias_after = text_.substr(after, position_ - after);
    }
    expect(")");
  }

  void skip_parenthesis() {
    expect("(");
    while (position_ < text_.size() && peek() != ')') ++position_;
    expect(")");
  }

  // Reads a default as it stands; typed_default fits it to the type.
  Argument default_value() {
    if (accept("None")) return {};
    if (accept("True")) return true;
    if (accept("False")) return false;
    if (position_ < text_.size() && peek() == '"') return quoted();
    if (accept("[")) {
      ArgumentList list;
      skip_space();
      if (accept("]")) return list;
      do {
        skip_space();
        list.push_back(default_value());
        skip_space();
      } while (accept(","));
      expect("]");
      return list;
    }
    return number();
  }

  Argument number() {
    const size_t start = position_;
    while (position_ < text_.size() && peek() != ',' && peek() != ')' && peek() != ']' &&
           peek() != ' ')
      ++position_;
    const char* first = text_.data() + start;
    const char* last = text_.data() + position_;
    int64_t integer = 0;
    if (auto [end, error] = std::from_chars(first, last, integer);
        error == std::errc() && end == last)
      return integer;
    double real = 0;
    if (auto [end, error] = std::from_chars(first, last, real); error == std::errc() && end == last)
      return real;
    position_ = start;
    fail("a default value");
  }

  Argument quoted() {
    std::string result;
    const size_t end = unescape_quoted(text_, position_, result);
    if (end == std::string_view::npos) fail("a closed string");
    position_ = end;
    return result;
  }

  Argument typed_default(const SchemaArgument& argument, Argument value, size_t start) {
    if (argument.is_list && argument.list_size > 0 && !value.is_list() && !value.is_none())
      value = ArgumentList(argument.list_size, value);
    if (ArgumentList* list = std::get_if<ArgumentList>(&value.v)) {
      for (Argument& item : *list) item = typed_number(argument.base, item, start);
      return value;
    }
    return typed_number(argument.base, value, start);
  }

  Argument typed_number(SchemaType base, const Argument& value, size_t start) {
    if (!value.holds<int64_t>()) return value;
    const int64_t number = value.get<int64_t>();
    if (base == SchemaType::kFloat) return static_cast<double>(number);
    if (base == SchemaType::kMemoryFormat) return MemoryFormatArg{static_cast<int>(number)};
    if (base == SchemaType::kLayout) return LayoutArg{static_cast<int>(number)};
    if (base == SchemaType::kScalarType) {
      if (std::optional<DType> dtype = dtype_of_scalar_type(number)) return *dtype;
      position_ = start;
      fail("the number of a dtype");
    }
    return value;
  }

  bool at_identifier() const {
    return position_ < text_.size() &&
           (std::isalpha(static_cast<unsigned char>(peek())) || peek() == '_');
  }
  std::string identifier(const char* what) {
    const size_t start = position_;
    while (position_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '_'))
      ++position_;
    if (position_ == start) fail(what);
    return std::string(text_.substr(start, position_ - start));
  }
  char peek() const { return text_[position_]; }
  void skip_space() {
    while (position_ < text_.size() && peek() == ' ') ++position_;
  }
  bool accept(std::string_view token) {
    if (!text_.substr(position_).starts_with(token)) return false;
    position_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail("'" + std::string(token) + "'");
  }
  [[noreturn]] void fail(const std::string& expected) const {
    throw UserError("schema '" + std::string(text_) + "': expected " + expected + " at position " +
                    std::to_string(position_));
  }

  std::string_view text_;
  size_t position_ = 0;
};

void append(std::string& out, const SchemaArgument& argument) {
  if (argument.alias_set.empty()) {
    out += argument.type;
  } else {
    // The annotation stands behind the base type: "Tensor(a!)[]".
    const size_t base = argument.type.find_first_of("[?");
    out += argument.type.substr(0, base) + "(" + argument.alias_set;
    if (argument.is_mutated) out += "!";
    if (!argument.alias_after.empty()) out += " -> " + argument.alias_after;
    out += ")";
    if (base != std::string::npos) out += argument.type.substr(base);
  }
  if (!argument.name.empty()) out += " " + argument.name;
  if (argument.has_default) out += "=" + argument.default_text;
}

}  // namespace

int OpSchema::find(std::string_view argument) const {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name == argument) return static_cast<int>(i);
  }
  return -1;
}

bool OpSchema::mutates() const {
  for (const SchemaArgument& argument : arguments) {
    if (argument.is_mutated) return true;
  }
  return false;
}

OpSchema parse_schema(std::string_view text) { return SchemaParser(text).parse(); }

std::string to_string(const OpSchema& schema) {
  std::string out = schema.full_name() + "(";
  bool keyword_only = false;
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    if (i > 0) out += ", ";
    if (schema.arguments[i].keyword_only && !keyword_only) {
      keyword_only = true;
      out += "*, ";
    }
    append(out, schema.arguments[i]);
  }
  out += ") -> ";
  const bool bare = schema.returns.size() == 1;
  if (!bare) out += "(";
  for (size_t i = 0; i < schema.returns.size(); ++i) {
    if (i > 0) out += ", ";
    append(out, schema.returns[i]);
  }
  if (!bare) out += ")";
  return out;
}

std::optional<DType> dtype_of_scalar_type(int64_t number) {
  switch (number) {
    case 0:
      return DType::kUInt8;
    case 1:
      return DType::kInt8;
    case 2:
      return DType::kInt16;
    case 3:
      return DType::kInt32;
    case 4:
      return DType::kInt64;
    case 5:
      return DType::kFloat16;
    case 6:
      return DType::kFloat32;
    case 7:
      return DType::kFloat64;
    case 8:
      return DType::kComplex32;
    case 9:
      return DType::kComplex64;
    case 10:
      return DType::kComplex128;
    case 11:
      return DType::kBool;
    case 15:
      return DType::kBFloat16;
    case 23:
      return DType::kFloat8E5M2;
    case 24:
      return DType::kFloat8E4M3;
    case 27:
      return DType::kUInt16;
    case 28:
      return DType::kUInt32;
    case 29:
      return DType::kUInt64;
    default:
      return std::nullopt;
  }
}

}  // namespace litz
