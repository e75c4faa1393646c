// Programs with library ops, run by the interpreter.
#include <gtest/gtest.h>

#include <cstring>

#include "test_host.h"

namespace litz {
namespace {

constexpr char kCall[] = R"(program(s0: size[0, inf]) {
  buffer x: f32[s0] input 0
  buffer t: f32[s0]
  buffer r: f32[2, s0] extern
  buffer y: f32[2, s0]
  inputs (x = tensor x)
  pointwise t[d0 < s0] {
    t0 = load x[d0]
    t1 = neg t0
    yield t1
  }
  extern "aten::twice" "out" {
    node "twice_1"
    argument tensor t
    argument tensor x as f32[2] strides [2] offset 1
    argument [int s0 + 1, double 0.5, bool true]
    argument string "mode"
    argument none
    argument dtype i64
    argument device "cpu"
    result tensor r
    result none
  }
  pointwise y[d0 < 2, d1 < s0] {
    t0 = load r[d0, d1]
    t1 = add t0, 1.0: f32
    yield t1
  }
  return (tensor y)
})";

// Rows of the argument, as a result of the given strides.
int rows_of_first(TestHost& host, const LitzValue* args, LitzValue* results,
                  std::vector<int64_t> strides) {
  const LitzTensor& t = *args[0].u.tensor;
  *results[0].u.result = host.make(DType::kFloat32, {2, t.sizes[0]}, strides);
  for (int64_t row = 0; row < 2; ++row) {
    for (int64_t i = 0; i < t.sizes[0]; ++i) {
      static_cast<float*>(results[0].u.result->data)[row * strides[0] + i * strides[1]] =
          static_cast<const float*>(t.data)[i * t.strides[0]] * static_cast<float>(row + 1);
    }
  }
  return LITZ_OK;
}

TEST(LibraryOps, ArgumentsInSchemaOrder) {
  TestRun test(kCall);
  test.input<float>(DType::kFloat32, {4}, {1, 2, 3, 4});
  ASSERT_EQ(test.interpreter.extern_ops().size(), 1u);
  EXPECT_STREQ(test.interpreter.extern_ops()[0].name, "aten::twice");
  EXPECT_STREQ(test.interpreter.extern_ops()[0].overload, "out");
  EXPECT_STREQ(test.interpreter.extern_ops()[0].node, "twice_1");
  test.host.library = [&](int32_t op, const LitzValue* args, int32_t num_args, LitzValue* results,
                          int32_t num_results) {
    EXPECT_EQ(op, 0);
    EXPECT_EQ(num_args, 7);
    EXPECT_EQ(num_results, 2);
    const LitzTensor& window = *args[1].u.tensor;
    EXPECT_EQ(static_cast<const float*>(window.data)[window.strides[0]], 4.0f);
    EXPECT_EQ(args[2].kind, LITZ_LIST);
    EXPECT_EQ(args[2].count, 3);
    EXPECT_EQ(args[2].u.list[0].u.i, 5);
    EXPECT_EQ(args[2].u.list[1].u.d, 0.5);
    EXPECT_EQ(args[2].u.list[2].kind, LITZ_BOOL);
    EXPECT_STREQ(args[3].u.s, "mode");
    EXPECT_EQ(args[4].kind, LITZ_NONE);
    EXPECT_EQ(args[5].u.i, static_cast<int64_t>(DType::kInt64));
    EXPECT_STREQ(args[6].u.s, "cpu");
    EXPECT_EQ(results[0].u.result->data, nullptr);
    return rows_of_first(test.host, args, results, {4, 1});
  };
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  EXPECT_EQ(test.output<float>(), (std::vector<float>{0, -1, -2, -3, -1, -3, -5, -7}));
  EXPECT_EQ(test.host.live(), 1u);
}

TEST(LibraryOps, ResultsInAnotherLayoutAreCopied) {
  TestRun test(kCall);
  test.input<float>(DType::kFloat32, {4}, {1, 2, 3, 4});
  test.host.library = [&](int32_t, const LitzValue* args, int32_t, LitzValue* results, int32_t) {
    return rows_of_first(test.host, args, results, {1, 2});
  };
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  EXPECT_EQ(test.output<float>(), (std::vector<float>{0, -1, -2, -3, -1, -3, -5, -7}));
  EXPECT_EQ(test.host.live(), 1u);
}

