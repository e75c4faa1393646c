#include "symbolic/loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace litz {
namespace {

class Loops : public testing::Test {
 protected:
  Index constant(int64_t value) { return context.constant(value); }
  Index variable(uint32_t number, int64_t extent) {
    return context.variable(number, constant(extent));
  }

  LoopRewrite simplify(std::vector<Index> variables, std::vector<size_t> boundaries,
                       std::vector<Index> expressions) {
    new_boundaries.clear();
    LoopRewrite rewrite =
        simplify_loops(context, variables, boundaries, expressions, &new_boundaries);
    texts.clear();
    for (Index expression : expressions) {
      texts.push_back(to_string(substitute(expression, rewrite.replacements)));
    }
    extents.clear();
    for (Index each : rewrite.variables) extents.push_back(to_string(each.extent()));
    return rewrite;
  }

  IndexContext context;
  Index s0 = context.size_symbol("s0");
  Index s1 = context.size_symbol("s1");
  Index s2 = context.size_symbol("s2");
  // Of the last simplify().
  std::vector<std::string> texts;
  std::vector<std::string> extents;
  std::vector<size_t> new_boundaries;
};

using Texts = std::vector<std::string>;

TEST_F(Loops, MergesContiguousNeighbours) {
  const Index d0 = variable(0, 4), d1 = variable(1, 8), d2 = variable(2, 2);
  simplify({d0, d1, d2}, {}, {d0 * 16 + d1 * 2 + d2, constant(5)});
  EXPECT_EQ(extents, Texts({"64"}));
  EXPECT_EQ(texts, Texts({"d0", "5"}));
}

TEST_F(Loops, MergesSymbolicNeighbours) {
  const Index d0 = context.variable(0, s0), d1 = context.variable(1, s1 + 1);
  const Index d2 = context.variable(2, s2);
  simplify({d0, d1, d2}, {}, {d0 * (s1 + 1) * s2 + d1 * s2 + d2});
  EXPECT_EQ(extents, Texts({"s0*s1*s2 + s0*s2"}));
  EXPECT_EQ(texts, Texts({"d0"}));
}

TEST_F(Loops, KeepsTransposedNeighboursApart) {
  const Index d0 = variable(0, 4), d1 = variable(1, 8);
  const LoopRewrite rewrite = simplify({d0, d1}, {}, {d0 * 8 + d1, d1 * 4 + d0});
  EXPECT_EQ(rewrite.variables, std::vector<Index>({d0, d1}));
}

TEST_F(Loops, KeepsBoundaries) {
  const Index d0 = variable(0, 4), d1 = variable(1, 8), d2 = variable(2, 2), d3 = variable(3, 3);
  simplify({d0, d1, d2, d3}, {2}, {d0 * 48 + d1 * 6 + d2 * 3 + d3});
  EXPECT_EQ(extents, Texts({"32", "6"}));
  EXPECT_EQ(texts, Texts({"6*d0 + d1"}));
  EXPECT_EQ(new_boundaries, std::vector<size_t>({1}));
}

TEST_F(Loops, KeepsBoundariesOfEmptyGroups) {
  const Index d0 = variable(0, 1), d1 = variable(1, 8);
  simplify({d0, d1}, {1}, {d0 * 8 + d1});
  EXPECT_EQ(extents, Texts({"8"}));
  EXPECT_EQ(new_boundaries, std::vector<size_t>({0}));
  simplify({d1, d0}, {1}, {d0 * 8 + d1});
  EXPECT_EQ(new_boundaries, std::vector<size_t>({1}));
  simplify({}, {0}, {constant(3)});
  EXPECT_EQ(extents, Texts({}));
  EXPECT_EQ(new_boundaries, std::vector<size_t>({0}));
}

TEST_F(Loops, DropsUnitLoops) {
  const Index d0 = variable(0, 1), d1 = context.variable(1, s0), d2 = variable(2, 1);
  const LoopRewrite rewrite = simplify({d0, d1, d2}, {}, {d0 * 7 + d1 * 2 + d2 * 5});
  EXPECT_EQ(extents, Texts({"s0"}));
  EXPECT_EQ(texts, Texts({"2*d0"}));
  EXPECT_EQ(rewrite.replacements[0].second, constant(0));
}

TEST_F(Loops, SplitsWhereExpressionsDivide) {
  const Index d0 = variable(0, 64);
  EXPECT_EQ(find_split(d0, std::vector{floor_div(d0, 8)}), std::vector({constant(8), constant(8)}));
  simplify({d0}, {}, {mod(d0, 8) * 100 + floor_div(d0, 8)});
  EXPECT_EQ(extents, Texts({"8", "8"}));
  EXPECT_EQ(texts, Texts({"d0 + 100*d1"}));
}

TEST_F(Loops, SplitsDigitsInTheMiddle) {
  const Index d0 = variable(0, 64);
  simplify({d0}, {}, {mod(floor_div(d0, 4), 8)});
  EXPECT_EQ(extents, Texts({"2", "8", "4"}));
  EXPECT_EQ(texts, Texts({"d1"}));
}

TEST_F(Loops, SplitsSymbolicLoops) {
  const Index d0 = context.variable(0, s0 * s1 * s2);
  const std::vector<Index> sizes = {s0, s1, s2};
  const std::vector<Index> position = delinearize(d0, sizes);
  simplify({d0}, {}, {position[0] + position[1] * 10 + position[2] * 100});
  EXPECT_EQ(extents, Texts({"s0", "s1", "s2"}));
  EXPECT_EQ(texts, Texts({"d0 + 10*d1 + 100*d2"}));
}

TEST_F(Loops, SplitsReversedLoops) {
  const Index d0 = variable(0, 12);
  simplify({d0}, {}, {mod(-d0 + 11, 4)});
  EXPECT_EQ(extents, Texts({"3", "4"}));
  EXPECT_EQ(texts, Texts({"-d1 + 3"}));
}

TEST_F(Loops, SplitsReversedSymbolicLoops) {
  const Index d0 = context.variable(0, s0 * s1);
  simplify({d0}, {}, {mod(s0 * s1 - 1 - d0, s1), floor_div((s0 * s1 - 1 - d0) * s2, s1 * s2)});
  EXPECT_EQ(extents, Texts({"s0", "s1"}));
  EXPECT_EQ(texts, Texts({"-d1 + s1 - 1", "-d0 + s0 - 1"}));
}

TEST_F(Loops, LeavesDivisorsThatDoNotNest) {
  const Index d0 = variable(0, 24);
  const std::vector<Index> whole = {constant(24)};
  EXPECT_EQ(find_split(d0, std::vector{mod(d0, 4) + floor_div(d0, 6)}), whole);
  EXPECT_EQ(find_split(d0, std::vector{floor_div(d0, 5)}), whole);
  EXPECT_EQ(find_split(d0, std::vector{mod(d0 + 1, 4)}), whole) << "the carry stays";
  EXPECT_EQ(find_split(d0, std::vector{d0 * 3}), whole);
}

TEST_F(Loops, CanMergeWantsEveryExpressionContiguous) {
  const Index d0 = variable(0, 4), d1 = variable(1, 8);
  EXPECT_TRUE(can_merge(d0, d1, std::vector{d0 * 16 + d1 * 2 + 3, constant(1)}));
  EXPECT_FALSE(can_merge(d0, d1, std::vector{d0 * 16 + d1 * 2, d1}));
  EXPECT_FALSE(can_merge(d0, d1, std::vector{d0 * 7 + d1}));
  EXPECT_FALSE(can_merge(d0, d1, std::vector{floor_div(d0 * 8 + d1, 3)}));
}

// A variable of the caller and a new variable of the same number and extent are one Index.
TEST_F(Loops, RenumberingDoesNotMixOldAndNewVariables) {
  const Index d0 = variable(0, 1), d1 = variable(1, 5), d2 = variable(2, 5);
  const LoopRewrite rewrite = simplify({d0, d1, d2}, {}, {d1 + d2 * 5});
  EXPECT_EQ(rewrite.variables, std::vector<Index>({variable(0, 5), variable(1, 5)}));
  EXPECT_EQ(texts, Texts({"d0 + 5*d1"}));
}

// Values of the expressions, in the order in which the nest walks them.
std::vector<int64_t> walk(std::span<const Index> variables, std::span<const Index> expressions,
                          const std::unordered_map<Index, int64_t>& sizes) {
  std::unordered_map<Index, int64_t> values = sizes;
  const auto value_of = [&](Index symbol) { return values.at(symbol); };
  std::vector<int64_t> extents;
  int64_t total = 1;
  for (Index each : variables) extents.push_back(evaluate(each.extent(), value_of));
  for (int64_t extent : extents) total *= extent;
  std::vector<int64_t> result;
  for (int64_t at = 0; at < total; ++at) {
    int64_t rest = at;
    for (size_t i = variables.size(); i-- > 0;) {
      values[variables[i]] = rest % extents[i];
      rest /= extents[i];
    }
    for (Index expression : expressions) result.push_back(evaluate(expression, value_of));
  }
  return result;
}

// Random nests and chains of reshapes, slices, flips and transposes over them.
class RandomNest {
 public:
  RandomNest(IndexContext& context, uint32_t seed, bool symbolic)
      : context_(context), random_(seed), symbolic_(symbolic) {}

