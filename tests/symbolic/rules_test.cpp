// Every rule of docs/math/index-algebra.md over negative, zero and positive operands.
#include <gtest/gtest.h>

#include <map>

#include "samples.h"
#include "symbolic/divide.h"
#include "symbolic/sum.h"

namespace litz {
namespace {

constexpr int kExpressions = 5000;
constexpr int kLeastUses = 20;

using Reference = int64_t (*)(int64_t, int64_t);

// Applies each rule by itself to random operands and compares the values.
void check_division_rules(std::span<const DivisionRule> rules, Reference reference) {
  Samples samples(7);
  std::map<std::string_view, int> uses;
  for (int i = 0; i < kExpressions; ++i) {
    const Sample a = samples.expression(static_cast<int>(samples.pick(1, 3)));
    const Sample b = samples.divisor();
    std::vector<int64_t> expected;
    for (size_t k = 0; k < a.values.size(); ++k) {
      expected.push_back(reference(a.values[k], b.values[k]));
    }
    for (const DivisionRule& rule : rules) {
      const Index result = rule.apply(a.index, b.index);
      if (!result.valid()) continue;
      ++uses[rule.equation];
      samples.check(result, expected,
                    std::string(rule.equation) + ": a = " + to_string(a.index) +
                        ", b = " + to_string(b.index));
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  for (const DivisionRule& rule : rules)
    EXPECT_GE(uses[rule.equation], kLeastUses) << rule.equation;
}

TEST(Rules, FloorDiv) { check_division_rules(floor_div_rules(), floor_div_int); }
TEST(Rules, Mod) { check_division_rules(mod_rules(), mod_int); }

// Sums that have the shapes which the rules look for, more or less: the parts of a number to a
// mixed radix, some scaled, some left out, with other terms around them.
TEST(Rules, Sum) {
  Samples samples(11);
  std::map<std::string_view, int> uses;
  for (int i = 0; i < kExpressions; ++i) {
    const Sample a = samples.expression(static_cast<int>(samples.pick(0, 2)));
    const Sample n = samples.divisor();
    const Sample m = samples.divisor();
    const Sample k =
        samples.pick(0, 1) == 0 ? samples.constant(samples.pick(-2, 3)) : samples.leaf();
    const Sample k_n = samples.multiply(k, n);
    std::vector<Sample> parts;
    if (samples.pick(0, 2) > 0) parts.push_back(samples.multiply(k, samples.remainder(a, n)));
    if (samples.pick(0, 2) > 0) parts.push_back(samples.multiply(k_n, samples.divide(a, n)));
    if (samples.pick(0, 2) > 0) {
      parts.push_back(samples.multiply(k_n, samples.remainder(samples.divide(a, n), m)));
    }
    if (samples.pick(0, 1) > 0) {
      const Sample quotient = samples.multiply(k_n, samples.divide(a, n));
      parts.push_back(samples.multiply(quotient, samples.constant(-1)));
      parts.push_back(samples.multiply(k, a));
    }
    parts.push_back(samples.leaf());

    std::vector<int64_t> expected(samples.assignments.size(), 0);
    SumBuilder whole(samples.context);
    for (const Sample& part : parts) {
      whole.add(part.index, 1);
      for (size_t j = 0; j < expected.size(); ++j) expected[j] += part.values[j];
    }
    whole.merge();
    for (const SumRule& rule : sum_rules()) {
      SumBuilder sum = whole;
      if (!rule.apply(sum)) continue;
      ++uses[rule.equation];
      samples.check(sum.intern(), expected,
                    std::string(rule.equation) + ": " + to_string(whole.intern()));
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  for (const SumRule& rule : sum_rules())
    EXPECT_GE(uses[rule.equation], kLeastUses) << rule.equation;
}

// Everything at once: whatever the constructors simplify, the values stay, and the range holds.
TEST(Rules, RandomExpressionsKeepTheirValues) {
  Samples samples(3);
  for (int i = 0; i < kExpressions; ++i) {
    const Sample sample = samples.expression(static_cast<int>(samples.pick(1, 5)));
    samples.check(sample.index, sample.values, "random expression");
    if (testing::Test::HasFatalFailure()) return;
    const ValueRange range = sample.index.range();
    for (int64_t value : sample.values) {
      ASSERT_LE(range.lo, value) << to_string(sample.index);
      ASSERT_GE(range.hi, value) << to_string(sample.index);
    }
  }
}

// One dividend, all small divisors and values: floor_div and mod agree with their definition.
TEST(Rules, SmallDivisionsExhaustively) {
  IndexContext context;
  const Index x = context.size_symbol("x", {-20, 20});
  const auto value = [&](Index a, int64_t at) { return evaluate(a, [&](Index) { return at; }); };
  for (int64_t coefficient = -6; coefficient <= 6; ++coefficient) {
    for (int64_t offset = -6; offset <= 6; ++offset) {
      for (int64_t b = 1; b <= 8; ++b) {
        const Index a = x * coefficient + offset;
        const Index quotient = floor_div(a, b);
        const Index remainder = mod(a, b);
        EXPECT_EQ(quotient * b + remainder, a) << to_string(a) << " by " << b;
        for (int64_t c = 1; c <= 6; ++c) {
          const Index nested = floor_div(quotient, c);
          EXPECT_EQ(nested, floor_div(a, b * c)) << to_string(a) << " by " << b << " and " << c;
          const Index digit = mod(quotient, c);
          for (int64_t at = -20; at <= 20; ++at) {
            const int64_t n = coefficient * at + offset;
            ASSERT_EQ(value(quotient, at), floor_div_int(n, b)) << to_string(quotient);
            ASSERT_EQ(value(remainder, at), mod_int(n, b)) << to_string(remainder);
            ASSERT_EQ(value(nested, at), floor_div_int(n, b * c)) << to_string(nested);
            ASSERT_EQ(value(digit, at), mod_int(floor_div_int(n, b), c)) << to_string(digit);
            ASSERT_EQ(value(mod(remainder, c), at), mod_int(mod_int(n, b), c));
            ASSERT_EQ(value(floor_div(remainder, c), at), floor_div_int(mod_int(n, b), c));
          }
        }
      }
    }
  }
}

// Substitution commutes with evaluation.
TEST(Rules, SubstitutionKeepsValues) {
  Samples samples(5);
  for (int i = 0; i < kExpressions / 4; ++i) {
    const Sample sample = samples.expression(4);
    const Index symbol = samples.pick(0, 1) == 0 ? samples.x : samples.y;
    const Sample value = samples.leaf();
    const std::pair<Index, Index> replacement = {symbol, value.index};
    const Index substituted = substitute(sample.index, {&replacement, 1});
    for (size_t k = 0; k < samples.assignments.size(); ++k) {
      if (value.values[k] < -7 || value.values[k] > 7) continue;
      Assignment assignment = samples.assignments[k];
      const int64_t got = value_in(substituted, assignment);
      assignment[symbol] = value.values[k];
      ASSERT_EQ(got, value_in(sample.index, assignment))
          << to_string(sample.index) << " -> " << to_string(substituted) << " where "
          << samples.describe(assignment);
    }
  }
}

// What is proven is true.
TEST(Rules, ProofsHold) {
  Samples samples(13);
  int proven = 0;
  int divisible = 0;
  for (int i = 0; i < kExpressions; ++i) {
    const Sample a = samples.expression(static_cast<int>(samples.pick(0, 3)));
    const Sample b = samples.expression(static_cast<int>(samples.pick(0, 3)));
    if (prove_nonnegative(a.index)) {
      ++proven;
      for (int64_t value : a.values) ASSERT_GE(value, 0) << to_string(a.index);
    }
    if (prove_less(a.index, b.index)) {
      for (size_t k = 0; k < a.values.size(); ++k) {
        ASSERT_LT(a.values[k], b.values[k]) << to_string(a.index) << " < " << to_string(b.index);
      }
    }
    const Sample divisor = samples.divisor();
    if (const auto quotient = exact_div(a.index, divisor.index)) {
      ++divisible;
      samples.check(*quotient * divisor.index, a.values, "exact_div");
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GE(proven, kLeastUses);
  EXPECT_GE(divisible, kLeastUses);
}

}  // namespace
}  // namespace litz
