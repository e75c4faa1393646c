#include "codegen/cpp/cpp_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>
#include <vector>

namespace litz {

std::string cpp_string_literal(std::string_view text) {
  constexpr std::string_view kOctal = "01234567";
  std::string out = "\"";
  for (const char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte >= 0x20 && byte < 0x7f && c != '?') {
      out += c;
    } else {
      // Three digits, so that a digit behind them is another character.
      out += '\\';
      out += kOctal[byte >> 6];
      out += kOctal[byte >> 3 & 7];
      out += kOctal[byte & 7];
    }
  }
  return out + "\"";
}

std::string cpp_integer_literal(int64_t value, std::string_view int64_suffix) {
  const std::string suffix(int64_suffix);
  if (value == INT64_MIN) return "(-9223372036854775807" + suffix + " - 1)";
  std::string text = std::to_string(value);
  if (value > INT32_MAX || value < INT32_MIN) text += suffix;
  return value < 0 ? "(" + text + ")" : text;
}

std::string cpp_float_literal(double value, bool is_double) {
  const std::string suffix = is_double ? "" : "f";
  if (std::isnan(value)) return "__builtin_nan" + suffix + "(\"\")";
  if (std::isinf(value)) return (value < 0 ? "-__builtin_inf" : "__builtin_inf") + suffix + "()";
  char buffer[32];
  char* const end =
      is_double ? std::to_chars(buffer, buffer + sizeof(buffer), value).ptr
                : std::to_chars(buffer, buffer + sizeof(buffer), static_cast<float>(value)).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  text += suffix;
  return std::signbit(value) ? "(" + text + ")" : text;
}

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

DType integer_of_bytes(int64_t bytes, bool is_signed) {
  switch (bytes) {
    case 1:
      return is_signed ? DType::kInt8 : DType::kUInt8;
    case 2:
      return is_signed ? DType::kInt16 : DType::kUInt16;
    case 4:
      return is_signed ? DType::kInt32 : DType::kUInt32;
    default:
      return is_signed ? DType::kInt64 : DType::kUInt64;
  }
}

namespace {

std::string sum_text(Index e, std::string_view int64_suffix,
                     const std::function<std::string(Index)>& text_of) {
  const auto literal = [&](int64_t value) { return cpp_integer_literal(value, int64_suffix); };
  // In an order of their own, so that equal kernels have equal texts; what is added first.
  std::vector<std::tuple<bool, std::string, int64_t>> parts;
  for (const auto& [coefficient, term] : e.terms())
    parts.emplace_back(coefficient < 0, text_of(term), coefficient);
  std::sort(parts.begin(), parts.end());
  std::string text;
  for (auto& [is_negative, part, coefficient] : parts) {
    if (coefficient == -1 && !text.empty()) {
      text += " - " + part;
      continue;
    }
    if (coefficient != 1) part += " * " + literal(coefficient);
    text += text.empty() ? part : " + " + part;
  }
  if (e.sum_constant() > 0) text += " + " + literal(e.sum_constant());
  if (e.sum_constant() < 0) text += " - " + literal(-e.sum_constant());
  return "(" + text + ")";
}

}  // namespace

std::string cpp_index(Index e, Prelude& prelude,
                      const std::function<std::string(Index symbol)>& symbol_text) {
  const auto text_of = [&](Index part) { return cpp_index(part, prelude, symbol_text); };
  const auto call = [&](PreludeFn fn, const std::string& a, const std::string& b) {
    return prelude.function(fn, DType::kInt64, 1) + "(" + a + ", " + b + ")";
  };
  switch (e.kind()) {
    case IndexKind::kConstant:
      return cpp_integer_literal(e.constant(), prelude.int64_suffix());
    case IndexKind::kSymbol:
      return symbol_text(e);
    case IndexKind::kSum:
      return sum_text(e, prelude.int64_suffix(), text_of);
    case IndexKind::kProduct: {
      std::string text;
      for (Index factor : e.operands()) text += (text.empty() ? "" : " * ") + text_of(factor);
      return "(" + text + ")";
    }
    case IndexKind::kFloorDiv:
    case IndexKind::kMod: {
      const bool divides = e.kind() == IndexKind::kFloorDiv;
      const std::string a = text_of(e.operands()[0]);
      const std::string b = text_of(e.operands()[1]);
      // C++ rounds to zero, which is the floor of what is not negative.
      if (e.operands()[0].range().lo >= 0) return "(" + a + (divides ? " / " : " % ") + b + ")";
      return call(divides ? PreludeFn::kFloorDiv : PreludeFn::kRemainder, a, b);
    }
    case IndexKind::kMin:
    case IndexKind::kMax: {
      std::string text = text_of(e.operands()[0]);
      for (size_t i = 1; i < e.operands().size(); ++i) {
        text = call(e.kind() == IndexKind::kMin ? PreludeFn::kMin : PreludeFn::kMax, text,
                    text_of(e.operands()[i]));
      }
      return text;
    }
  }
  return {};
}

}  // namespace litz
