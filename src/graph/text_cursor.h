// A position in a text that is being parsed: tokens, and errors with line and column. Blanks, line
// ends and "// comments" before a token are skipped.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace litz {

class TextCursor {
 public:
  explicit TextCursor(std::string_view text) : text_(text) {}

  // Position of the next token.
  size_t skip_blanks();
  // The same, but stays on the line and skips no comment.
  size_t skip_blanks_on_line();
  bool at_end();

  // Whether the token comes next; accept() also goes past it.
  bool at(std::string_view token);
  bool accept(std::string_view token);
  void expect(std::string_view token);
  // Without skipping anything before it.
  bool at_here(std::string_view token) const;
  // Only where it stands on this line.
  bool accept_on_line(std::string_view token);
  // A whole word: no letter, digit, "_" or "." follows.
  bool accept_word(std::string_view word);
  // "name=": the name; empty, and nothing read, where none comes next.
  std::string_view accept_keyword();
  // A colon and a digit, with nothing before or between them.
  bool at_result_number() const;

  // Letters, digits, "_" and "."; fails with "expected <what>" where there are none.
  std::string_view word(const std::string& what);
  std::string_view digits();
  // The content of a quoted string.
  std::string quoted();
  // Up to, without, the token; fails where it does not come.
  std::string_view until(std::string_view token);
  // Up to, without, a comma or closing bracket outside inner brackets; trailing blanks cut off.
  std::string_view until_delimiter();
  // Up to the line end and past it; trailing blanks cut off.
  std::string_view rest_of_line();

  // Throw UserError "line 3, column 14: message"; fail() names the next token's place.
  [[noreturn]] void fail(const std::string& message);
  [[noreturn]] void fail_at(size_t position, const std::string& message) const;

 private:
  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace litz