  int64_t pick(int64_t lo, int64_t hi) {
    return std::uniform_int_distribution<int64_t>(lo, hi)(random_);
  }

  Index size() {
    static constexpr int64_t kSizes[] = {1, 2, 2, 3, 4};
    if (symbolic_ && pick(0, 1) == 0) {
      const Index size = context_.size_symbol(pick(0, 1) == 0 ? "s0" : "s1");
      return pick(0, 2) == 0 ? size + pick(1, 2) : size;
    }
    return context_.constant(kSizes[pick(0, std::size(kSizes) - 1)]);
  }

  // The address at which a tensor of these sizes is read after some views.
  Index address(std::vector<Index> position, std::vector<Index> sizes) {
    for (int64_t steps = pick(0, 4); steps > 0; --steps) {
      const auto axis = static_cast<size_t>(pick(0, static_cast<int64_t>(sizes.size()) - 1));
      switch (pick(0, 3)) {
        case 0:
          position[axis] = sizes[axis] - 1 - position[axis];
          break;
        case 1:
          std::swap(position[axis], position[0]);
          std::swap(sizes[axis], sizes[0]);
          break;
        case 2:
          position[axis] = position[axis] + pick(0, 2);
          sizes[axis] = sizes[axis] + 3;
          break;
        default:
          reshape(position, sizes);
      }
    }
    return dot(context_, position, contiguous_strides(context_, sizes));
  }

