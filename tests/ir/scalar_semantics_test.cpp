// Every expectation here is what eager PyTorch 2.13 on x86-64 gives, for one element and for 67.
#include "ir/scalar_semantics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ir/column_kernels.h"

namespace litz {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

template <class T>
DType dtype_of();
template <>
DType dtype_of<bool>() {
  return DType::kBool;
}
template <>
DType dtype_of<uint8_t>() {
  return DType::kUInt8;
}
template <>
DType dtype_of<int8_t>() {
  return DType::kInt8;
}
template <>
DType dtype_of<int16_t>() {
  return DType::kInt16;
}
template <>
DType dtype_of<int32_t>() {
  return DType::kInt32;
}
template <>
DType dtype_of<int64_t>() {
  return DType::kInt64;
}
template <>
DType dtype_of<float>() {
  return DType::kFloat32;
}
template <>
DType dtype_of<double>() {
  return DType::kFloat64;
}

template <class Out, class In>
Out apply(ExprOp op, In a) {
  Out out;
  const void* operands[] = {&a};
  find_column_kernel(op, dtype_of<In>(), dtype_of<Out>())(&out, operands, 1);
  return out;
}

template <class T>
T apply(ExprOp op, T a, T b) {
  T out;
  const void* operands[] = {&a, &b};
  find_column_kernel(op, dtype_of<T>(), dtype_of<T>())(&out, operands, 1);
  return out;
}

// Equal, both NaN, or apart by at most `tolerance` of the value; zeros by their sign too.
void expect_same(double actual, double expected, double tolerance, const std::string& what) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(actual)) << what << " is " << actual;
  } else if (expected == 0 || std::isinf(expected)) {
    EXPECT_EQ(actual, expected) << what;
    EXPECT_EQ(std::signbit(actual), std::signbit(expected)) << what;
  } else {
    EXPECT_NEAR(actual, expected, std::fabs(expected) * tolerance) << what;
  }
}

TEST(ScalarSemantics, FloatToIntegerCasts) {
  const double values[] = {kNan,  kInf,    -kInf,        300.7, -300.7, -1.5,   128,     255.9,
                           40000, 65536.5, 3000000007.0, -3e9,  1e10,   9.3e18, -9.3e18, 1e30};
  const std::vector<int64_t> int8 = {0, 0, 0, 44, -44, -1, -128, -1, 64, 0, 0, 0, 0, 0, 0, 0};
  const std::vector<int64_t> uint8 = {0, 0, 0, 44, 212, 255, 128, 255, 64, 0, 7, 0, 0, 0, 0, 0};
  const std::vector<int64_t> int16 = {0,      0, 0, 300, -300, -1, 128, 255,
                                      -25536, 0, 0, 0,   0,    0,  0,   0};
  constexpr int64_t kLow32 = INT32_MIN;
  const std::vector<int64_t> int32 = {kLow32, kLow32, kLow32, 300,   -300,   -1,
                                      128,    255,    40000,  65536, kLow32, kLow32,
                                      kLow32, kLow32, kLow32, kLow32};
  constexpr int64_t kLow64 = INT64_MIN;
  const std::vector<int64_t> int64 = {kLow64,      kLow64, kLow64, 300,   -300,       -1,
                                      128,         255,    40000,  65536, 3000000007, -3000000000,
                                      10000000000, kLow64, kLow64, kLow64};
  for (size_t i = 0; i < std::size(values); ++i) {
    const double v = values[i];
    EXPECT_EQ((apply<int8_t>(ExprOp::kCast, v)), int8[i]) << v;
    EXPECT_EQ((apply<uint8_t>(ExprOp::kCast, v)), uint8[i]) << v;
    EXPECT_EQ((apply<int16_t>(ExprOp::kCast, v)), int16[i]) << v;
    EXPECT_EQ((apply<int32_t>(ExprOp::kCast, v)), int32[i]) << v;
    EXPECT_EQ((apply<int64_t>(ExprOp::kCast, v)), int64[i]) << v;
    EXPECT_TRUE((apply<bool>(ExprOp::kCast, v))) << v;
  }
  EXPECT_FALSE((apply<bool>(ExprOp::kCast, -0.0)));
  // float32 4.3e9 is 4300000256.
  EXPECT_EQ((apply<int64_t>(ExprOp::kCast, 4.3e9f)), 4300000256);
}

