#include "ir/interpret_program.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "test_host.h"

namespace litz {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(InterpretProgram, PointwiseOfSymbolicSize) {
  TestRun test(R"(program(s0: size[0, inf]) {
  buffer x: f32[s0, 3] input 0
  buffer y: f32[s0, 3]
  inputs (x = tensor x)
  pointwise y[d0 < s0, d1 < 3] {
    t0 = load x[d0, d1]
    t1 = index 3*d0 + d1
    t2 = cast t1 to f32
    t3 = add t0, t2
    yield t3
  }
  return (tensor y, int 2*s0, none)
})");
  test.input<float>(DType::kFloat32, {2, 3}, {1, 2, 3, 4, 5, 6});
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  EXPECT_EQ(test.output<float>(), (std::vector<float>{1, 3, 5, 7, 9, 11}));
  EXPECT_EQ(test.value(1).kind, LITZ_INT);
  EXPECT_EQ(test.value(1).u.i, 4);
  EXPECT_EQ(test.value(2).kind, LITZ_NONE);
  EXPECT_EQ(test.host.live(), 1u);
}

TEST(InterpretProgram, MoreElementsThanABlock) {
  TestRun test(R"(program(s0: size[0, inf]) {
  buffer x: i32[s0] input 0
  buffer y: i32[s0]
  buffer t: i32[]
  inputs (x = tensor x)
  pointwise y[d0 < s0] {
    t0 = load x[s0 - 1 - d0]
    t1 = mul t0, 2: i32
    yield t1
  }
  reduction t[] over [d0 < s0] sum {
    t0 = load y[d0]
    yield t0
  }
  return (tensor y, tensor t)
})");
  std::vector<int32_t> values(1000);
  for (int i = 0; i < 1000; ++i) values[i] = i;
  test.input<int32_t>(DType::kInt32, {1000}, values);
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  EXPECT_EQ(test.output<int32_t>()[0], 1998);
  EXPECT_EQ(test.output<int32_t>()[999], 0);
  EXPECT_EQ(test.output<int32_t>(1), std::vector<int32_t>{999000});
}

// Weights in powers of two; the last row is masked as a whole, and a NaN has no weight.
TEST(InterpretProgram, Attention) {
  TestRun test(R"(program() {
  buffer q: bf16[4, 2] input 0
  buffer k: bf16[3, 2] input 1
  buffer v: bf16[3, 2] input 2
  buffer b: f32[4, 3] input 3
  buffer y: f32[4, 2]
  buffer l: f32[4]
  inputs (q = tensor q, k = tensor k, v = tensor v, b = tensor b)
  attention y logsumexp l [d0 < 4, d1 < 2] keys [d2 < 3] factors [d3 < 2] {
    t0 = load q[d0, d3]
    t1 = load k[d2, d3]
    t2 = reduced 0: f32
    t3 = mul t2, 0.6931472: f32
    t4 = load b[d0, d2]
    t5 = add t3, t4
    t6 = load v[d2, d1]
    query t0 key t1 score t5 value t6
  }
  return (tensor y, tensor l)
})");
  constexpr uint16_t kOne = 0x3f80;
  test.input<uint16_t>(DType::kBFloat16, {4, 2}, {kOne, 0, 0, kOne, 0, 0, 0, 0});
  test.input<uint16_t>(DType::kBFloat16, {3, 2}, {kOne, 0, 0, kOne, 0, 0});
  test.input<uint16_t>(DType::kBFloat16, {3, 2}, {0x4080, 0x4100, 0, 0x4080, 0x4100, 0x7fc0});
  test.input<float>(DType::kFloat32, {4, 3},
                    {0, 0, -kInf, 0, 0, -kInf, -1e30F, -1e30F, -kInf, -kInf, -kInf, -kInf});
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  const std::vector<float> y = test.output<float>();
  const std::vector<float> expected = {8.0F / 3, 20.0F / 3, 4.0F / 3, 16.0F / 3, 2, 6, 0, 0};
  ASSERT_EQ(y.size(), expected.size());
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], expected[i], 1e-6) << i;
  const std::vector<float> logarithms = test.output<float>(1);
  const std::vector<float> sums = {std::log(3.0F), std::log(3.0F), -1e30F, 0};
  ASSERT_EQ(logarithms.size(), sums.size());
  for (size_t i = 0; i < sums.size(); ++i) EXPECT_FLOAT_EQ(logarithms[i], sums[i]) << i;
}