 private:
  // Regroups the factors of all sizes at random.
  void reshape(std::vector<Index>& position, std::vector<Index>& sizes) {
    const Index linear = dot(context_, position, contiguous_strides(context_, sizes));
    std::vector<Index> regrouped = {context_.constant(1)};
    for (Index size : sizes) {
      for (int64_t part = 2; size.is_constant() && part <= 3; ++part) {
        if (size.constant() % part != 0 || pick(0, 1) == 0) continue;
        regrouped.push_back(context_.constant(part));
        size = context_.constant(size.constant() / part);
      }
      if (pick(0, 1) == 0) {
        regrouped.back() = regrouped.back() * size;
      } else {
        regrouped.push_back(size);
      }
    }
    if (pick(0, 3) == 0) std::shuffle(regrouped.begin(), regrouped.end(), random_);
    sizes = regrouped;
    position = delinearize(linear, sizes);
  }

  IndexContext& context_;
  std::mt19937 random_;
  bool symbolic_;
};

void check_random_nests(bool symbolic) {
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    IndexContext context;
    RandomNest random(context, seed, symbolic);
    std::vector<Index> variables, sizes;
    for (int64_t i = random.pick(1, 4); i > 0; --i) {
      sizes.push_back(random.size());
      variables.push_back(context.variable(static_cast<uint32_t>(variables.size()), sizes.back()));
    }
    std::vector<Index> expressions;
    for (int64_t i = random.pick(1, 3); i > 0; --i) {
      expressions.push_back(random.address(variables, sizes));
    }
    std::vector<size_t> boundaries;
    if (random.pick(0, 1) == 0) boundaries.push_back(static_cast<size_t>(random.pick(0, 2)));
    if (!boundaries.empty() && boundaries[0] > variables.size()) boundaries.clear();

    std::vector<size_t> new_boundaries;
    const LoopRewrite rewrite =
        simplify_loops(context, variables, boundaries, expressions, &new_boundaries);
    ASSERT_EQ(new_boundaries.size(), boundaries.size());
    std::vector<Index> rewritten;
    for (Index each : expressions) rewritten.push_back(substitute(each, rewrite.replacements));

    const std::unordered_map<Index, int64_t> values = {{context.size_symbol("s0"), 2},
                                                       {context.size_symbol("s1"), 3}};
    ASSERT_EQ(walk(variables, expressions, values), walk(rewrite.variables, rewritten, values))
        << "seed " << seed << ", first expression " << to_string(expressions[0]) << " -> "
        << to_string(rewritten[0]);
    if (!boundaries.empty()) {
      const auto count = [&](std::span<const Index> loops, size_t end) {
        return walk(loops.first(end), std::vector{context.constant(0)}, values).size();
      };
      ASSERT_EQ(count(variables, boundaries[0]), count(rewrite.variables, new_boundaries[0]))
          << "seed " << seed;
    }
    const LoopRewrite again =
        simplify_loops(context, rewrite.variables, new_boundaries, rewritten, nullptr);
    ASSERT_EQ(again.variables, rewrite.variables) << "seed " << seed << ": not a fixed point";
  }
}

TEST_F(Loops, RandomStaticNestsWalkTheSameAddresses) { check_random_nests(false); }
TEST_F(Loops, RandomSymbolicNestsWalkTheSameAddresses) { check_random_nests(true); }

}  // namespace
}  // namespace litz
