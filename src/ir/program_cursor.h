// A position in the text of a program, and the reading of its words. Every function skips spaces
// and comments first and throws UserError with the position where the text does not continue as
// asked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace litz {

class ProgramCursor {
 public:
  explicit ProgramCursor(std::string_view text) : text_(text) {}

  size_t position();  // of the next word
  [[noreturn]] void fail(const std::string& message) { fail_at(position(), message); }
  [[noreturn]] void fail_at(size_t position, const std::string& message) const;

  bool at_end();
  char peek();  // '\0' at the end
  bool accept(char c);
  void expect(char c);
  bool accept_word(std::string_view word);  // a whole word
  void expect_word(std::string_view word);

  std::string word();             // letters, digits, "_" and "."
  std::string name();             // a word or a quoted string
  std::string key();              // a name as it is written, with "#number" where it has one
  std::string quoted();           // unescaped
  std::string_view raw_quoted();  // between the quotes, as written
  // What the escaped text that begins at `start` stands for.
  std::string unescaped(size_t start, std::string_view escaped) const;
  int64_t integer();
  double number();
  float float_number();  // rounded once, where number() would make the caller round again

  // The text up to the next of `, ) ] } = #` or line end that is outside parentheses, for
  // parse_index.
  std::string_view index_text(size_t* start);

  // The comment on the rest of this line, empty where there is none.
  std::string line_comment();

 private:
  void skip_space();
  template <class T>
  T read(const char* expected);

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace litz
