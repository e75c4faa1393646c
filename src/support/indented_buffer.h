// Text under construction, line by line, with indentation.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace litz {

class IndentedBuffer {
 public:
  explicit IndentedBuffer(int level = 0) : level_(level) {}

  void line(std::string_view text) {
    if (!text.empty()) text_.append(static_cast<size_t>(level_) * 2, ' ');
    text_.append(text);
    text_.push_back('\n');
  }
  void open(std::string_view text) {
    line(text);
    ++level_;
  }
  void close(std::string_view text = "}") {
    --level_;
    line(text);
  }
  // Text of another buffer, which was made with this one's level.
  void append(const IndentedBuffer& other) { text_ += other.text_; }

  // The first lines of all texts, which have the level of this one, then the second lines, ...; one
  // text behind the other where they are not statements of a line each, equally many.
  void append_interleaved(const std::vector<IndentedBuffer>& texts);

  int level() const { return level_; }
  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int level_;
};

}  // namespace litz
