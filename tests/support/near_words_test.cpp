#include "support/near_words.h"

#include <gtest/gtest.h>

namespace litz {
namespace {

TEST(NearWords, Distance) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("cache", "cache"), 0u);
  EXPECT_EQ(edit_distance("cache", "cahce"), 1u) << "neighbours exchanged";
  EXPECT_EQ(edit_distance("cache", "cach"), 1u);
  EXPECT_EQ(edit_distance("cach", "cache"), 1u);
  EXPECT_EQ(edit_distance("cache", "cathe"), 1u);
  EXPECT_EQ(edit_distance("fuse", "trace"), 4u);
}

TEST(NearWords, NearestFirstAndNoOthers) {
  constexpr std::string_view kKnown[] = {"verbose", "verity", "verify", "cache"};
  EXPECT_EQ(near_words("verfiy", kKnown), (std::vector<std::string_view>{"verify", "verity"}));
  EXPECT_TRUE(near_words("unlike", kKnown).empty());
  constexpr std::string_view kMany[] = {"aaaa", "aaab", "aaac", "aaad"};
  EXPECT_EQ(near_words("aaax", kMany).size(), 3u);
}

}  // namespace
}  // namespace litz
