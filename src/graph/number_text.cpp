#include "graph/number_text.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace litz {
namespace {

template <class Float>
std::string print_float(Float value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string text(buffer, result.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last || text.empty()) return std::nullopt;
  return value;
}

// A half-precision format: bits of the exponent and of the significand.
struct HalfFormat {
  int exponent_bits;
  int fraction_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};
constexpr HalfFormat kBinary16{5, 10};
constexpr HalfFormat kBrain16{8, 7};

HalfFormat format_of(DType dtype) { return dtype == DType::kFloat16 ? kBinary16 : kBrain16; }

double decode_half(uint16_t bits, HalfFormat format) {
  const double sign = (bits & 0x8000) ? -1.0 : 1.0;
  const int exponent_mask = (1 << format.exponent_bits) - 1;
  const int exponent = (bits >> format.fraction_bits) & exponent_mask;
  const int fraction = bits & ((1 << format.fraction_bits) - 1);
  if (exponent == exponent_mask)
    return fraction ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  const int implicit = exponent ? 1 << format.fraction_bits : 0;
  return sign * std::ldexp(implicit + fraction,
                           (exponent ? exponent : 1) - format.bias() - format.fraction_bits);
}

// Rounds to nearest, ties to even.
uint16_t encode_half(double value, HalfFormat format) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const int exponent_mask = (1 << format.exponent_bits) - 1;
  const uint16_t infinity = static_cast<uint16_t>(exponent_mask << format.fraction_bits);
  if (std::isnan(value)) return sign | infinity | (1 << (format.fraction_bits - 1));
  if (std::isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  int exponent = 0;
  std::frexp(value, &exponent);  // |value| in [2^(exponent-1), 2^exponent)
  const int biased = std::max(exponent - 1 + format.bias(), 1);
  // The significand in units of the last place; it carries into the exponent by itself.
  const double units =
      std::nearbyint(std::ldexp(std::fabs(value), format.bias() + format.fraction_bits - biased));
  const double implicit = std::ldexp(1.0, format.fraction_bits);
  const double bits = units + (biased - 1) * implicit;
  return sign | (bits >= infinity ? infinity : static_cast<uint16_t>(bits));
}

template <class Number>
Number load(const std::byte* source) {
  Number value;
  std::memcpy(&value, source, sizeof(Number));
  return value;
}

template <class Number>
void store(std::vector<std::byte>& bytes, Number value) {
  const auto* source = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), source, source + sizeof(Number));
}

template <class Number>
std::optional<std::string> print_as(DType, const std::byte* source) {
  const Number value = load<Number>(source);
  if constexpr (std::is_integral_v<Number>) {
    return std::to_string(value);
  } else {
    if (!std::isnan(value)) return print_float(value);
    const Number quiet = std::numeric_limits<Number>::quiet_NaN();
    if (std::memcmp(&value, &quiet, sizeof(Number)) != 0) return std::nullopt;
    return "nan";
  }
}

std::optional<std::string> print_half(DType dtype, const std::byte* source) {
  const uint16_t bits = load<uint16_t>(source);
  const double value = decode_half(bits, format_of(dtype));
  if (encode_half(value, format_of(dtype)) != bits) return std::nullopt;
  if (std::isnan(value)) return "nan";
  return print_float(static_cast<float>(value));
}

std::optional<std::string> print_bool(DType, const std::byte* source) {
  const auto value = std::to_integer<uint8_t>(*source);
  if (value > 1) return std::nullopt;
  return value ? "true" : "false";
}

template <class Number>
bool parse_as(DType, std::string_view text, std::vector<std::byte>& bytes) {
  const std::optional<Number> value = parse_number<Number>(text);
  if (value) store(bytes, *value);
  return value.has_value();
}

bool parse_half(DType dtype, std::string_view text, std::vector<std::byte>& bytes) {
  const std::optional<double> value = parse_number<double>(text);
  if (value) store(bytes, encode_half(*value, format_of(dtype)));
  return value.has_value();
}

bool parse_bool(DType, std::string_view text, std::vector<std::byte>& bytes) {
  if (text != "true" && text != "false") return false;
  store(bytes, static_cast<uint8_t>(text == "true"));
  return true;
}

struct ElementRow {
  DType dtype;
  std::optional<std::string> (*print)(DType, const std::byte*);
  bool (*parse)(DType, std::string_view, std::vector<std::byte>&);
};

constexpr ElementRow kElements[] = {
    {DType::kBool, print_bool, parse_bool},
    {DType::kUInt8, print_as<uint8_t>, parse_as<uint8_t>},
    {DType::kInt8, print_as<int8_t>, parse_as<int8_t>},
    {DType::kInt16, print_as<int16_t>, parse_as<int16_t>},
    {DType::kInt32, print_as<int32_t>, parse_as<int32_t>},
    {DType::kInt64, print_as<int64_t>, parse_as<int64_t>},
    {DType::kUInt16, print_as<uint16_t>, parse_as<uint16_t>},
    {DType::kUInt32, print_as<uint32_t>, parse_as<uint32_t>},
    {DType::kUInt64, print_as<uint64_t>, parse_as<uint64_t>},
    {DType::kFloat16, print_half, parse_half},
    {DType::kBFloat16, print_half, parse_half},
    {DType::kFloat32, print_as<float>, parse_as<float>},
    {DType::kFloat64, print_as<double>, parse_as<double>},
};

const ElementRow* find_row(DType dtype) {
  for (const ElementRow& row : kElements) {
    if (row.dtype == dtype) return &row;
  }
  return nullptr;
}

}  // namespace

std::string print_double(double value) {
  if (!std::isnan(value)) return print_float(value);
  const auto bits = std::bit_cast<uint64_t>(value);
  if (bits == std::bit_cast<uint64_t>(std::numeric_limits<double>::quiet_NaN())) return "nan";
  char buffer[16];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), bits, 16);
  return "nan(0x" + std::string(buffer, result.ptr) + ")";
}

std::optional<double> parse_double(std::string_view text) {
  constexpr std::string_view kPrefix = "nan(0x";
  if (!text.starts_with(kPrefix)) return parse_number<double>(text);
  if (text.back() != ')') return std::nullopt;
  uint64_t bits = 0;
  const char* last = text.data() + text.size() - 1;
  const auto [end, error] = std::from_chars(text.data() + kPrefix.size(), last, bits, 16);
  if (error != std::errc() || end != last) return std::nullopt;
  return std::bit_cast<double>(bits);
}

std::optional<std::string> print_elements(DType dtype, std::span<const std::byte> bytes) {
  const ElementRow* row = find_row(dtype);
  if (row == nullptr) return std::nullopt;
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += size_of(dtype)) {
    const std::optional<std::string> element = row->print(dtype, &bytes[i]);
    if (!element) return std::nullopt;
    if (i > 0) text += ", ";
    text += *element;
  }
  return text;
}

bool parse_element(DType dtype, std::string_view text, std::vector<std::byte>& bytes) {
  const ElementRow* row = find_row(dtype);
  return row != nullptr && row->parse(dtype, text, bytes);
}

}  // namespace litz
