// Linearisation, its inverse, and the reshapes that are made of the two.
#include <gtest/gtest.h>

#include "symbolic/index.h"

namespace litz {
namespace {

class Shapes : public testing::Test {
 protected:
  using Sizes = std::vector<Index>;

  Index constant(int64_t value) { return context.constant(value); }
  Sizes constants(std::initializer_list<int64_t> values) {
    Sizes result;
    for (int64_t value : values) result.push_back(constant(value));
    return result;
  }
  Sizes variables_over(const Sizes& sizes) {
    Sizes result;
    for (Index size : sizes) {
      result.push_back(context.variable(static_cast<uint32_t>(result.size()), size));
    }
    return result;
  }
  Index linearize(const Sizes& position, const Sizes& sizes) {
    return dot(context, position, contiguous_strides(context, sizes));
  }
  // Position in a tensor of `from` sizes of the element at `position` of its reshape to `to`.
  Sizes reshape(const Sizes& position, const Sizes& to, const Sizes& from) {
    return delinearize(linearize(position, to), from);
  }

  IndexContext context;
  Index s0 = context.size_symbol("s0");
  Index s1 = context.size_symbol("s1");
  Index s2 = context.size_symbol("s2");
  Index s3 = context.size_symbol("s3");
};

TEST_F(Shapes, StridesOfContiguousTensors) {
  EXPECT_EQ(contiguous_strides(context, constants({2, 3, 4})), constants({12, 4, 1}));
  EXPECT_EQ(contiguous_strides(context, Sizes{s0, s1, s2}), Sizes({s1 * s2, s2, constant(1)}));
  EXPECT_EQ(contiguous_strides(context, constants({2, 0, 3})), constants({3, 3, 1}));
  EXPECT_EQ(contiguous_strides(context, Sizes{}), Sizes{});
  EXPECT_EQ(product(context, Sizes{s0, s1, constant(3)}), s0 * s1 * 3);
  EXPECT_EQ(product(context, Sizes{}), constant(1));
}

TEST_F(Shapes, DelinearizeInvertsLinearisation) {
  const std::vector<Sizes> shapes = {
      constants({7}),
      constants({2, 3, 4}),
      constants({1, 5, 1, 3}),
      {s0, s1},
      {s0, s1, s2, s3},
      {s0, constant(4), s1, constant(3)},
      {s0, s0, s0},
      {constant(2), s0 * s1, s2 * 3},
      {s0 + 1, s1 + s2, s3 * 2 + 1},
      {s0, floor_div(s1, 2), s2},
      {s0, floor_div(s1 + 1, 2) + 1, max(s2, s3)},
  };
  for (const Sizes& sizes : shapes) {
    const Sizes variables = variables_over(sizes);
    Sizes expected = variables;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i].is_constant(1)) expected[i] = constant(0);
    }
    const Index linear = linearize(expected, sizes);
    EXPECT_EQ(delinearize(linear, sizes), expected) << to_string(linear);
  }
}

TEST_F(Shapes, LinearisationInvertsDelinearize) {
  const std::vector<Sizes> shapes = {
      constants({2, 3, 4}),
      {s0, s1, s2, s3},
      {s0, constant(4), s1, constant(3)},
      {constant(2), s0 * s1, s2 * 3},
      {s0 + 1, s1 + s2, s3 * 2 + 1},
      {s0 + 1, s0 + 2, s0 + 3},
      {s0, floor_div(s1, 2), s2},
  };
  for (const Sizes& sizes : shapes) {
    const Index linear = context.variable(0, product(context, sizes));
    EXPECT_EQ(linearize(delinearize(linear, sizes), sizes), linear) << to_string(linear.extent());
  }
}

TEST_F(Shapes, FlippedDimensionsStayLinear) {
  const Sizes sizes = {s0, s1, s2};
  Sizes position = variables_over(sizes);
  for (size_t i = 0; i < sizes.size(); ++i) position[i] = sizes[i] - 1 - position[i];
  EXPECT_EQ(delinearize(linearize(position, sizes), sizes), position);
  const Sizes fixed = constants({4, 5, 6});
  position = variables_over(fixed);
  position[1] = fixed[1] - 1 - position[1];
  EXPECT_EQ(delinearize(linearize(position, fixed), fixed), position);
}

TEST_F(Shapes, SplittingAndMergingDimensions) {
  const Sizes split = {s0, s1, constant(4), s2};
  const Sizes merged = {s0, s1 * 4, s2};
  const Sizes d = variables_over(split);
  EXPECT_EQ(reshape(d, split, merged), Sizes({d[0], d[1] * 4 + d[2], d[3]}));
  const Sizes e = variables_over(merged);
  EXPECT_EQ(reshape(e, merged, split), Sizes({e[0], floor_div(e[1], 4), mod(e[1], 4), e[2]}));
}

TEST_F(Shapes, ReshapesCancel) {
  const std::vector<std::pair<Sizes, Sizes>> pairs = {
      {constants({6, 4}), constants({3, 8})},
      {constants({12, 10}), constants({8, 15})},
      {constants({2, 3, 4, 5}), constants({5, 4, 3, 2})},
      {{s0, s1 * 4}, {s0 * 4, s1}},
      {{s0 * s1, s2}, {s0, s1 * s2}},
      {{s0, s1, s2}, {s2, s1, s0}},
  };
  for (const auto& [a, b] : pairs) {
    const Sizes d = variables_over(a);
    const Sizes there = reshape(d, a, b);
    EXPECT_EQ(reshape(there, b, a), d) << to_string(a[0]) << " ... " << to_string(b[0]);
    const Sizes e = variables_over(b);
    EXPECT_EQ(reshape(reshape(e, b, a), a, b), e);
  }
}

TEST_F(Shapes, EmptyTensors) {
  EXPECT_EQ(delinearize(constant(0), constants({2, 0, 3})), constants({0, 0, 0}));
  EXPECT_EQ(delinearize(constant(0), Sizes{}), Sizes{});
}

}  // namespace
}  // namespace litz