TEST(LibraryOps, ResultsOfOtherSizesAreErrors) {
  TestRun test(kCall);
  test.input<float>(DType::kFloat32, {4}, {1, 2, 3, 4});
  test.host.library = [&](int32_t, const LitzValue*, int32_t, LitzValue* results, int32_t) {
    *results[0].u.result = test.host.make(DType::kFloat32, {4, 2}, {2, 1});
    return LITZ_OK;
  };
  EXPECT_EQ(test.run(), LITZ_ERROR);
  EXPECT_EQ(
      test.host.message,
      "aten::twice (node twice_1) returned a tensor of another shape or dtype than was traced");
  EXPECT_EQ(test.host.live(), 0u);
}

TEST(LibraryOps, FailuresKeepTheHostsStatus) {
  TestRun test(kCall);
  test.input<float>(DType::kFloat32, {4}, {1, 2, 3, 4});
  test.host.library = [&](int32_t, const LitzValue*, int32_t, LitzValue*, int32_t) {
    test.host.host.fail(&test.host, LITZ_UNSUPPORTED, "no such op");
    return static_cast<int>(LITZ_UNSUPPORTED);
  };
  EXPECT_EQ(test.run(), LITZ_UNSUPPORTED);
  EXPECT_EQ(test.host.message, "no such op");
  EXPECT_EQ(test.host.live(), 0u);
}

constexpr char kAlias[] = R"(program() {
  buffer t: f32[2]
  buffer r: f32[2] extern
  inputs ()
  pointwise t[d0 < 2] {
    t0 = index d0
    t1 = cast t0 to f32
    yield t1
  }
  extern "aten::alias" {
    argument tensor t
    result tensor r
  }
  return (tensor r)
})";

TEST(LibraryOps, ResultsThatAreViewsAreCopied) {
  std::string text = kAlias;
  text.insert(text.find("    argument tensor t"), "    results_are_views\n");
  TestRun test(text);
  const void* temporary = nullptr;
  test.host.library = [&](int32_t, const LitzValue* args, int32_t, LitzValue* results, int32_t) {
    *results[0].u.result = test.host.make(DType::kFloat32, {2}, {1});
    results[0].u.result->data = args[0].u.tensor->data;
    temporary = results[0].u.result->data;
    return LITZ_OK;
  };
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  EXPECT_NE(test.tensor(0).data, temporary);
  EXPECT_EQ(test.output<float>(), (std::vector<float>{0, 1}));
  EXPECT_EQ(test.host.live(), 1u);
}

TEST(LibraryOps, UndefinedResultsAreErrors) {
  TestRun test(kAlias);
  test.host.library = [&](int32_t, const LitzValue*, int32_t, LitzValue* results, int32_t) {
    results[0].kind = LITZ_NONE;
    return LITZ_OK;
  };
  EXPECT_EQ(test.run(), LITZ_ERROR);
  EXPECT_EQ(test.host.live(), 0u);
}

TEST(LibraryOps, ResultsCanBeOutputs) {
  TestRun test(kAlias);
  void* data = nullptr;
  test.host.library = [&](int32_t, const LitzValue*, int32_t, LitzValue* results, int32_t) {
    *results[0].u.result = test.host.make(DType::kFloat32, {2}, {1});
    const float values[2] = {5, 6};
    std::memcpy(results[0].u.result->data, values, sizeof(values));
    data = results[0].u.result->data;
    return LITZ_OK;
  };
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  EXPECT_EQ(test.tensor(0).data, data);
  EXPECT_EQ(test.output<float>(), (std::vector<float>{5, 6}));
  EXPECT_EQ(test.host.live(), 1u);
  EXPECT_EQ(test.host.views, 0);
}

TEST(LibraryOps, MutationIsSeenByLaterOperations) {
  TestRun test(R"(program() {
  buffer t: f32[2]
  buffer y: f32[2]
  inputs ()
  pointwise t[d0 < 2] {
    yield 1.0: f32
  }
  extern "aten::fill_" {
    argument tensor t
    mutates t
    side_effects
  }
  pointwise y[d0 < 2] {
    t0 = load t[d0]
    yield t0
  }
  return (tensor y)
})");
  test.host.library = [&](int32_t, const LitzValue* args, int32_t, LitzValue*, int32_t) {
    static_cast<float*>(args[0].u.tensor->data)[1] = 9;
    return LITZ_OK;
  };
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  EXPECT_EQ(test.output<float>(), (std::vector<float>{1, 9}));
}

}  // namespace
}  // namespace litz
