#include "support/indented_buffer.h"

namespace litz {
namespace {

// The lines, each with its end; empty if one is no whole statement.
std::vector<std::string_view> statements(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n') + 1;
    if (end < 2 || text[end - 2] != ';') return {};
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

}  // namespace

void IndentedBuffer::append_interleaved(const std::vector<IndentedBuffer>& texts) {
  std::vector<std::vector<std::string_view>> lines;
  bool equal = true;
  for (const IndentedBuffer& text : texts) {
    lines.push_back(statements(text.text()));
    equal = equal && !lines.back().empty() && lines.back().size() == lines.front().size();
  }
  if (!equal) {
    for (const IndentedBuffer& text : texts) append(text);
    return;
  }
  for (size_t i = 0; i < lines.front().size(); ++i) {
    for (const auto& text : lines) text_ += text[i];
  }
}

}  // namespace litz
