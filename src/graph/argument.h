// Values of a graph and the arguments of its calls.
//
// What a schema type admits, and in which alternative it is stored, is the table of
// graph/bind_arguments.h; in short: an integer that is known is an int64_t, an Index is never a
// constant, a float parameter holds a double, and a list is an ArgumentList.
#pragma once

#include <compare>
#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "support/dtype.h"
#include "support/ids.h"
#include "symbolic/index.h"

namespace litz {

struct NodeTag;
using NodeId = Id<NodeTag>;

// Result number `output` of a node.
struct Value {
  NodeId node;
  uint32_t output = 0;
  bool valid() const { return node.valid(); }
  friend auto operator<=>(const Value&, const Value&) = default;
};

// A device as torch prints it: "cpu", "cuda:0".
struct DeviceArg {
  std::string value;
  friend bool operator==(const DeviceArg&, const DeviceArg&) = default;
};

// torch's number of a memory format or a layout.
struct MemoryFormatArg {
  int value = 0;
  friend bool operator==(const MemoryFormatArg&, const MemoryFormatArg&) = default;
};
struct LayoutArg {
  int value = 0;
  friend bool operator==(const LayoutArg&, const LayoutArg&) = default;
};

// X(torch's number, spelling)
#define LITZ_MEMORY_FORMATS(X) \
  X(0, "contiguous")           \
  X(1, "preserve")             \
  X(2, "channels_last")        \
  X(3, "channels_last_3d")
#define LITZ_LAYOUTS(X) \
  X(0, "strided")       \
  X(1, "sparse")        \
  X(2, "sparse_csr")    \
  X(3, "mkldnn")        \
  X(4, "sparse_csc")    \
  X(5, "sparse_bsr")    \
  X(6, "sparse_bsc")    \
  X(7, "jagged")

// "?" for a number that is in no row.
std::string_view memory_format_name(MemoryFormatArg format);
std::string_view layout_name(LayoutArg layout);
std::optional<MemoryFormatArg> parse_memory_format(std::string_view name);
std::optional<LayoutArg> parse_layout(std::string_view name);

struct Argument;
using ArgumentList = std::vector<Argument>;

// One argument of a call. An Index is a symbolic integer, a monostate is None.
struct Argument {
  using Variant =
      std::variant<std::monostate, Value, int64_t, double, bool, std::complex<double>, Index,
                   std::string, DType, DeviceArg, MemoryFormatArg, LayoutArg, ArgumentList>;
  Variant v;

  Argument() = default;
  template <class T>
    requires(!std::is_same_v<std::remove_cvref_t<T>, Argument>)
  Argument(T value) : v(std::move(value)) {}  // NOLINT: implicit on purpose

  template <class T>
  bool holds() const {
    return std::holds_alternative<T>(v);
  }
  // Requires holds<T>().
  template <class T>
  const T& get() const {
    return std::get<T>(v);
  }

  bool is_none() const { return holds<std::monostate>(); }
  bool is_value() const { return holds<Value>(); }
  bool is_list() const { return holds<ArgumentList>(); }
};

// Same alternative and same content. Floating-point numbers are compared by their bits, so 0.0 and
// -0.0 differ and a NaN equals itself.
bool operator==(const Argument& a, const Argument& b);
uint64_t hash(const Argument& argument);

// Calls visit(Value) for every Value in the argument, lists included, in order.
template <class Visitor>
void for_each_value(const Argument& argument, Visitor&& visit) {
  if (const Value* value = std::get_if<Value>(&argument.v)) {
    visit(*value);
  } else if (const ArgumentList* list = std::get_if<ArgumentList>(&argument.v)) {
    for (const Argument& item : *list) for_each_value(item, visit);
  }
}

// Calls visit(Index) for every symbolic integer in the argument, lists included, in order.
template <class Visitor>
void for_each_index(const Argument& argument, Visitor&& visit) {
  if (const Index* index = std::get_if<Index>(&argument.v)) {
    visit(*index);
  } else if (const ArgumentList* list = std::get_if<ArgumentList>(&argument.v)) {
    for (const Argument& item : *list) for_each_index(item, visit);
  }
}

}  // namespace litz
