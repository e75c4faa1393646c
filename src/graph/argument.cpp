#include "graph/argument.h"

#include <bit>
#include <functional>
#include <span>

#include "graph/hash.h"

namespace litz {
namespace {

bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

uint64_t hash_of(std::monostate) { return 0; }
uint64_t hash_of(const Value& value) {
  return (static_cast<uint64_t>(value.node.value) << 32) | value.output;
}
uint64_t hash_of(int64_t value) { return static_cast<uint64_t>(value); }
uint64_t hash_of(double value) { return std::bit_cast<uint64_t>(value); }
uint64_t hash_of(bool value) { return value ? 1 : 0; }
uint64_t hash_of(const std::complex<double>& value) {
  return mix_hash(hash_of(value.real()), hash_of(value.imag()));
}
uint64_t hash_of(Index value) { return value.id(); }
uint64_t hash_of(const std::string& value) { return std::hash<std::string>()(value); }
uint64_t hash_of(DType value) { return static_cast<uint64_t>(value); }
uint64_t hash_of(const DeviceArg& value) { return hash_of(value.value); }
uint64_t hash_of(MemoryFormatArg value) { return static_cast<uint64_t>(value.value); }
uint64_t hash_of(LayoutArg value) { return static_cast<uint64_t>(value.value); }
uint64_t hash_of(const ArgumentList& list) {
  uint64_t result = list.size();
  for (const Argument& item : list) result = mix_hash(result, hash(item));
  return result;
}

struct NumberRow {
  int number;
  std::string_view name;
};
#define LITZ_NUMBER_ROW(number, name) {number, name},
constexpr NumberRow kMemoryFormats[] = {LITZ_MEMORY_FORMATS(LITZ_NUMBER_ROW)};
constexpr NumberRow kLayouts[] = {LITZ_LAYOUTS(LITZ_NUMBER_ROW)};
#undef LITZ_NUMBER_ROW

std::string_view name_of(std::span<const NumberRow> rows, int number) {
  for (const NumberRow& row : rows) {
    if (row.number == number) return row.name;
  }
  return "?";
}

std::optional<int> number_of(std::span<const NumberRow> rows, std::string_view name) {
  for (const NumberRow& row : rows) {
    if (row.name == name) return row.number;
  }
  return std::nullopt;
}

}  // namespace

std::string_view memory_format_name(MemoryFormatArg format) {
  return name_of(kMemoryFormats, format.value);
}

std::string_view layout_name(LayoutArg layout) { return name_of(kLayouts, layout.value); }

std::optional<MemoryFormatArg> parse_memory_format(std::string_view name) {
  const std::optional<int> number = number_of(kMemoryFormats, name);
  if (!number) return std::nullopt;
  return MemoryFormatArg{*number};
}

std::optional<LayoutArg> parse_layout(std::string_view name) {
  const std::optional<int> number = number_of(kLayouts, name);
  if (!number) return std::nullopt;
  return LayoutArg{*number};
}

bool operator==(const Argument& a, const Argument& b) {
  if (a.v.index() != b.v.index()) return false;
  if (a.holds<double>()) return same_bits(a.get<double>(), b.get<double>());
  if (a.holds<std::complex<double>>()) {
    const auto& x = a.get<std::complex<double>>();
    const auto& y = b.get<std::complex<double>>();
    return same_bits(x.real(), y.real()) && same_bits(x.imag(), y.imag());
  }
  return a.v == b.v;
}

uint64_t hash(const Argument& argument) {
  return std::visit([&](const auto& value) { return mix_hash(argument.v.index(), hash_of(value)); },
                    argument.v);
}

}  // namespace litz
