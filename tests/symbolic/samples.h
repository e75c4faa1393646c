// Random index expressions whose values are known: every operation is done on an Index and, beside
// it, on plain integers for a list of assignments of values to the symbols.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbolic/index.h"
#include "symbolic/range.h"

namespace litz {

using Assignment = std::unordered_map<Index, int64_t>;

inline int64_t value_in(Index expression, const Assignment& assignment) {
  return evaluate(expression, [&](Index symbol) { return assignment.at(symbol); });
}

// An expression and its value under each assignment.
struct Sample {
  Index index;
  std::vector<int64_t> values;

  bool positive() const {
    return std::all_of(values.begin(), values.end(), [](int64_t v) { return v > 0; });
  }
};

template <class OnIndex, class OnInt>
Sample combine(const Sample& a, const Sample& b, OnIndex on_index, OnInt on_int) {
  Sample result = {on_index(a.index, b.index), {}};
  for (size_t i = 0; i < a.values.size(); ++i) {
    result.values.push_back(on_int(a.values[i], b.values[i]));
  }
  return result;
}

// The symbols that the samples are made of:
//   x, y    integers in [-7, 7]
//   s, t    sizes in [1, 4]; their ranges say [0, unbounded), as those of real sizes do
//   d0, d1  loop variables of extents 6 and 8
//   d2, d3  loop variables of extents s and t
//   d4      loop variable of extent s*t
class Samples {
 public:
  explicit Samples(uint32_t seed) : random_(seed) {
    x = context.size_symbol("x", {-7, 7});
    y = context.size_symbol("y", {-7, 7});
    s = context.size_symbol("s");
    t = context.size_symbol("t");
    symbols = {x,
               y,
               s,
               t,
               context.variable(0, context.constant(6)),
               context.variable(1, context.constant(8)),
               context.variable(2, s),
               context.variable(3, t),
               context.variable(4, s * t)};
    for (int64_t size_of_s = 1; size_of_s <= 4; ++size_of_s) {
      for (int64_t size_of_t = 1; size_of_t <= 4; ++size_of_t) {
        for (int i = 0; i < kAssignmentsPerSize; ++i)
          assignments.push_back(assign(size_of_s, size_of_t));
      }
    }
  }

  int64_t pick(int64_t lo, int64_t hi) {
    return std::uniform_int_distribution<int64_t>(lo, hi)(random_);
  }

  Sample leaf() {
    if (pick(0, 5) == 0) return constant(pick(-9, 9));
    return symbol(symbols[static_cast<size_t>(pick(0, static_cast<int64_t>(symbols.size()) - 1))]);
  }

  Sample constant(int64_t value) {
    return {context.constant(value), std::vector<int64_t>(assignments.size(), value)};
  }

  Sample symbol(Index symbol) {
    Sample result = {symbol, {}};
    for (const Assignment& each : assignments) result.values.push_back(each.at(symbol));
    return result;
  }

  // One that may divide: a constant, a size, a product or a sum of sizes.
  Sample divisor() {
    static constexpr int64_t kConstants[] = {1, 2, 3, 4, 6, 8, 12};
    switch (pick(0, 7)) {
      case 0:
        return symbol(s);
      case 1:
        return symbol(t);
      case 2:
        return multiply(symbol(s), symbol(t));
      case 3:
        return add(symbol(s), constant(pick(1, 2)));
      case 4:
        return multiply(symbol(t), constant(pick(2, 4)));
      default:
        return constant(kConstants[pick(0, std::size(kConstants) - 1)]);
    }
  }

  Sample expression(int depth) {
    if (depth == 0) return leaf();
    switch (pick(0, 11)) {
      case 0:
        return leaf();
      case 1:
      case 2:
        return add(expression(depth - 1), expression(depth - 1));
      case 3:
        return combine(
            expression(depth - 1), expression(depth - 1), [](Index a, Index b) { return a - b; },
            [](int64_t a, int64_t b) { return a - b; });
      case 4:
        return multiply(expression(depth - 1), constant(pick(-4, 8)));
      case 5:
        return multiply(expression(depth - 1), divisor());
      case 6:
      case 7:
        return divide(expression(depth - 1), divisor());
      case 8:
      case 9:
        return remainder(expression(depth - 1), divisor());
      case 10:
        return combine(
            expression(depth - 1), expression(depth - 1),
            [](Index a, Index b) { return min(a, b); },
            [](int64_t a, int64_t b) { return std::min(a, b); });
      default:
        return combine(
            expression(depth - 1), expression(depth - 1),
            [](Index a, Index b) { return max(a, b); },
            [](int64_t a, int64_t b) { return std::max(a, b); });
    }
  }

  Sample add(const Sample& a, const Sample& b) {
    return combine(
        a, b, [](Index p, Index q) { return p + q; }, [](int64_t p, int64_t q) { return p + q; });
  }
  Sample multiply(const Sample& a, const Sample& b) {
    return combine(
        a, b, [](Index p, Index q) { return p * q; }, [](int64_t p, int64_t q) { return p * q; });
  }
  Sample divide(const Sample& a, const Sample& b) {
    return combine(a, b, [](Index p, Index q) { return floor_div(p, q); }, floor_div_int);
  }
  Sample remainder(const Sample& a, const Sample& b) {
    return combine(a, b, [](Index p, Index q) { return mod(p, q); }, mod_int);
  }

  // The Index has the values, under every assignment.
  void check(Index index, const std::vector<int64_t>& values, const std::string& what) const {
    for (size_t i = 0; i < assignments.size(); ++i) {
      ASSERT_EQ(value_in(index, assignments[i]), values[i])
          << what << " -> " << to_string(index) << " where " << describe(assignments[i]);
    }
  }

  std::string describe(const Assignment& assignment) const {
    std::string text;
    for (Index symbol : symbols) {
      text += std::string(symbol.symbol_name()) + "=" + std::to_string(assignment.at(symbol)) + " ";
    }
    return text;
  }

  IndexContext context;
  Index x, y, s, t;
  std::vector<Index> symbols;
  std::vector<Assignment> assignments;

 private:
  static constexpr int kAssignmentsPerSize = 12;

  Assignment assign(int64_t size_of_s, int64_t size_of_t) {
    const int64_t values[] = {pick(-7, 7),
                              pick(-7, 7),
                              size_of_s,
                              size_of_t,
                              pick(0, 5),
                              pick(0, 7),
                              pick(0, size_of_s - 1),
                              pick(0, size_of_t - 1),
                              pick(0, size_of_s * size_of_t - 1)};
    Assignment assignment;
    for (std::size_t i = 0; i < symbols.size(); ++i) assignment[symbols[i]] = values[i];
    return assignment;
  }

  std::mt19937 random_;
};

}  // namespace litz
