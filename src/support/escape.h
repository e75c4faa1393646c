// Strings and bytes in the text forms: C's escapes \n \t \r \\ \" \' and \xHH, and hexadecimal
// digits.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace litz {

// Appends the text with backslashes and everything outside printable ASCII escaped, and double
// quotes where it is to stand in some.
void append_escaped(std::string& out, std::string_view text, bool quoted);
// The escaped text in double quotes.
std::string quote(std::string_view text);

// Appends what an escaped text stands for; false where an escape is malformed.
bool append_unescaped(std::string& out, std::string_view escaped);
// text[position] is a double quote: appends the content of the string that begins there and returns
// the position behind its closing quote, or npos where it is not closed or malformed.
size_t unescape_quoted(std::string_view text, size_t position, std::string& out);

// Two lower-case digits a byte; nullopt where the text is something else.
std::string print_hex(std::span<const std::byte> bytes);
std::optional<std::vector<std::byte>> parse_hex(std::string_view text);

}  // namespace litz
