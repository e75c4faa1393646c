#include "symbolic/index.h"

#include <gtest/gtest.h>

#include "support/error.h"

namespace litz {
namespace {

class IndexTest : public testing::Test {
 protected:
  Index constant(int64_t value) { return context.constant(value); }
  Index variable(uint32_t number, int64_t extent) {
    return context.variable(number, constant(extent));
  }

  IndexContext context;
  Index s0 = context.size_symbol("s0");
  Index s1 = context.size_symbol("s1", {2, 100});
  Index x = context.size_symbol("x", {-10, 10});
  Index d0 = context.variable(0, s0);
  Index d1 = context.variable(1, s1);
};

TEST_F(IndexTest, EqualExpressionsAreOneNode) {
  EXPECT_EQ(s0 + s1, s1 + s0);
  EXPECT_EQ(s0 * s1 * d0, d0 * (s1 * s0));
  EXPECT_EQ((s0 + 1) * (s0 - 1), s0 * s0 - 1);
  EXPECT_EQ(s0 * 3 + s1 - s0 * 3, s1);
  EXPECT_EQ(s0 - s0, constant(0));
  EXPECT_EQ(s0 * 0, constant(0));
  EXPECT_EQ(-(-d0), d0);
  EXPECT_EQ(min(s0, min(s1, x)), min(min(x, s0), s1));
  EXPECT_EQ(context.size_symbol("s0", {5, 5}), s0) << "the range of the first call holds";
  EXPECT_EQ(context.variable(0, s0), d0);
  EXPECT_NE(context.variable(0, s1), d0);
  EXPECT_NE(context.variable(1, s0), d0);
  EXPECT_NE(context.indirect(0, s0), d0);
}

TEST_F(IndexTest, SumsListTermsAndConstant) {
  const Index sum = s0 * 4 + x * -1 + 7;
  ASSERT_EQ(sum.kind(), IndexKind::kSum);
  EXPECT_EQ(sum.sum_constant(), 7);
  ASSERT_EQ(sum.terms().size(), 2u);
  EXPECT_EQ(sum.terms()[0], (std::pair<int64_t, Index>(4, s0)));
  EXPECT_EQ(sum.terms()[1], (std::pair<int64_t, Index>(-1, x)));
  EXPECT_EQ(s0.sum_constant(), 0);
  EXPECT_EQ(constant(3).sum_constant(), 3);
  EXPECT_THROW(s0.terms(), InternalError);
  EXPECT_EQ((s0 + 1 - 1), s0);
}

TEST_F(IndexTest, ProductsDistributeOverSums) {
  const Index product = (s0 + 2) * (s1 * 3 - x);
  EXPECT_EQ(to_string(product), "3*s0*s1 - s0*x + 6*s1 - 2*x");
  EXPECT_EQ(product.kind(), IndexKind::kSum);
  EXPECT_EQ((s0 * s1).operands().size(), 2u);
}

TEST_F(IndexTest, SymbolsKnowWhatTheyAre) {
  EXPECT_EQ(s0.symbol_kind(), SymbolKind::kSize);
  EXPECT_EQ(s0.symbol_name(), "s0");
  EXPECT_EQ(d1.symbol_kind(), SymbolKind::kVariable);
  EXPECT_EQ(d1.symbol_name(), "d1");
  EXPECT_EQ(d1.symbol_number(), 1u);
  EXPECT_EQ(d1.extent(), s1);
  const Index loaded = context.indirect(3, constant(50));
  EXPECT_EQ(loaded.symbol_kind(), SymbolKind::kIndirect);
  EXPECT_EQ(loaded.symbol_name(), "i3");
  EXPECT_EQ(loaded.range(), (ValueRange{0, 49}));
  EXPECT_THROW(s0.extent(), InternalError);
  EXPECT_THROW((s0 + s1).symbol_name(), InternalError);
}

TEST_F(IndexTest, RangesFollowTheOperations) {
  EXPECT_EQ(s0.range(), (ValueRange{0, ValueRange::kMax}));
  EXPECT_EQ(d1.range(), (ValueRange{0, 99}));
  EXPECT_EQ((x * -3 + 1).range(), (ValueRange{-29, 31}));
  EXPECT_EQ((s0 * -1).range(), (ValueRange{ValueRange::kMin, 0}));
  EXPECT_EQ((s1 * x).range(), (ValueRange{-1000, 1000}));
  EXPECT_EQ(floor_div(x, 4).range(), (ValueRange{-3, 2}));
  EXPECT_EQ(floor_div(x, s1).range(), (ValueRange{-5, 5}));
  EXPECT_EQ(mod(x, 4).range(), (ValueRange{0, 3}));
  EXPECT_EQ(mod(s0, s1).range(), (ValueRange{0, 99}));
  EXPECT_EQ(min(s0, x).range(), (ValueRange{-10, 10}));
  EXPECT_EQ(max(s0, x).range(), (ValueRange{0, ValueRange::kMax}));
  EXPECT_EQ(variable(2, 0).range(), (ValueRange{0, 0}));
}

TEST_F(IndexTest, RangesDoNotOverflow) {
  const Index large = context.size_symbol("large", {0, int64_t{1} << 62});
  EXPECT_EQ((large * 4).range().hi, ValueRange::kMax);
  EXPECT_EQ((large * -4).range().lo, ValueRange::kMin);
  EXPECT_EQ((large * large).range(), (ValueRange{0, ValueRange::kMax}));
}

TEST_F(IndexTest, CoefficientsThatDoNotFitAreAUserError) {
  EXPECT_THROW(constant(INT64_MAX) + constant(1), UserError);
  EXPECT_THROW(constant(INT64_MIN) - 1, UserError);
  EXPECT_THROW(s0 * INT64_MAX * 2, UserError);
  EXPECT_THROW(s0 * INT64_MIN * -1, UserError);
}

TEST_F(IndexTest, MinAndMaxDropWhatAlwaysLoses) {
  EXPECT_EQ(min(s0, s0 + 1), s0);
  EXPECT_EQ(max(s0, s0 + 1), s0 + 1);
  EXPECT_EQ(max(s0, constant(0)), s0);
  EXPECT_EQ(max(s1, constant(2)), s1);
  EXPECT_EQ(min(d0, s0), d0);
  EXPECT_EQ(min(d0, s0 - 1), d0);
  EXPECT_EQ(min(constant(3), constant(5)), constant(3));
  EXPECT_EQ(min(min(s0, constant(3)), constant(5)), min(s0, constant(3)));
  EXPECT_EQ(min(x, constant(3)).kind(), IndexKind::kMin);
  EXPECT_EQ(max(min(x, s0), x), x);
}

TEST_F(IndexTest, DivisorsMustBePositive) {
  EXPECT_THROW(floor_div(s0, 0), InternalError);
  EXPECT_THROW(mod(s0, -3), InternalError);
  EXPECT_THROW(floor_div(s0, x), InternalError);
  EXPECT_EQ(floor_div(s0, s0), constant(1)) << "a size that divides is at least 1";
  EXPECT_EQ(ceil_div(s0, s0), constant(1));
  EXPECT_EQ(to_string(ceil_div(s0, constant(4))), "floor_div(s0 + 3, 4)");
}

TEST_F(IndexTest, DependsOn) {
  const Index expression = floor_div(d0 * s1, 3) + x;
  EXPECT_TRUE(expression.depends_on(d0));
  EXPECT_TRUE(expression.depends_on(x));
  EXPECT_FALSE(expression.depends_on(s0)) << "an extent is not part of the expression";
  EXPECT_FALSE(expression.depends_on(d1));
  EXPECT_EQ(free_symbols(expression), std::vector<Index>({s1, x, d0}));
  EXPECT_TRUE(free_symbols(constant(4)).empty());
}

TEST_F(IndexTest, DependsOnWithMoreSymbolsThanFilterBits) {
  std::vector<Index> many;
  Index sum = constant(0);
  for (int i = 0; i < 200; ++i) {
    many.push_back(context.size_symbol("n" + std::to_string(i)));
    if (i % 2 == 0) sum = sum + many.back();
  }
  for (int i = 0; i < 200; ++i) EXPECT_EQ(sum.depends_on(many[i]), i % 2 == 0) << i;
}

TEST_F(IndexTest, LinearIn) {
  const auto linear = linear_in(d0 * s1 * 2 + d1 * 3 + 5, d0);
  ASSERT_TRUE(linear.has_value());
  EXPECT_EQ(linear->stride, s1 * 2);
  EXPECT_EQ(linear->rest, d1 * 3 + 5);
  EXPECT_EQ(linear_in(d1, d0)->stride, constant(0));
  EXPECT_EQ(linear_in(d0, d0)->rest, constant(0));
  EXPECT_FALSE(linear_in(d0 * d0, d0).has_value());
  EXPECT_FALSE(linear_in(d1 + mod(d0, 2), d0).has_value());
  EXPECT_FALSE(linear_in(d0 * floor_div(d0, 2), d0).has_value());
}

TEST_F(IndexTest, SubstitutionIsSimultaneous) {
  const Index a = variable(0, 5), b = variable(1, 5);
  const std::pair<Index, Index> swap[] = {{a, b}, {b, a}};
  EXPECT_EQ(substitute(a * 2 + b, swap), b * 2 + a);
  Substitution substitution;
  EXPECT_TRUE(substitution.empty());
  substitution.set(s0, constant(12));
  EXPECT_EQ(substitution.apply(floor_div(s0 + s1, 4)), floor_div(s1, 4) + 3);
  substitution.set(s1, constant(4));
  EXPECT_EQ(substitution.apply(floor_div(s0 + s1, 4)), constant(4)) << "set() forgets results";
  EXPECT_EQ(substitution.apply(x), x);
  EXPECT_THROW(substitution.set(s0 + 1, s0), InternalError);
}

TEST_F(IndexTest, EvaluateRejectsDivisionByZero) {
  const Index quotient = floor_div(x, s0);
  EXPECT_EQ(evaluate(quotient, [&](Index at) { return at == x ? -7 : 2; }), -4);
  EXPECT_THROW(evaluate(quotient, [](Index) { return 0; }), InternalError);
}

TEST_F(IndexTest, DeepExpressionsNeedNoDeepStack) {
  constexpr int kDepth = 20000;
  const Index y = context.size_symbol("y", {-100, 100});
  Index deep = x;
  for (int i = 0; i < kDepth; ++i) deep = max(min(deep + 1, y), x - 3);
  EXPECT_TRUE(deep.depends_on(x));
  EXPECT_EQ(free_symbols(deep), std::vector<Index>({x, y}));
  const auto value_of = [&](Index at) { return at == x ? 2 : 5; };
  EXPECT_EQ(evaluate(deep, value_of), 5);
  const std::pair<Index, Index> replacement = {y, constant(-50)};
  EXPECT_EQ(evaluate(substitute(deep, {&replacement, 1}), value_of), -1);
  EXPECT_GT(to_string(deep).size(), static_cast<size_t>(kDepth));
}

}  // namespace
}  // namespace litz
