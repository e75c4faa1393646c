#include <gtest/gtest.h>

#include "symbolic/index.h"

namespace litz {
namespace {

class Prove : public testing::Test {
 protected:
  Index constant(int64_t value) { return context.constant(value); }

  IndexContext context;
  Index s0 = context.size_symbol("s0");
  Index s1 = context.size_symbol("s1");
  Index s2 = context.size_symbol("s2", {2, ValueRange::kMax});
  Index x = context.size_symbol("x", {-10, 10});
  Index d0 = context.variable(0, s0);
  Index d1 = context.variable(1, s1);
  Index d2 = context.variable(2, s2);
};

TEST_F(Prove, Nonnegative) {
  EXPECT_TRUE(prove_nonnegative(s0 * s1 + d0));
  EXPECT_TRUE(prove_nonnegative(s0 - d0 - 1));
  EXPECT_TRUE(prove_nonnegative(s0 * s2 - s0 * 2));
  EXPECT_TRUE(prove_nonnegative(s1 * d0 - d0 * d1));
  EXPECT_TRUE(prove_nonnegative(max(x, s0 - d0)));
  EXPECT_TRUE(prove_nonnegative(s0 - min(s0, x)));
  EXPECT_TRUE(prove_nonnegative(max(s0, x) - s0));
  EXPECT_TRUE(prove_nonnegative(s0 - mod(x, s0)));
  EXPECT_FALSE(prove_nonnegative(x));
  EXPECT_FALSE(prove_nonnegative(s0 - 1)) << "a size may be 0 where it does not divide";
  EXPECT_FALSE(prove_nonnegative(s0 - d1));
  EXPECT_FALSE(prove_nonnegative(s0 - s1));
  EXPECT_FALSE(prove_nonnegative(min(s0, x)));
}

TEST_F(Prove, Less) {
  EXPECT_TRUE(prove_less(d0, s0));
  EXPECT_TRUE(prove_less(d0 * s1 + d1, s0 * s1));
  EXPECT_TRUE(prove_less(d0 * s1 * s2 + d1 * s2 + d2, s0 * s1 * s2));
  EXPECT_TRUE(prove_less((s0 - 1 - d0) * s1 + d1, s0 * s1));
  EXPECT_TRUE(prove_less(floor_div(context.variable(0, s0 * s1), s1), s0));
  EXPECT_TRUE(prove_less(mod(d0, s1), s1));
  EXPECT_TRUE(prove_less_equal(s0, s0));
  EXPECT_TRUE(prove_less(d2, s2 + s0));
  EXPECT_FALSE(prove_less(s0, s0));
  EXPECT_FALSE(prove_less(d0 + 1, s0));
  EXPECT_FALSE(prove_less(d0 * s1 + d1 + 1, s0 * s1));
  EXPECT_FALSE(prove_less(d0, s1));
}

// Windows of a pooling with a symbolic input size stay inside the input.
TEST_F(Prove, Windows) {
  const Index outputs = floor_div(s0 - 3, 2) + 1;
  const Index window = context.variable(0, outputs) * 2 + context.variable(1, constant(3));
  EXPECT_TRUE(prove_less(window, s0));
  EXPECT_FALSE(prove_less(window + 1, s0));
  EXPECT_TRUE(prove_less(floor_div(d0, 4), ceil_div(s0, constant(4))));
  EXPECT_TRUE(prove_less_equal(floor_div(s0, 2), s0));
  EXPECT_TRUE(prove_less_equal(floor_div(s0, 2) + floor_div(s0 + 1, 2), s0));
  EXPECT_TRUE(prove_less_equal(s0, floor_div(s0 + 3, 4) * 4));
  EXPECT_FALSE(prove_less(s0, floor_div(s0 + 3, 4) * 4));
}

TEST_F(Prove, Divisible) {
  EXPECT_TRUE(prove_divisible(s0 * s1 * 6 + s1 * 4, s1 * 2));
  EXPECT_EQ(*exact_div(s0 * s1 * 6 + s1 * 4, s1 * 2), s0 * 3 + 2);
  EXPECT_EQ(*exact_div((s0 + 1) * (s1 + s2), s0 + 1), s1 + s2);
  EXPECT_EQ(*exact_div((s0 + 1) * (s1 + s2), s1 + s2), s0 + 1);
  EXPECT_EQ(*exact_div(s0 * 4 + 8, constant(4)), s0 + 2);
  EXPECT_EQ(*exact_div(constant(0), s0), constant(0));
  EXPECT_EQ(*exact_div(constant(-12), constant(4)), constant(-3));
  EXPECT_EQ(*exact_div(floor_div(s0, 2) * s1, floor_div(s0, 2)), s1);
  EXPECT_FALSE(prove_divisible(s0 * 4 + 3, constant(4)));
  EXPECT_FALSE(prove_divisible(s0, s1));
  EXPECT_FALSE(prove_divisible(s0 * s1 + 1, s1));
  EXPECT_FALSE(prove_divisible(s0 * s1, s0 + 1));
  EXPECT_FALSE(prove_divisible(s0, constant(0)));
}

TEST_F(Prove, BoundsBeyondInt64ProveNothing) {
  const Index large = context.size_symbol("large", {0, int64_t{1} << 62});
  const Index d3 = context.variable(3, large);
  EXPECT_FALSE(prove_less(d3 * large * 4, s0));
  EXPECT_TRUE(prove_less(d3, large));
}

}  // namespace
}  // namespace litz
