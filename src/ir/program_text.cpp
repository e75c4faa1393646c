#include "ir/program_text.h"

#include <cctype>

namespace litz {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return 0;
}

}  // namespace

bool is_plain_name(std::string_view name) {
  if (name.empty() || !is_name_start(name[0])) return false;
  for (char c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') return false;
  }
  return true;
}

std::string escape(std::string_view text, std::string_view special) {
  std::string escaped;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      escaped += "\\n";
    } else if (c == '\\' || special.find(c) != std::string_view::npos) {
      escaped += '\\';
      escaped += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      escaped += "\\x";
      escaped += kHexDigits[byte >> 4];
      escaped += kHexDigits[byte & 15];
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      plain += text[i];
      continue;
    }
    ++i;
    if (text[i] == 'n') {
      plain += '\n';
    } else if (text[i] == 'x' && i + 2 < text.size()) {
      plain += static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::string quoted_text(std::string_view text) { return "\"" + escape(text, "\"") + "\""; }

std::string to_hex(const std::vector<std::byte>& bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (std::byte byte : bytes) {
    text += kHexDigits[static_cast<unsigned>(byte) >> 4];
    text += kHexDigits[static_cast<unsigned>(byte) & 15];
  }
  return text;
}

}  // namespace litz