TEST(ScalarSemantics, IntegerCasts) {
  EXPECT_EQ((apply<uint8_t>(ExprOp::kCast, int64_t{-1})), 255);
  EXPECT_EQ((apply<uint8_t>(ExprOp::kCast, int64_t{300})), 44);
  EXPECT_EQ((apply<int8_t>(ExprOp::kCast, uint8_t{200})), -56);
  EXPECT_EQ((apply<float>(ExprOp::kCast, int64_t{16777217})), 16777216.0f);
  EXPECT_EQ((apply<float>(ExprOp::kCast, INT64_MAX)), 9.223372036854776e18f);
  EXPECT_TRUE((apply<bool>(ExprOp::kCast, int64_t{256})));
  EXPECT_EQ((apply<int32_t>(ExprOp::kCast, true)), 1);
}

TEST(ScalarSemantics, CastsToHalvesGoThroughFloat32) {
  const auto cast = [](DType to, double a) {
    float out;
    const void* operands[] = {&a};
    find_column_kernel(ExprOp::kCast, DType::kFloat64, to)(&out, operands, 1);
    return out;
  };
  EXPECT_EQ(cast(DType::kBFloat16, 1 + 0x1p-8 + 0x1p-40), 1.0f);
  EXPECT_EQ(cast(DType::kFloat16, 1 + 0x1p-11 + 0x1p-40), 1.0f);
  EXPECT_EQ(cast(DType::kFloat16, 70000), std::numeric_limits<float>::infinity());
}

TEST(ScalarSemantics, HalvesRoundToNearestEven) {
  struct Row {
    float value;
    uint16_t float16;
    uint16_t bfloat16;
  };
  const Row rows[] = {{2.9802322387695312e-08f, 0x0000, 0x3300},
                      {2.980232949312267e-08f, 0x0001, 0x3300},
                      {8.940696716308594e-08f, 0x0002, 0x33c0},
                      {6.102025508880615e-05f, 0x0400, 0x3880},
                      {65519.99609375f, 0x7bff, 0x4780},
                      {65520.0f, 0x7c00, 0x4780},
                      {-9.99999993922529e-09f, 0x8000, 0xb22c},
                      {2049.0f, 0x6800, 0x4500},
                      {2051.0f, 0x6802, 0x4500}};
  for (const Row& row : rows) {
    EXPECT_EQ(float_to_float16(row.value), row.float16) << row.value;
    EXPECT_EQ(float_to_bfloat16(row.value), row.bfloat16) << row.value;
  }
}

TEST(ScalarSemantics, HalvesSurviveARoundTrip) {
  double sum = 0;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    EXPECT_EQ(float_to_float16(float16_to_float(half)), half);
    EXPECT_EQ(float_to_bfloat16(bfloat16_to_float(half)), half);
    const float value = float16_to_float(half);
    if (std::isfinite(value)) sum += std::fabs(static_cast<double>(value));
  }
  EXPECT_EQ(sum, 201261055.875);
}

template <class T>
void check_shifts(T a, const std::vector<int64_t>& counts, const std::vector<int64_t>& left,
                  const std::vector<int64_t>& right) {
  for (size_t i = 0; i < counts.size(); ++i) {
    const T count = static_cast<T>(counts[i]);
    EXPECT_EQ(apply(ExprOp::kShiftLeft, a, count), left[i]) << int64_t{a} << " " << counts[i];
    EXPECT_EQ(apply(ExprOp::kShiftRight, a, count), right[i]) << int64_t{a} << " " << counts[i];
  }
}

