#include "ir/program_cursor.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "support/error.h"
#include "support/escape.h"

namespace litz {
namespace {

bool is_word_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
}

}  // namespace

void ProgramCursor::skip_space() {
  while (at_ < text_.size()) {
    if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
      ++at_;
    } else if (text_[at_] == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

size_t ProgramCursor::position() {
  skip_space();
  return at_;
}

void ProgramCursor::fail_at(size_t position, const std::string& message) const {
  size_t line = 1;
  size_t column = 1;
  for (size_t i = 0; i < position && i < text_.size(); ++i) {
    if (text_[i] == '\n') {
      ++line;
      column = 1;
    } else {
      ++column;
    }
  }
  throw UserError(std::to_string(line) + ":" + std::to_string(column) + ": " + message);
}

bool ProgramCursor::at_end() { return position() == text_.size(); }

char ProgramCursor::peek() { return at_end() ? '\0' : text_[at_]; }

bool ProgramCursor::accept(char c) {
  if (peek() != c) return false;
  ++at_;
  return true;
}

void ProgramCursor::expect(char c) {
  if (!accept(c)) fail(std::string("expected '") + c + "'");
}

bool ProgramCursor::accept_word(std::string_view word) {
  const size_t start = position();
  if (text_.substr(start, word.size()) != word) return false;
  const size_t end = start + word.size();
  if (end < text_.size() && is_word_char(text_[end])) return false;
  at_ = end;
  return true;
}

void ProgramCursor::expect_word(std::string_view word) {
  if (!accept_word(word)) fail("expected '" + std::string(word) + "'");
}

std::string ProgramCursor::word() {
  const size_t start = position();
  while (at_ < text_.size() && is_word_char(text_[at_])) ++at_;
  if (at_ == start) fail_at(start, "expected a name");
  return std::string(text_.substr(start, at_ - start));
}

std::string ProgramCursor::name() { return peek() == '"' ? quoted() : word(); }

std::string ProgramCursor::key() {
  const size_t start = position();
  name();
  // "x#3" is buffer 3; a comment has a space before it.
  if (at_ + 1 < text_.size() && text_[at_] == '#' &&
      std::isdigit(static_cast<unsigned char>(text_[at_ + 1]))) {
    ++at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  return std::string(text_.substr(start, at_ - start));
}

std::string_view ProgramCursor::raw_quoted() {
  const size_t start = position();
  if (peek() != '"') fail("expected a quoted string");
  for (++at_; at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n'; ++at_) {
    if (text_[at_] == '\\') ++at_;
  }
  if (at_ >= text_.size() || text_[at_] != '"') fail_at(start, "string without an end");
  ++at_;
  return text_.substr(start + 1, at_ - start - 2);
}

std::string ProgramCursor::quoted() {
  const size_t start = position();
  return unescaped(start, raw_quoted());
}

std::string ProgramCursor::unescaped(size_t start, std::string_view escaped) const {
  std::string text;
  if (!append_unescaped(text, escaped)) fail_at(start, "malformed escape sequence");
  return text;
}

template <class T>
T ProgramCursor::read(const char* expected) {
  const size_t start = position();
  T value = 0;
  const auto [end, error] =
      std::from_chars(text_.data() + start, text_.data() + text_.size(), value);
  if (error != std::errc()) fail_at(start, expected);
  at_ = static_cast<size_t>(end - text_.data());
  return value;
}

int64_t ProgramCursor::integer() { return read<int64_t>("expected an integer of 64 bits"); }
double ProgramCursor::number() { return read<double>("expected a number"); }
float ProgramCursor::float_number() { return read<float>("expected a number of float32"); }

std::string_view ProgramCursor::index_text(size_t* start) {
  *start = position();
  int depth = 0;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '\n') break;
    if (depth == 0 && std::string_view(",)]}=#<").find(c) != std::string_view::npos) break;
    if (c == '(') ++depth;
    if (c == ')') --depth;
  }
  std::string_view found = text_.substr(*start, at_ - *start);
  while (!found.empty() && std::isspace(static_cast<unsigned char>(found.back()))) {
    found.remove_suffix(1);
  }
  if (found.empty()) fail_at(*start, "expected an index expression");
  return found;
}

std::string ProgramCursor::line_comment() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  if (at_ >= text_.size() || text_[at_] != '#') return {};
  const size_t end = std::min(text_.find('\n', at_), text_.size());
  std::string_view comment = text_.substr(at_ + 1, end - at_ - 1);
  if (comment.starts_with(' ')) comment.remove_prefix(1);
  const size_t start = at_;
  at_ = end;
  return unescaped(start, comment);
}

}  // namespace litz
