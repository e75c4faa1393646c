#include "support/version.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "litz/version.h"

namespace litz {
namespace {

TEST(Version, HasThreeParts) {
  int major = -1;
  int minor = -1;
  int patch = -1;
  ASSERT_EQ(std::sscanf(litz_version(), "%d.%d.%d", &major, &minor, &patch), 3);
  EXPECT_EQ(fmt::format("{}.{}.{}", major, minor, patch), version());
}

}  // namespace
}  // namespace litz
