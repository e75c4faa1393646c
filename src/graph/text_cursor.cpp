#include "graph/text_cursor.h"

#include <algorithm>
#include <cctype>

#include "support/error.h"
#include "support/escape.h"

namespace litz {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

std::string_view trim_end(std::string_view text) {
  while (!text.empty() && (is_blank(text.back()) || text.back() == '\n')) text.remove_suffix(1);
  return text;
}

}  // namespace

size_t TextCursor::skip_blanks() {
  while (position_ < text_.size()) {
    if (is_blank(text_[position_]) || text_[position_] == '\n') {
      ++position_;
    } else if (at_here("//")) {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else {
      break;
    }
  }
  return position_;
}

size_t TextCursor::skip_blanks_on_line() {
  while (position_ < text_.size() && is_blank(text_[position_])) ++position_;
  return position_;
}

bool TextCursor::at_end() { return skip_blanks() == text_.size(); }

bool TextCursor::at(std::string_view token) {
  skip_blanks();
  return at_here(token);
}

bool TextCursor::accept(std::string_view token) {
  if (!at(token)) return false;
  position_ += token.size();
  return true;
}

void TextCursor::expect(std::string_view token) {
  if (!accept(token)) fail("expected '" + std::string(token) + "'");
}

bool TextCursor::at_here(std::string_view token) const {
  return text_.substr(position_).starts_with(token);
}

bool TextCursor::accept_on_line(std::string_view token) {
  skip_blanks_on_line();
  if (!at_here(token)) return false;
  position_ += token.size();
  return true;
}

bool TextCursor::accept_word(std::string_view word) {
  if (!at(word)) return false;
  const size_t end = position_ + word.size();
  if (end < text_.size() && is_word(text_[end])) return false;
  position_ = end;
  return true;
}

std::string_view TextCursor::accept_keyword() {
  const size_t start = skip_blanks();
  size_t end = start;
  while (end < text_.size() && is_word(text_[end])) ++end;
  if (end == start || end == text_.size() || text_[end] != '=') return {};
  position_ = end + 1;
  return text_.substr(start, end - start);
}

bool TextCursor::at_result_number() const {
  return at_here(":") && position_ + 1 < text_.size() && is_digit(text_[position_ + 1]);
}

std::string_view TextCursor::word(const std::string& what) {
  const size_t start = skip_blanks();
  while (position_ < text_.size() && is_word(text_[position_])) ++position_;
  if (position_ == start) fail("expected " + what);
  return text_.substr(start, position_ - start);
}

std::string_view TextCursor::digits() {
  const size_t start = position_;
  while (position_ < text_.size() && is_digit(text_[position_])) ++position_;
  return text_.substr(start, position_ - start);
}

std::string TextCursor::quoted() {
  const size_t start = skip_blanks();
  std::string content;
  const size_t end = at_here("\"") ? unescape_quoted(text_, start, content) : std::string::npos;
  if (end == std::string::npos) fail("expected a quoted string");
  position_ = end;
  return content;
}

std::string_view TextCursor::until(std::string_view token) {
  const size_t start = skip_blanks();
  const size_t end = text_.find(token, start);
  if (end == std::string_view::npos) fail("expected '" + std::string(token) + "' further on");
  position_ = end;
  return trim_end(text_.substr(start, end - start));
}

std::string_view TextCursor::until_delimiter() {
  const size_t start = skip_blanks();
  int depth = 0;
  for (; position_ < text_.size(); ++position_) {
    const char c = text_[position_];
    if (c == '(' || c == '[' || c == '{') ++depth;
    const bool closing = c == ')' || c == ']' || c == '}';
    if (depth == 0 && (closing || c == ',')) break;
    if (closing) --depth;
  }
  const std::string_view found = trim_end(text_.substr(start, position_ - start));
  if (found.empty()) fail_at(start, "expected an expression");
  return found;
}

std::string_view TextCursor::rest_of_line() {
  const size_t start = position_;
  const size_t end = std::min(text_.find('\n', start), text_.size());
  position_ = std::min(end + 1, text_.size());
  return trim_end(text_.substr(start, end - start));
}

void TextCursor::fail(const std::string& message) { fail_at(skip_blanks(), message); }

void TextCursor::fail_at(size_t position, const std::string& message) const {
  const std::string_view before = text_.substr(0, position);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 == 0
  throw UserError("line " + std::to_string(line) + ", column " +
                  std::to_string(position - line_start + 1) + ": " + message);
}

}  // namespace litz