TEST(ScalarSemantics, Shifts) {
  check_shifts<uint8_t>(255, {0, 1, 7, 8, 255}, {255, 254, 128, 0, 0}, {255, 127, 1, 0, 0});
  check_shifts<int8_t>(-1, {0, 1, 7, 8, -1}, {-1, -2, -128, 0, 0}, {-1, -1, -1, -1, -1});
  check_shifts<int8_t>(5, {1, 7, 8, 64, -2}, {10, -128, 0, 0, 0}, {2, 0, 0, 0, 0});
  check_shifts<int16_t>(-128, {1, 15, 16, -1}, {-256, 0, 0, 0}, {-64, -1, -1, -1});
  check_shifts<int32_t>(INT32_MIN, {0, 1, 31, 32, -1}, {INT32_MIN, 0, 0, 0, 0},
                        {INT32_MIN, -1073741824, -1, -1, -1});
  check_shifts<int64_t>(1, {63, 64, -1}, {INT64_MIN, 0, 0}, {0, 0, 0});
}

template <class T>
void check_divisions(T a, T b, T floor, T trunc, T remainder, T fmod) {
  EXPECT_EQ(apply(ExprOp::kFloorDiv, a, b), floor) << int64_t{a} << " " << int64_t{b};
  EXPECT_EQ(apply(ExprOp::kTruncDiv, a, b), trunc) << int64_t{a} << " " << int64_t{b};
  EXPECT_EQ(apply(ExprOp::kRemainder, a, b), remainder) << int64_t{a} << " " << int64_t{b};
  EXPECT_EQ(apply(ExprOp::kFmod, a, b), fmod) << int64_t{a} << " " << int64_t{b};
}

TEST(ScalarSemantics, IntegerDivisions) {
  check_divisions<int32_t>(7, 2, 3, 3, 1, 1);
  check_divisions<int32_t>(-7, 2, -4, -3, 1, -1);
  check_divisions<int32_t>(7, -2, -4, -3, -1, 1);
  check_divisions<int32_t>(-7, -2, 3, 3, -1, -1);
  check_divisions<int8_t>(-128, -1, -128, -128, 0, 0);
  check_divisions<uint8_t>(200, 7, 28, 28, 4, 4);
  // Eager raises ZeroDivisionError, and crashes for the smallest integer by -1.
  check_divisions<int64_t>(5, 0, 0, 0, 0, 0);
  check_divisions<int64_t>(INT64_MIN, -1, INT64_MIN, INT64_MIN, 0, 0);
  check_divisions<int32_t>(INT32_MIN, -1, INT32_MIN, INT32_MIN, 0, 0);
}

TEST(ScalarSemantics, FloatDivisions) {
  struct Row {
    double a, b, floor, trunc, remainder, fmod;
  };
  const Row rows[] = {{5.5, 2, 2, 2, 1.5, 1.5},
                      {-5.5, 2, -3, -2, 0.5, -1.5},
                      {5.5, -2, -3, -2, -0.5, 1.5},
                      {-5.5, -2, 2, 2, -1.5, -1.5},
                      {0, 2, 0, 0, 0, 0},
                      {-0.0, 2, -0.0, -0.0, -0.0, -0.0},
                      {0, -2, -0.0, -0.0, 0, 0},
                      {1, 0, kInf, kInf, kNan, kNan},
                      {-1, 0, -kInf, -kInf, kNan, kNan},
                      {0, 0, kNan, kNan, kNan, kNan},
                      {1, kInf, 0, 0, 1, 1},
                      {-1, kInf, -1, -0.0, kInf, -1},
                      {1, -kInf, -1, -0.0, -kInf, 1},
                      {kInf, 2, kNan, kInf, kNan, kNan},
                      {-kInf, 2, kNan, -kInf, kNan, kNan},
                      {kNan, 2, kNan, kNan, kNan, kNan},
                      {2, kNan, kNan, kNan, kNan, kNan},
                      {-6, 2, -3, -3, -0.0, -0.0},
                      {0.3, 0.1, 2, 2, 0.09999999999999998, 0.09999999999999998}};
  for (const Row& row : rows) {
    const std::string what = std::to_string(row.a) + " by " + std::to_string(row.b);
    expect_same(apply(ExprOp::kFloorDiv, row.a, row.b), row.floor, 0, "floor " + what);
    expect_same(apply(ExprOp::kTruncDiv, row.a, row.b), row.trunc, 0, "trunc " + what);
    expect_same(apply(ExprOp::kRemainder, row.a, row.b), row.remainder, 0, "remainder " + what);
    expect_same(apply(ExprOp::kFmod, row.a, row.b), row.fmod, 0, "fmod " + what);
  }
  EXPECT_EQ(apply(ExprOp::kFloorDiv, 0.3f, 0.1f), 3.0f);
  EXPECT_EQ(apply(ExprOp::kFloorDiv, 1e30f, 3.0f), 3.333333383491554e29f);
  EXPECT_EQ(apply(ExprOp::kRemainder, 0.3f, 0.1f), 7.450580596923828e-09f);
}

