// Numbers in the text forms, exact in both directions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/dtype.h"

namespace litz {

// The shortest decimal that reads back to the same bits, always with a "." or an "e"; "inf",
// "-inf", "nan" for the quiet NaN with no payload and "nan(0x7ff8000000000001)" for any other.
std::string print_double(double value);
std::optional<double> parse_double(std::string_view text);

// The elements as numbers separated by ", "; nullopt where the dtype has no such form or a NaN
// would lose bits.
std::optional<std::string> print_elements(DType dtype, std::span<const std::byte> bytes);
// Appends one element as print_elements writes it; false where the text is no element of the dtype.
bool parse_element(DType dtype, std::string_view text, std::vector<std::byte>& bytes);

}  // namespace litz