TEST(InterpretProgram, EmptyTensors) {
  TestRun test(R"(program(s0: size[0, inf]) {
  buffer x: f32[s0, 2] input 0
  buffer y: f32[s0, 2]
  buffer p: f32[2]
  buffer a: i64[2]
  inputs (x = tensor x)
  pointwise y[d0 < s0, d1 < 2] {
    t0 = load x[d0, d1]
    t1 = neg t0
    yield t1
  }
  reduction p[d0 < 2] over [d1 < s0] prod {
    t0 = load x[d1, d0]
    yield t0
  }
  reduction a[d0 < 2] over [d1 < s0] argmax {
    t0 = load x[d1, d0]
    yield t0
  }
  return (tensor y, tensor p)
})");
  test.input<float>(DType::kFloat32, {0, 2}, {});
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  EXPECT_TRUE(test.output<float>().empty());
  EXPECT_EQ(test.output<float>(1), (std::vector<float>{1, 1}));
}

// One reduction of a float32 [2, 4] over its second dimension.
template <class T>
std::vector<T> reduce_rows(const std::string& kind, const std::string& dtype,
                           std::vector<float> values) {
  TestRun test("program() {\n  buffer x: f32[2, 4] input 0\n  buffer y: " + dtype +
               "[2]\n  inputs (x = tensor x)\n  reduction y[d0 < 2] over [d1 < 4] " + kind +
               " {\n    t0 = load x[d0, d1]\n    yield t0\n  }\n  return (tensor y)\n}");
  test.input<float>(DType::kFloat32, {2, 4}, std::move(values));
  EXPECT_EQ(test.run(), LITZ_OK) << test.host.message;
  return test.output<T>();
}