TEST(ScalarSemantics, Powers) {
  EXPECT_EQ((apply<int8_t>(ExprOp::kPow, 2, 10)), 0);
  EXPECT_EQ((apply<int8_t>(ExprOp::kPow, 3, 40)), 33);
  EXPECT_EQ((apply<uint8_t>(ExprOp::kPow, 254, 3)), 248);
  EXPECT_EQ((apply<uint8_t>(ExprOp::kPow, 2, 255)), 0);
  EXPECT_EQ((apply<int64_t>(ExprOp::kPow, 3, 40)), -6289078614652622815);
  EXPECT_EQ((apply<int32_t>(ExprOp::kPow, -2, 3)), -8);
  EXPECT_EQ((apply<int32_t>(ExprOp::kPow, 0, 0)), 1);
  EXPECT_EQ((apply<int32_t>(ExprOp::kPow, 2, -1)), 0);
  EXPECT_EQ((apply<int32_t>(ExprOp::kPow, 1, -3)), 1);
  EXPECT_EQ((apply<int32_t>(ExprOp::kPow, -1, -3)), -1);
  EXPECT_EQ((apply<int32_t>(ExprOp::kPow, -1, -2)), 1);
  EXPECT_EQ((apply<int32_t>(ExprOp::kPow, 0, -1)), 0);
  EXPECT_EQ((apply<double>(ExprOp::kPow, 0, -2)), kInf);
  EXPECT_EQ((apply<double>(ExprOp::kPow, -1, kInf)), 1);
  EXPECT_EQ((apply<double>(ExprOp::kPow, kNan, 0)), 1);
  EXPECT_EQ((apply<float>(ExprOp::kPow, 0.3f, 0.1f)), 0.8865681290626526f);
}

TEST(ScalarSemantics, SignsAndMagnitudes) {
  EXPECT_EQ((apply<int8_t>(ExprOp::kAbs, int8_t{-128})), -128);
  EXPECT_EQ((apply<int64_t>(ExprOp::kAbs, INT64_MIN)), INT64_MIN);
  EXPECT_EQ((apply<int32_t>(ExprOp::kNeg, INT32_MIN)), INT32_MIN);
  EXPECT_EQ((apply<uint8_t>(ExprOp::kNeg, uint8_t{1})), 255);
  expect_same(apply<double>(ExprOp::kNeg, 0.0), -0.0, 0, "neg 0");
  EXPECT_EQ((apply<int8_t>(ExprOp::kSign, int8_t{-128})), -1);
  EXPECT_EQ((apply<double>(ExprOp::kSign, kNan)), 0);
  expect_same(apply<double>(ExprOp::kSign, -0.0), 0.0, 0, "sign -0");
  EXPECT_EQ((apply<double>(ExprOp::kSign, -3.0)), -1);
  EXPECT_TRUE((apply<bool>(ExprOp::kSignBit, -0.0)));
  EXPECT_TRUE((apply<bool>(ExprOp::kSignBit, -kNan)));
  EXPECT_FALSE((apply<bool>(ExprOp::kSignBit, kNan)));
  EXPECT_TRUE((apply<bool>(ExprOp::kSignBit, int8_t{-128})));
  EXPECT_FALSE((apply<bool>(ExprOp::kSignBit, uint8_t{200})));
  EXPECT_EQ((apply<double>(ExprOp::kRound, 0.5)), 0);
  EXPECT_EQ((apply<double>(ExprOp::kRound, 1.5)), 2);
  EXPECT_EQ((apply<double>(ExprOp::kRound, 2.5)), 2);
  expect_same(apply<double>(ExprOp::kRound, -0.5), -0.0, 0, "round -0.5");
  EXPECT_EQ((apply<bool>(ExprOp::kBitNot, true)), false);
  EXPECT_EQ((apply<uint8_t>(ExprOp::kBitNot, uint8_t{1})), 254);
}

