// Recursive descent over
//   expression = term { ("+" | "-") term }
//   term       = factor { ("*" | "//" | "%") factor }
//   factor     = ("-" | "+") factor | atom [ "**" integer ]
//   atom       = integer | name | name "(" expression { "," expression } ")" | "(" expression ")"
// with Python's precedence, so that sympy's text reads as Python would read it.
#include <cctype>
#include <charconv>
#include <string>

#include "support/error.h"
#include "symbolic/divide.h"
#include "symbolic/node.h"

namespace litz {
namespace {

using Arguments = std::span<const Index>;

Index power(Index base, int64_t exponent) {
  Index result = base.context().constant(1);
  for (int64_t i = 0; i < exponent; ++i) result = result * base;
  return result;
}

constexpr int64_t kMaxExponent = 64;
constexpr int kMaxNesting = 256;
constexpr size_t kAnyNumber = SIZE_MAX;

struct Function {
  std::string_view name;
  size_t least;
  size_t most;
  bool divides;  // the second argument (and the third, where there is one) must be positive
  Index (*call)(Arguments x);
};

Index call_floor_div(Arguments x) { return floor_div(x[0], x[1]); }
Index call_ceil_div(Arguments x) { return ceil_div(x[0], x[1]); }
Index call_mod(Arguments x) { return mod(x[0], x[1]); }
Index call_modular_indexing(Arguments x) { return mod(floor_div(x[0], x[1]), x[2]); }
Index call_identity(Arguments x) { return x[0]; }
Index call_min(Arguments x) {
  Index result = x[0];
  for (Index each : x.subspan(1)) result = min(result, each);
  return result;
}
Index call_max(Arguments x) {
  Index result = x[0];
  for (Index each : x.subspan(1)) result = max(result, each);
  return result;
}

constexpr Function kFunctions[] = {
    {"floor_div", 2, 2, true, call_floor_div},
    {"FloorDiv", 2, 2, true, call_floor_div},
    {"CleanDiv", 2, 2, true, call_floor_div},
    {"ceil_div", 2, 2, true, call_ceil_div},
    {"CeilDiv", 2, 2, true, call_ceil_div},
    {"mod", 2, 2, true, call_mod},
    {"Mod", 2, 2, true, call_mod},
    {"PythonMod", 2, 2, true, call_mod},
    {"ModularIndexing", 3, 3, true, call_modular_indexing},
    {"min", 1, kAnyNumber, false, call_min},
    {"Min", 1, kAnyNumber, false, call_min},
    {"max", 1, kAnyNumber, false, call_max},
    {"Max", 1, kAnyNumber, false, call_max},
    {"Identity", 1, 1, false, call_identity},
    {"PowByNatural", 2, 2, false, nullptr},  // checked_power
};

class Parser {
 public:
  Parser(IndexContext& context, std::string_view text,
         const std::function<Index(std::string_view)>& symbol_of)
      : context_(context), text_(text), symbol_of_(symbol_of) {}