TEST(InterpretProgram, Reductions) {
  const std::vector<float> values = {2, 5, 5, 1, -1, -3, -3, 7};
  EXPECT_EQ(reduce_rows<float>("sum", "f32", values), (std::vector<float>{13, 0}));
  EXPECT_EQ(reduce_rows<float>("prod", "f32", values), (std::vector<float>{50, -63}));
  EXPECT_EQ(reduce_rows<float>("max", "f32", values), (std::vector<float>{5, 7}));
  EXPECT_EQ(reduce_rows<float>("min", "f32", values), (std::vector<float>{1, -3}));
  EXPECT_EQ(reduce_rows<int64_t>("argmax", "i64", values), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(reduce_rows<int64_t>("argmin", "i64", values), (std::vector<int64_t>{3, 1}));
}

TEST(InterpretProgram, ReductionsOfNan) {
  const std::vector<float> values = {1, kNan, 3, kNan, -kInf, -kInf, -kInf, -kInf};
  const std::vector<float> max = reduce_rows<float>("max", "f32", values);
  EXPECT_TRUE(std::isnan(max[0]));
  EXPECT_EQ(max[1], -kInf);
  EXPECT_TRUE(std::isnan(reduce_rows<float>("min", "f32", values)[0]));
  EXPECT_EQ(reduce_rows<int64_t>("argmax", "i64", values), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(reduce_rows<int64_t>("argmin", "i64", values), (std::vector<int64_t>{1, 0}));
}

TEST(InterpretProgram, FloatSumsAreAccurate) {
  EXPECT_EQ(reduce_rows<float>("sum", "f32", {1e8f, 1, -1e8f, 1, 0, 0, 0, 0})[0], 2.0f);
}

TEST(InterpretProgram, IntegerReductionsWrap) {
  TestRun test(R"(program() {
  buffer x: i8[2] input 0
  buffer s: i8[]
  buffer m: i8[]
  buffer y: i8[2]
  inputs (x = tensor x)
  reduction s[] over [d0 < 2] sum {
    t0 = load x[d0]
    yield t0
  }
  reduction m[] over [d0 < 2] min {
    t0 = load x[d0]
    yield t0
  }
  scan y[d0 < 2] axis 0 sum {
    t0 = load x[d0]
    yield t0
  }
  return (tensor s, tensor m, tensor y)
})");
  test.input<int8_t>(DType::kInt8, {2}, {100, 100});
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  EXPECT_EQ(test.output<int8_t>(0), std::vector<int8_t>{-56});
  EXPECT_EQ(test.output<int8_t>(1), std::vector<int8_t>{100});
  EXPECT_EQ(test.output<int8_t>(2), (std::vector<int8_t>{100, -56}));
}

TEST(InterpretProgram, BooleanReductions) {
  TestRun test(R"(program() {
  buffer x: bool[2, 2] input 0
  buffer any: bool[2]
  buffer all: bool[2]
  inputs (x = tensor x)
  reduction any[d0 < 2] over [d1 < 2] any {
    t0 = load x[d0, d1]
    yield t0
  }
  reduction all[d0 < 2] over [d1 < 2] all {
    t0 = load x[d0, d1]
    yield t0
  }
  return (tensor any, tensor all)
})");
  test.input<uint8_t>(DType::kBool, {2, 2}, {0, 1, 0, 0});
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  EXPECT_EQ(test.output<uint8_t>(0), (std::vector<uint8_t>{1, 0}));
  EXPECT_EQ(test.output<uint8_t>(1), (std::vector<uint8_t>{0, 0}));
}

TEST(InterpretProgram, ScanAlongTheFirstAxis) {
  TestRun test(R"(program() {
  buffer x: f32[3, 2] input 0
  buffer y: f32[3, 2] strides [1, 3]
  inputs (x = tensor x)
  scan y[d0 < 3, d1 < 2] axis 0 prod {
    t0 = load x[d0, d1]
    yield t0
  }
  return (tensor y)
})");
  test.input<float>(DType::kFloat32, {3, 2}, {1, 2, 3, 4, 5, 6});
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  EXPECT_EQ(test.output<float>(), (std::vector<float>{1, 2, 3, 8, 15, 48}));
  EXPECT_EQ(test.tensor(0).strides[1], 3);
}

TEST(InterpretProgram, ScansOfExtremaStayAtNaN) {
  TestRun test(R"(program() {
  buffer x: f32[4] input 0
  buffer y: f32[4]
  buffer z: f32[4]
  inputs (x = tensor x)
  scan y[d0 < 4] axis 0 max {
    t0 = load x[d0]
    yield t0
  }
  scan z[d0 < 4] axis 0 min {
    t0 = load x[d0]
    yield t0
  }
  return (tensor y, tensor z)
})");
  test.input<float>(DType::kFloat32, {4}, {1, 3, std::nanf(""), 2});
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  for (size_t k : {0u, 1u}) {
    const std::vector<float> y = test.output<float>(k);
    EXPECT_EQ(y[0], 1);
    EXPECT_EQ(y[1], k == 0 ? 3 : 1);
    EXPECT_TRUE(std::isnan(y[2]) && std::isnan(y[3]));
  }
}