TEST(ScalarSemantics, MinimumAndMaximum) {
  expect_same(apply(ExprOp::kMax, 0.0, -0.0), 0.0, 0, "max 0 -0");
  expect_same(apply(ExprOp::kMax, -0.0, 0.0), -0.0, 0, "max -0 0");
  expect_same(apply(ExprOp::kMin, 0.0, -0.0), 0.0, 0, "min 0 -0");
  expect_same(apply(ExprOp::kMin, -0.0, 0.0), -0.0, 0, "min -0 0");
  expect_same(apply(ExprOp::kMax, kNan, 2.0), kNan, 0, "max nan 2");
  expect_same(apply(ExprOp::kMin, 2.0, kNan), kNan, 0, "min 2 nan");
  EXPECT_EQ(apply(ExprOp::kMax, true, false), true);
  EXPECT_EQ(apply(ExprOp::kMin, true, false), false);
}

TEST(ScalarSemantics, Functions) {
  const double arguments[] = {-2.5, -0.75, -1e-3, 0.0, 0.3, 0.9, 1.5, 7.25, 40.0};
  struct Row {
    ExprOp op;
    std::vector<double> values;
  };
  const Row rows[] = {
      {ExprOp::kExp,
       {0.0820849986238988, 0.4723665527410147, 0.999000499833375, 1.0, 1.3498588075760032,
        2.45960311115695, 4.4816890703380645, 1408.1048482046956, 2.3538526683702e+17}},
      {ExprOp::kExp2,
       {0.17677669529663687, 0.5946035575013605, 0.9993070929904525, 1.0, 1.2311444133449163,
        1.8660659830736148, 2.82842712474619, 152.2185107203483, 1099511627776.0}},
      {ExprOp::kExpm1,
       {-0.9179150013761012, -0.5276334472589853, -0.0009995001666250085, 0.0, 0.3498588075760031,
        1.4596031111569496, 3.481689070338065, 1407.1048482046956, 2.3538526683702e+17}},
      {ExprOp::kLog,
       {kNan, kNan, kNan, -kInf, -1.2039728043259361, -0.10536051565782628, 0.4054651081081644,
        1.9810014688665833, 3.6888794541139363}},
      {ExprOp::kLog2,
       {kNan, kNan, kNan, -kInf, -1.7369655941662063, -0.15200309344504995, 0.5849625007211562,
        2.8579809951275723, 5.321928094887363}},
      {ExprOp::kLog10,
       {kNan, kNan, kNan, -kInf, -0.5228787452803376, -0.045757490560675115, 0.17609125905568124,
        0.8603380065709937, 1.6020599913279623}},
      {ExprOp::kLog1p,
       {kNan, -1.3862943611198906, -0.0010005003335835335, 0.0, 0.26236426446749106,
        0.6418538861723948, 0.9162907318741551, 2.1102132003465894, 3.713572066704308}},
      {ExprOp::kSin,
       {-0.5984721441039565, -0.6816387600233341, -0.0009999998333333417, 0.0, 0.29552020666133955,
        0.7833269096274834, 0.9974949866040544, 0.8230808790115055, 0.7451131604793488}},
      {ExprOp::kCos,
       {-0.8011436155469337, 0.7316888688738209, 0.9999995000000417, 1.0, 0.955336489125606,
        0.6216099682706644, 0.0707372016677029, 0.5679241732886948, -0.6669380616522619}},
      {ExprOp::kTan,
       {0.7470222972386603, -0.9315964599440725, -0.0010000003333334668, 0.0, 0.30933624960962325,
        1.2601582175503392, 14.101419947171719, 1.4492795301268253, -1.117214930923896}},
      {ExprOp::kAsin,
       {kNan, -0.848062078981481, -0.0010000001666667416, 0.0, 0.30469265401539747,
        1.1197695149986342, kNan, kNan, kNan}},
      {ExprOp::kAcos,
       {kNan, 2.4188584057763776, 1.5717963269615634, 1.5707963267948966, 1.2661036727794992,
        0.45102681179626236, kNan, kNan, kNan}},
      {ExprOp::kAtan,
       {-1.1902899496825317, -0.6435011087932844, -0.0009999996666668668, 0.0, 0.2914567944778671,
        0.7328151017865066, 0.982793723247329, 1.433730152484709, 1.5458015331759765}},
      {ExprOp::kSinh,
       {-6.0502044810397875, -0.82231673193583, -0.001000000166666675, 0.0, 0.3045202934471426,
        1.0265167257081753, 2.1292794550948173, 704.0520690151534, 1.1769263341851e+17}},
      {ExprOp::kCosh,
       {6.132289479663686, 1.2946832846768448, 1.0000005000000416, 1.0, 1.0453385141288605,
        1.4330863854487743, 2.352409615243247, 704.0527791895422, 1.1769263341851e+17}},
      {ExprOp::kTanh,
       {-0.9866142981514303, -0.6351489523872873, -0.0009999996666668, 0.0, 0.2913126124515909,
        0.7162978701990245, 0.9051482536448664, 0.9999989913051835, 1.0}},
      {ExprOp::kAsinh,
       {-1.6472311463710958, -0.6931471805599453, -0.0009999998333334083, 0.0, 0.29567304756342244,
        0.8088669356527824, 1.1947632172871094, 2.678871313462426, 4.382182848065498}},
      {ExprOp::kAcosh,
       {kNan, kNan, kNan, kNan, kNan, kNan, 0.9624236501192069, 2.669358110903154,
        4.381870348040067}},
      {ExprOp::kAtanh,
       {kNan, -0.9729550745276566, -0.0010000003333335333, 0.0, 0.3095196042031117,
        1.4722194895832204, kNan, kNan, kNan}},
      {ExprOp::kErf,
       {-0.999593047982555, -0.7111556336535151, -0.0011283787909692365, 0.0, 0.3286267594591274,
        0.7969082124228322, 0.9661051464753108, 1.0, 1.0}},
      {ExprOp::kErfc,
       {1.999593047982555, 1.7111556336535152, 1.0011283787909693, 1.0, 0.6713732405408726,
        0.20309178757716786, 0.033894853524689274, 1.1466900814815012e-24, 0.0}},
      {ExprOp::kErfinv,
       {kNan, -0.8134198475976185, -0.0008862271574665521, 0.0, 0.2724627147267543,
        1.1630871536766743, kNan, kNan, kNan}},
      {ExprOp::kLgamma,
       {-0.05624371649767405, 1.5757045971498584, 6.908333317515028, kInf, 1.0957979948180756,
        0.06637623973474295, -0.12078223763524522, 7.0521854507385395, 106.63176026064346}},
      {ExprOp::kDigamma,
       {1.1031566406452433, -2.8941202000429316, 999.4211381978913, -kInf, -3.502524222200133,
        -0.7549269499470513, 0.036489973978576194, 1.910453526883736, 3.6763273740348428}},
      {ExprOp::kSigmoid,
       {0.07585818002124355, 0.320821300824607, 0.4997500000208333, 0.5, 0.574442516811659,
        0.7109495026250039, 0.8175744761936437, 0.9992903296008995, 1.0}},
      {ExprOp::kRsqrt,
       {kNan, kNan, kNan, kInf, 1.8257418583505538, 1.0540925533894598, 0.8164965809277261,
        0.3713906763541037, 0.15811388300841897}},
  };
  for (const Row& row : rows) {
    for (size_t i = 0; i < std::size(arguments); ++i) {
      const std::string what =
          std::string(to_string(row.op)) + " of " + std::to_string(arguments[i]);
      expect_same(apply<double>(row.op, arguments[i]), row.values[i], 4e-15, what);
      if (std::fabs(row.values[i]) > std::numeric_limits<float>::max()) continue;
      const auto argument = static_cast<float>(arguments[i]);
      if (static_cast<double>(argument) != arguments[i]) continue;
      expect_same(apply<float>(row.op, argument), row.values[i], 6e-8, what + " in float32");
    }
  }
}