  Index parse() {
    const Index result = expression();
    if (peek() != '\0') fail("unexpected '" + std::string(1, peek()) + "'");
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { fail_at(at_, what); }
  [[noreturn]] void fail_at(size_t position, const std::string& what) const {
    throw UserError("cannot read the index expression \"" + std::string(text_) + "\": " + what +
                    " at position " + std::to_string(position));
  }

  // The next character that is no space, or 0 at the end.
  char peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool accept(std::string_view token) {
    if (peek() == '\0' || !text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  void expect(std::string_view token) {
    if (!accept(token)) fail("expected '" + std::string(token) + "'");
  }

  Index expression() {
    Index result = term();
    for (;;) {
      if (accept("+")) {
        result = result + term();
      } else if (accept("-")) {
        result = result - term();
      } else {
        return result;
      }
    }
  }

  Index term() {
    Index result = factor();
    for (;;) {
      const size_t start = at_;
      if (accept("//")) {
        const Index divisor = factor();
        check_divisor(divisor, start);
        result = floor_div(result, divisor);
      } else if (accept("%")) {
        const Index divisor = factor();
        check_divisor(divisor, start);
        result = mod(result, divisor);
      } else if (accept("*")) {
        result = result * factor();
      } else if (peek() == '/') {
        fail("'/' does not give an integer; use '//' or floor_div");
      } else {
        return result;
      }
    }
  }

  Index factor() {
    if (++nesting_ > kMaxNesting) fail("nested too deeply");
    const Index result = signed_factor();
    --nesting_;
    return result;
  }

  Index signed_factor() {
    if (accept("+")) return factor();
    if (accept("-")) {
      // The most negative integer has no positive counterpart, so the sign is read with the digits.
      if (std::isdigit(static_cast<unsigned char>(peek()))) return raise(integer(true), true);
      return -factor();
    }
    const bool digits = std::isdigit(static_cast<unsigned char>(peek()));
    return raise(digits ? integer(false) : atom(), false);
  }

  Index checked_power(Index base, Index exponent, size_t position) const {
    if (!exponent.is_constant() || exponent.constant() < 0 || exponent.constant() > kMaxExponent) {
      fail_at(position,
              "an exponent must be an integer between 0 and " + std::to_string(kMaxExponent));
    }
    return power(base, exponent.constant());
  }

  // Python binds ** tighter than the sign before it: -2**2 is -(2**2).
  Index raise(Index base, bool negated) {
    if (!accept("**")) return base;
    const size_t start = (peek(), at_);
    const Index exponent = factor();
    return negated ? -checked_power(-base, exponent, start) : checked_power(base, exponent, start);
  }

  Index integer(bool negative) {
    const size_t start = at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) ++at_;
    const std::string digits =
        (negative ? "-" : "") + std::string(text_.substr(start, at_ - start));
    int64_t value = 0;
    const char* end = digits.data() + digits.size();
    if (std::from_chars(digits.data(), end, value).ec != std::errc()) {
      fail_at(start, "the integer does not fit 64 bits");
    }
    return context_.constant(value);
  }

  Index atom() {
    if (accept("(")) {
      const Index result = expression();
      expect(")");
      return result;
    }
    const size_t start = (peek(), at_);
    const std::string_view name = read_name();
    if (name.empty()) {
      fail(peek() == '\0' ? "unexpected end" : "unexpected '" + std::string(1, peek()) + "'");
    }
    if (peek() == '(') return call(name, start);
    const Index symbol = symbol_of_(name);
    if (!symbol.valid()) fail_at(start, "unknown name '" + std::string(name) + "'");
    return symbol;
  }

  std::string_view read_name() {
    const size_t start = at_;
    const auto is_letter = [&](char c) {
      return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
    };
    if (at_ == text_.size() || !is_letter(text_[at_])) return {};
    while (at_ < text_.size() &&
           (is_letter(text_[at_]) || std::isdigit(static_cast<unsigned char>(text_[at_])))) {
      ++at_;
    }
    return text_.substr(start, at_ - start);
  }

  Index call(std::string_view name, size_t start) {
    expect("(");
    std::vector<Index> arguments;
    do {
      arguments.push_back(expression());
    } while (accept(","));
    expect(")");
    for (const Function& function : kFunctions) {
      if (function.name != name) continue;
      if (arguments.size() < function.least || arguments.size() > function.most) {
        fail_at(start,
                std::string(name) + " with " + std::to_string(arguments.size()) + " arguments");
      }
      for (size_t i = 1; function.divides && i < arguments.size(); ++i) {
        check_divisor(arguments[i], start);
      }
      if (function.call == nullptr) return checked_power(arguments[0], arguments[1], start);
      return function.call(arguments);
    }
    fail_at(start, "unknown function '" + std::string(name) + "'");
  }

  void check_divisor(Index divisor, size_t position) const {
    if (!may_divide(divisor)) {
      fail_at(position, "division by " + to_string(divisor) + ", which may not be positive");
    }
  }

  IndexContext& context_;
  std::string_view text_;
  const std::function<Index(std::string_view)>& symbol_of_;
  size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace

Index parse_index(IndexContext& context, std::string_view text,
                  const std::function<Index(std::string_view name)>& symbol_of) {
  return Parser(context, text, symbol_of).parse();
}

}  // namespace litz