TEST(InterpretProgram, HalvesRoundAtEachStep) {
  TestRun test(R"(program() {
  buffer x: bf16[2] input 0
  buffer y: bf16[2]
  inputs (x = tensor x)
  pointwise y[d0 < 2] {
    t0 = load x[d0]
    t1 = cast t0 to f32
    t2 = add t1, 0.01: f32
    t3 = cast t2 to bf16
    yield t3
  }
  return (tensor y)
})");
  test.input<uint16_t>(DType::kBFloat16, {2}, {0x3f80, 0x7fc1});
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  EXPECT_EQ(test.output<uint16_t>()[0], 0x3f81);  // torch: 1.0078125
  EXPECT_EQ(test.output<uint16_t>()[1] & 0x7f80, 0x7f80);
}

constexpr char kPad[] = R"(program(s0: size[0, inf]) {
  buffer x: f32[s0] input 0
  buffer y: f32[s0 + 2]
  inputs (x = tensor x)
  pointwise y[d0 < s0 + 2] {
    t0 = index d0
    t1 = ge t0, 1: i64
    t2 = index s0
    t3 = le t0, t2
    t4 = bit_and t1, t3
    t5 = load x[d0 - 1]
    t6 = masked t4, t5, -1.0: f32
    yield t6
  }
  return (tensor y)
})";

TEST(InterpretProgram, MaskedLoadsOnlyWhereTheConditionHolds) {
  TestRun test(kPad);
  test.input<float>(DType::kFloat32, {3}, {1, 2, 3});
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  EXPECT_EQ(test.output<float>(), (std::vector<float>{-1, 1, 2, 3, -1}));
  TestRun empty(kPad);
  empty.input<float>(DType::kFloat32, {0}, {});
  ASSERT_EQ(empty.run(), LITZ_OK) << empty.host.message;
  EXPECT_EQ(empty.output<float>(), (std::vector<float>{-1, -1}));
}

TEST(InterpretProgram, MasksNest) {
  TestRun test(R"(program() {
  buffer x: f32[2] input 0
  buffer i: i64[4] input 1
  buffer y: f32[4]
  inputs (x = tensor x, i = tensor i)
  pointwise y[d0 < 4] {
    t0 = index d0
    t1 = lt t0, 3: i64
    t2 = gt t0, 0: i64
    t3 = load i[d0]
    t4 = check_index t3 < 2
    t5 = load x[i0] with (i0 < 2 = t4)
    t6 = masked t2, t5, 7.0: f32
    t7 = masked t1, t6, 9.0: f32
    yield t7
  }
  return (tensor y)
})");
  test.input<float>(DType::kFloat32, {2}, {10, 20});
  test.input<int64_t>(DType::kInt64, {4}, {99, 1, 0, -5});
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  EXPECT_EQ(test.output<float>(), (std::vector<float>{7, 20, 10, 9}));
}

constexpr char kGather[] = R"(program(s0: size[0, inf]) {
  buffer x: f32[s0, 2] input 0
  buffer i: i64[3] input 1
  buffer y: f32[3, 2]
  inputs (x = tensor x, i = tensor i)
  pointwise y[d0 < 3, d1 < 2] {  # embedding: model.py:7
    t0 = load i[d0]
    t1 = check_index t0 < s0
    t2 = load x[i0, d1] with (i0 < s0 = t1)
    yield t2
  }
  return (tensor y)
})";

TEST(InterpretProgram, Gather) {
  TestRun test(kGather);
  test.input<float>(DType::kFloat32, {2, 2}, {1, 2, 3, 4});
  test.input<int64_t>(DType::kInt64, {3}, {1, 0, 1});
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  EXPECT_EQ(test.output<float>(), (std::vector<float>{3, 4, 1, 2, 3, 4}));
}

