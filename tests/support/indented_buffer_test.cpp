#include "support/indented_buffer.h"

#include <gtest/gtest.h>

namespace litz {
namespace {

IndentedBuffer with_lines(std::initializer_list<std::string_view> lines) {
  IndentedBuffer buffer(1);
  for (const std::string_view line : lines) buffer.line(line);
  return buffer;
}

TEST(IndentedBuffer, StatementsOfTextsTakeTurns) {
  IndentedBuffer buffer(1);
  buffer.append_interleaved({with_lines({"a = 1;", "b = a;"}), with_lines({"c = 1;", "d = c;"})});
  EXPECT_EQ(buffer.text(), "  a = 1;\n  c = 1;\n  b = a;\n  d = c;\n");
}

TEST(IndentedBuffer, TextsWithBlocksFollowEachOther) {
  const IndentedBuffer block = with_lines({"if (a) {", "  b = a;", "}"});
  IndentedBuffer buffer(1);
  buffer.append_interleaved({block, block});
  EXPECT_EQ(buffer.text(), block.text() + block.text());
}

TEST(IndentedBuffer, TextsOfUnequalLengthFollowEachOther) {
  IndentedBuffer buffer(1);
  buffer.append_interleaved({with_lines({"a = 1;"}), with_lines({"b = 1;", "c = b;"})});
  EXPECT_EQ(buffer.text(), "  a = 1;\n  b = 1;\n  c = b;\n");
}

}  // namespace
}  // namespace litz
