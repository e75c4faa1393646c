// Literals and index expressions as C++ text, the same whatever the process's locale is.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "codegen/cpp/prelude.h"
#include "symbolic/index.h"

namespace litz {

// The text with every `from` as `to`.
std::string replace_all(std::string text, std::string_view from, std::string_view to);

// A string literal; every byte outside printable ASCII is escaped.
std::string cpp_string_literal(std::string_view text);

// An int where the value is one, else of 64 bits, as the suffix says; in parentheses where it is
// negative.
std::string cpp_integer_literal(int64_t value, std::string_view int64_suffix = "LL");

// The shortest literal that has the value, a float (with its suffix) or a double.
std::string cpp_float_literal(double value, bool is_double);

// The integer type of so many bytes: 1, 2, 4 or 8.
DType integer_of_bytes(int64_t bytes, bool is_signed = true);

// An int64 expression. `symbol_text` names the symbols, the prelude has the functions.
std::string cpp_index(Index index, Prelude& prelude,
                      const std::function<std::string(Index symbol)>& symbol_text);

}  // namespace litz
