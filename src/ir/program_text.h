// The lexical rules that the printer and the parser of programs share.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace litz {

// True for names that stand without quotes: a letter or "_", then letters, digits, "_" and ".".
bool is_plain_name(std::string_view name);

// Backslash escapes for backslashes, newlines, other control characters and the characters of
// `special`; and the inverse. An unknown escape stands for its second character.
std::string escape(std::string_view text, std::string_view special);
std::string unescape(std::string_view text);

// Escaped, in double quotes.
std::string quoted_text(std::string_view text);

std::string to_hex(const std::vector<std::byte>& bytes);

}  // namespace litz