TEST(ScalarSemantics, FunctionsAtTheirEdges) {
  EXPECT_EQ((apply<double>(ExprOp::kErfinv, 1.0)), kInf);
  EXPECT_EQ((apply<double>(ExprOp::kErfinv, -1.0)), -kInf);
  expect_same(apply<double>(ExprOp::kErfinv, 2.0), kNan, 0, "erfinv 2");
  expect_same(apply<double>(ExprOp::kErfinv, 1e-300), 8.86226925452758e-301, 1e-15, "erfinv");
  expect_same(apply<double>(ExprOp::kErfinv, 1 - 0x1p-53), 5.8635847487551676, 1e-15, "erfinv");
  expect_same(apply<double>(ExprOp::kErfinv, 0.9999999), 3.7665625816384707, 1e-15, "erfinv");
  EXPECT_EQ((apply<double>(ExprOp::kDigamma, 0.0)), -kInf);
  EXPECT_EQ((apply<double>(ExprOp::kDigamma, -0.0)), kInf);
  expect_same(apply<double>(ExprOp::kDigamma, -1.0), kNan, 0, "digamma -1");
  EXPECT_EQ((apply<double>(ExprOp::kDigamma, kInf)), kInf);
  EXPECT_EQ((apply<double>(ExprOp::kLgamma, -1.0)), kInf);
  EXPECT_EQ((apply<float>(ExprOp::kSigmoid, -104.0f)), 0.0f);
  EXPECT_EQ((apply<float>(ExprOp::kSigmoid, 100.0f)), 1.0f);
  EXPECT_EQ((apply<double>(ExprOp::kRsqrt, -0.0)), -kInf);
  EXPECT_EQ((apply<double>(ExprOp::kReciprocal, -0.0)), -kInf);
}