TEST(InterpretProgram, IndexOutOfRange) {
  for (int64_t bad : {int64_t{2}, int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    TestRun test(kGather);
    test.input<float>(DType::kFloat32, {2, 2}, {1, 2, 3, 4});
    test.input<int64_t>(DType::kInt64, {3}, {1, bad, 1});
    EXPECT_EQ(test.run(), LITZ_INDEX_OUT_OF_RANGE);
    EXPECT_EQ(test.host.message, "index out of range in embedding: model.py:7");
    EXPECT_EQ(test.host.live(), 0u);
  }
  TestRun empty(kGather);
  empty.input<float>(DType::kFloat32, {0, 2}, {});
  empty.input<int64_t>(DType::kInt64, {3}, {0, 0, 0});
  EXPECT_EQ(empty.run(), LITZ_INDEX_OUT_OF_RANGE);
}

std::vector<float> scatter(const std::string& mode) {
  TestRun test(R"(program() {
  buffer x: f32[3] input 0
  buffer i: i64[4] input 1
  buffer v: f32[4] input 2
  buffer y: f32[3]
  inputs (x = tensor x, i = tensor i, v = tensor v)
  scatter y from [d0 < 3] {
    t0 = load x[d0]
    yield t0
  } then [d0 < 4] )" +
               mode + R"( {
    t0 = load i[d0]
    t1 = check_index t0 < 3
    t2 = load v[d0]
    target [i0] with (i0 < 3 = t1)
    yield t2
  }
  return (tensor y)
})");
  test.input<float>(DType::kFloat32, {3}, {10, 20, 30});
  test.input<int64_t>(DType::kInt64, {4}, {0, 2, 0, 2});
  test.input<float>(DType::kFloat32, {4}, {1, 2, 3, 4});
  EXPECT_EQ(test.run(), LITZ_OK) << test.host.message;
  EXPECT_EQ(test.input_values<float>(0), (std::vector<float>{10, 20, 30}));
  return test.output<float>();
}

TEST(InterpretProgram, ScatterModes) {
  EXPECT_EQ(scatter("store"), (std::vector<float>{3, 20, 4}));
  EXPECT_EQ(scatter("add"), (std::vector<float>{14, 20, 36}));
  EXPECT_EQ(scatter("mul"), (std::vector<float>{30, 20, 240}));
  EXPECT_EQ(scatter("min"), (std::vector<float>{1, 20, 2}));
  EXPECT_EQ(scatter("max"), (std::vector<float>{10, 20, 30}));
}

TEST(InterpretProgram, ScatterAddOfBFloat16RoundsEachTime) {
  TestRun test(R"(program() {
  buffer x: bf16[1] input 0
  buffer y: bf16[1]
  inputs (x = tensor x)
  scatter y from [0 < 1] {
    t0 = load x[0]
    yield t0
  } then [d0 < 3] add {
    target [0]
    yield 1.0: bf16
  }
  return (tensor y)
})");
  test.input<uint16_t>(DType::kBFloat16, {1}, {0x4380});  // 256, where 1 is half a last bit
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  EXPECT_EQ(test.output<uint16_t>(), std::vector<uint16_t>{0x4380});
}

TEST(InterpretProgram, MutatesInputs) {
  TestRun test(R"(program() {
  buffer x: f32[2, 2] strides [1, 2] input 0
  buffer y: f32[2, 2]
  inputs (x = tensor x)
  pointwise y[d0 < 2, d1 < 2] {
    t0 = load x[d0, d1]
    yield t0
  }
  pointwise x[d0 < 2, d1 < 2] {
    t0 = load x[d0, d1]
    t1 = add t0, 1.0: f32
    yield t1
  }
  return (tensor y, tensor x)
})");
  test.strided_input<float>(DType::kFloat32, {2, 2}, {1, 2}, {1, 2, 3, 4});
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  EXPECT_EQ(test.output<float>(0), (std::vector<float>{1, 3, 2, 4}));
  EXPECT_EQ(test.input_values<float>(0), (std::vector<float>{2, 4, 3, 5}));
  EXPECT_EQ(test.value(1).kind, LITZ_SAME_INPUT);
  EXPECT_EQ(test.value(1).u.i, 0);
}

