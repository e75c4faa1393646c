#include "support/escape.h"

#include <gtest/gtest.h>

namespace litz {
namespace {

TEST(Escape, EveryByteReadsBack) {
  std::string text;
  for (int c = 0; c < 256; ++c) text += static_cast<char>(c);
  std::string again;
  const std::string quoted = quote(text);
  EXPECT_EQ(unescape_quoted(quoted, 0, again), quoted.size());
  EXPECT_EQ(again, text);
  for (const std::string_view bad : {"\\", "\\q", "\\x1", "\\xg0"}) {
    std::string out;
    EXPECT_FALSE(append_unescaped(out, bad)) << bad;
  }
}

TEST(Escape, QuotesAreEscapedInQuotedTextOnly) {
  std::string bare;
  append_escaped(bare, "a \"b\" \\", false);
  EXPECT_EQ(bare, "a \"b\" \\\\");
  EXPECT_EQ(quote("a \"b\""), "\"a \\\"b\\\"\"");
}

TEST(Escape, HexReadsBack) {
  const std::vector<std::byte> bytes = {std::byte{0}, std::byte{0x7f}, std::byte{0xff}};
  EXPECT_EQ(print_hex(bytes), "007fff");
  EXPECT_EQ(parse_hex("007fff"), bytes);
  EXPECT_FALSE(parse_hex("0").has_value());
  EXPECT_FALSE(parse_hex("0g").has_value());
}

}  // namespace
}  // namespace litz
