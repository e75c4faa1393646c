#include "support/escape.h"

namespace litz {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

struct EscapeRow {
  char letter;
  char meaning;
};
constexpr EscapeRow kEscapes[] = {{'n', '\n'}, {'t', '\t'},  {'r', '\r'},
                                  {'"', '"'},  {'\\', '\\'}, {'\'', '\''}};

}  // namespace

void append_escaped(std::string& out, std::string_view text, bool quoted) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\' || (c == '"' && quoted)) {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte >= 0x7f) {
      out += "\\x";
      out += kHexDigits[byte >> 4];
      out += kHexDigits[byte & 15];
    } else {
      out += c;
    }
  }
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  append_escaped(out, text, true);
  out += '"';
  return out;
}

bool append_unescaped(std::string& out, std::string_view escaped) {
  for (size_t i = 0; i < escaped.size(); ++i) {
    if (escaped[i] != '\\') {
      out += escaped[i];
      continue;
    }
    if (++i == escaped.size()) return false;
    if (escaped[i] == 'x') {
      if (i + 2 >= escaped.size()) return false;
      const size_t high = kHexDigits.find(escaped[i + 1]);
      const size_t low = kHexDigits.find(escaped[i + 2]);
      if (high == std::string_view::npos || low == std::string_view::npos) return false;
      out += static_cast<char>(high * 16 + low);
      i += 2;
      continue;
    }
    bool known = false;
    for (const EscapeRow& row : kEscapes) {
      if (row.letter != escaped[i]) continue;
      out += row.meaning;
      known = true;
    }
    if (!known) return false;
  }
  return true;
}

size_t unescape_quoted(std::string_view text, size_t position, std::string& out) {
  size_t end = position + 1;
  while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
  if (end >= text.size()) return std::string_view::npos;
  if (!append_unescaped(out, text.substr(position + 1, end - position - 1)))
    return std::string_view::npos;
  return end + 1;
}

std::string print_hex(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte byte : bytes) {
    text += kHexDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kHexDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

std::optional<std::vector<std::byte>> parse_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    const size_t high = kHexDigits.find(text[i]);
    const size_t low = kHexDigits.find(text[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    bytes.push_back(static_cast<std::byte>(high * 16 + low));
  }
  return bytes;
}

}  // namespace litz