// The known answers of the paper's library, Random123.
TEST(ScalarSemantics, PhiloxGivesTheKnownAnswers) {
  const auto block = [](uint64_t seed, uint64_t counter, uint64_t high) {
    const semantics::PhiloxBlock b = semantics::philox_block(seed, counter, high);
    return std::vector<uint32_t>(b.words, b.words + 4);
  };
  using Words = std::vector<uint32_t>;
  EXPECT_EQ(block(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(block(~0ull, ~0ull, ~0ull), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(block(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(ScalarSemantics, RandomWordsAreThoseOfBlocks) {
  constexpr int64_t kSeed = -0x123456789abcdef;
  for (int64_t number : {int64_t{0}, int64_t{5}, int64_t{1} << 40, int64_t{-3}}) {
    const auto words = [](int64_t index) {
      return semantics::philox_block(static_cast<uint64_t>(kSeed),
                                     static_cast<uint64_t>(index) >> 2)
          .words[index & 3];
    };
    const void* operands[] = {&kSeed, &number};
    uint32_t word = 0;
    find_column_kernel(ExprOp::kPhilox32, DType::kInt64, DType::kInt32)(&word, operands, 1);
    EXPECT_EQ(word, words(number));
    if (number < 0) continue;
    EXPECT_EQ(static_cast<uint64_t>(apply<int64_t>(ExprOp::kPhilox64, kSeed, number)),
              words(2 * number) | uint64_t{words(2 * number + 1)} << 32);
  }
}

}  // namespace
}  // namespace litz