TEST(InterpretProgram, ScattersIntoAnInput) {
  TestRun test(R"(program() {
  buffer x: f32[3] input 0
  inputs (x = tensor x)
  scatter x[d0 < 2] add {
    target [2*d0]
    yield 5.0: f32
  }
  return (tensor x as f32[2] strides [2] offset 0)
})");
  test.input<float>(DType::kFloat32, {3}, {1, 2, 3});
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  EXPECT_EQ(test.input_values<float>(0), (std::vector<float>{6, 2, 8}));
  EXPECT_EQ(test.output<float>(0), (std::vector<float>{6, 8}));
  EXPECT_EQ(test.host.views, 1);
}

TEST(InterpretProgram, SeveralOutputsOfOneBuffer) {
  TestRun test(R"(program() {
  buffer y: f32[2, 3]
  inputs ()
  pointwise y[d0 < 2, d1 < 3] {
    t0 = index 3*d0 + d1
    t1 = cast t0 to f32
    yield t1
  }
  return (tensor y as f32[3] strides [1] offset 3, tensor y, tensor y as i32[2] strides [3] offset 1, tensor y)
})");
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  EXPECT_EQ(test.output<float>(0), (std::vector<float>{3, 4, 5}));
  EXPECT_EQ(test.output<float>(1), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(test.output<int32_t>(2), (std::vector<int32_t>{0x3f800000, 0x40800000}));
  EXPECT_EQ(test.value(3).kind, LITZ_SAME_OUTPUT);
  EXPECT_EQ(test.value(3).u.i, 1);
  EXPECT_EQ(test.host.views, 2);
  EXPECT_EQ(test.host.live(), 3u);
}

TEST(InterpretProgram, ViewOnlyOutputsReleaseTheirBase) {
  TestRun test(R"(program() {
  buffer y: f32[4]
  inputs ()
  pointwise y[d0 < 4] {
    yield 2.0: f32
  }
  return (tensor y as f32[2] strides [2] offset 1)
})");
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  EXPECT_EQ(test.host.live(), 1u);
}

TEST(InterpretProgram, ConstantsAreCopiedToOutputs) {
  TestRun test(R"(program() {
  buffer c: f16[2] constant "003c00c0"
  inputs ()
  return (tensor c)
})");
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  EXPECT_EQ(test.output<uint16_t>(), (std::vector<uint16_t>{0x3c00, 0xc000}));
  EXPECT_NE(test.tensor(0).data, test.interpreter.program().buffer(BufferId(0)).bytes.data());
}

TEST(InterpretProgram, FailedAllocationGivesTheHostsStatus) {
  TestRun test(kPad);
  test.input<float>(DType::kFloat32, {3}, {1, 2, 3});
  test.host.fail_allocations = true;
  EXPECT_EQ(test.run(), LITZ_OUT_OF_MEMORY);
  EXPECT_EQ(test.host.message, "no memory");
}

TEST(InterpretProgram, InputsOfAnotherShapeAreRefused) {
  TestRun test(kGather);
  test.input<float>(DType::kFloat32, {2, 3}, {1, 2, 3, 4, 5, 6});
  test.input<int64_t>(DType::kInt64, {3}, {0, 0, 0});
  EXPECT_EQ(test.run(), LITZ_ERROR);
  EXPECT_EQ(test.host.message, "size 1 of input x is 3, expected 2 (2)");
}

TEST(InterpretProgram, LoadsOutsideABufferAreCaught) {
  TestRun test(R"(program(s0: size[0, inf], s1: size[0, inf]) {
  buffer x: f32[s0] input 0
  buffer y: f32[s1]
  inputs (x = tensor x, n = int s1)
  pointwise y[d0 < s1] {
    t0 = load x[d0]
    yield t0
  }
  return (tensor y)
})");
  test.input<float>(DType::kFloat32, {2}, {1, 2}).integer(3);
  EXPECT_EQ(test.run(), LITZ_ERROR);
  EXPECT_NE(test.host.message.find("coordinate 2 of buffer x is outside its size 2"),
            std::string::npos);
}

TEST(InterpretProgram, ThreadsShareAnInterpreter) {
  TestRun first(kPad);
  const ProgramInterpreter& interpreter = first.interpreter;
  const auto work = [&](float value, bool* good) {
    TestHost host;
    const int64_t size = 500;
    const int64_t stride = 1;
    std::vector<float> memory(size, value);
    const LitzTensor x = {memory.data(), &size, &stride, 1, static_cast<LitzDType>(DType::kFloat32),
                          nullptr};
    LitzValue input{};
    input.kind = LITZ_TENSOR;
    input.u.tensor = &x;
    *good = true;
    for (int i = 0; i < 50; ++i) {
      LitzValue output{};
      LitzTensor tensor{};
      int64_t shapes[2];
      *good = *good && interpreter.run(&host.host, &input, &output, &tensor, shapes) == LITZ_OK &&
              static_cast<float*>(tensor.data)[500] == value &&
              static_cast<float*>(tensor.data)[501] == -1;
      host.host.release(&host, &tensor);
    }
  };
  bool good[2] = {};
  std::thread other(work, 1.0f, &good[0]);
  work(2.0f, &good[1]);
  other.join();
  EXPECT_TRUE(good[0]);
  EXPECT_TRUE(good[1]);
}

TEST(InterpretProgram, LongBodiesDoNotOverflowTheStack) {
  std::string body = "    t0 = load x[d0]\n";
  const int length = 20000;
  for (int i = 1; i <= length; ++i) {
    body += "    t" + std::to_string(i) + " = add t" + std::to_string(i - 1) + ", 1.0: f32\n";
  }
  TestRun test(
      "program() {\n  buffer x: f32[2] input 0\n  buffer y: f32[2]\n"
      "  inputs (x = tensor x)\n  pointwise y[d0 < 2] {\n" +
      body + "    yield t" + std::to_string(length) + "\n  }\n  return (tensor y)\n}");
  test.input<float>(DType::kFloat32, {2}, {0, 5});
  ASSERT_EQ(test.run(), LITZ_OK) << test.host.message;
  EXPECT_EQ(test.output<float>(), (std::vector<float>{20000, 20005}));
}

TEST(InterpretProgram, DivisionByZero) {
  constexpr char kQuotient[] = R"(program() {
  buffer x: i8[3] input 0
  buffer y: i8[3] input 1
  buffer z: i8[3]
  inputs (x = tensor x, y = tensor y)
  pointwise z[d0 < 3] {  # floor_divide: model.py:7
    t0 = load x[d0]
    t1 = load y[d0]
    t2 = check_divisor t1
    t3 = floor_div t0, t2
    t4 = ge t0, 0: i8
    t5 = masked t4, t3, t0
    yield t5
  }
  return (tensor z)
})";
  TestRun test(kQuotient);
  test.input<int8_t>(DType::kInt8, {3}, {7, 0, 9});
  test.input<int8_t>(DType::kInt8, {3}, {2, 1, 0});
  EXPECT_EQ(test.run(), LITZ_DIVISION_BY_ZERO);
  EXPECT_EQ(test.host.message,
            "ZeroDivisionError: integer division by zero in floor_divide: model.py:7");
  EXPECT_EQ(test.host.live(), 0u);

  // Where nothing is divided nothing is checked.
  TestRun unused(kQuotient);
  unused.input<int8_t>(DType::kInt8, {3}, {7, -3, -9});
  unused.input<int8_t>(DType::kInt8, {3}, {2, 0, 0});
  ASSERT_EQ(unused.run(), LITZ_OK) << unused.host.message;
  EXPECT_EQ(unused.output<int8_t>(), (std::vector<int8_t>{3, -3, -9}));
}

}  // namespace
}  // namespace litz
