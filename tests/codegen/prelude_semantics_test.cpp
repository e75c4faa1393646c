// What the prelude's functions compute: scalars and vectors agree bit for bit, tails touch nothing
// beyond them, integers and conversions behave as eager PyTorch does.
#include <gtest/gtest.h>
#include <algorithm>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "ir/scalar_semantics.h"
#include "prelude_harness.h"

namespace litz::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

constexpr DType kDTypes[] = {DType::kUInt8,    DType::kInt8,    DType::kInt16,
                             DType::kInt32,    DType::kInt64,   DType::kFloat16,
                             DType::kBFloat16, DType::kFloat32, DType::kFloat64};

constexpr PreludeFn kFns[] = {
#define LITZ_TEST_FN(name, ...) PreludeFn::name,
    LITZ_PRELUDE_FNS(LITZ_TEST_FN)
#undef LITZ_TEST_FN
};

std::string name_of(DType dtype) { return std::string(to_string(dtype)); }

// Bit patterns of every kind, from a fixed generator: raw ones, small numbers, limits.
std::vector<uint8_t> sample_bytes(DType dtype, size_t count, uint64_t seed) {
  std::vector<uint8_t> bytes(count * size_of(dtype));
  uint64_t state = seed * 977 + 1;
  for (size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const uint64_t random = state >> 20;
    const double small = static_cast<double>(static_cast<int64_t>(random % 2001) - 1000) / 64.0;
    const double limits[] = {0.0, -0.0, 1.0, -1.0, kInf, -kInf, kNan, 0.5};
    const bool raw = random % 3 == 0;
    const double value = random % 3 == 1 ? limits[random / 3 % 8] : small;
    uint64_t bits = random ^ (state << 7);
    if (!raw) {
      switch (dtype) {
        case DType::kFloat64:
          bits = std::bit_cast<uint64_t>(value);
          break;
        case DType::kFloat32:
          bits = std::bit_cast<uint32_t>(static_cast<float>(value));
          break;
        case DType::kBFloat16:
          bits = std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16;
          break;
        case DType::kFloat16:
          break;
        default:
          bits = static_cast<uint64_t>(static_cast<int64_t>(random % 21) - 10);
      }
    }
    std::memcpy(&bytes[i * size_of(dtype)], &bits, size_of(dtype));
  }
  return bytes;
}

bool is_nan(DType dtype, const uint8_t* p) {
  uint64_t bits = 0;
  std::memcpy(&bits, p, size_of(dtype));
  switch (dtype) {
    case DType::kFloat64:
      return std::isnan(std::bit_cast<double>(bits));
    case DType::kFloat32:
      return std::isnan(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case DType::kBFloat16:
      return std::isnan(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
    case DType::kFloat16:
      return (bits & 0x7fff) > 0x7c00;
    default:
      return false;
  }
}

constexpr uint8_t kGuard = 0xa5;

// Runs a kernel over n elements and checks that it wrote nothing after them.
std::vector<uint8_t> run_map(const Library& library, const std::string& kernel, DType from,
                             DType to, int64_t n) {
  const std::vector<uint8_t> x = sample_bytes(from, n, 1);
  const std::vector<uint8_t> y = sample_bytes(from, n, 2);
  const std::vector<uint8_t> z = sample_bytes(from, n, 3);
  std::vector<uint8_t> r(n * size_of(to) + 64, kGuard);
  library.find<MapKernel>(kernel)(x.data(), y.data(), z.data(), r.data(), n);
  for (size_t i = n * size_of(to); i < r.size(); ++i) EXPECT_EQ(r[i], kGuard) << kernel;
  r.resize(n * size_of(to));
  return r;
}

void expect_same(const std::vector<uint8_t>& expected, const std::vector<uint8_t>& got, DType dtype,
                 const std::string& kernel) {
  const size_t size = size_of(dtype);
  for (size_t i = 0; i < expected.size(); i += size) {
    if (is_nan(dtype, &expected[i]) && is_nan(dtype, &got[i])) continue;
    ASSERT_EQ(std::memcmp(&expected[i], &got[i], size), 0) << kernel << " at element " << i / size;
  }
}

TEST(Prelude, VectorsAndTailsAgreeWithScalars) {
  for (const PreludeTarget& target : runnable_targets()) {
    for (DType dtype : kDTypes) {
      Prelude prelude(target);
      std::string kernels;
      const int native = prelude.native_lanes(static_cast<int>(size_of(dtype)));
      std::vector<std::pair<std::string, std::string>> pairs;
      for (PreludeFn fn : kFns) {
        if (!supports(fn, dtype)) continue;
        // Half floats share the functions of float32; what they add is loads and stores.
        if (is_half(dtype) && fn > PreludeFn::kAbs) continue;
        const std::string scalar = add_map_kernel(prelude, kernels, fn, dtype, 1);
        // Less than a register, one register, and two.
        for (int lanes : {native / 2, native, 2 * native}) {
          if (lanes < 2 || lanes > 64) continue;
          pairs.emplace_back(scalar, add_map_kernel(prelude, kernels, fn, dtype, lanes));
        }
      }
      const Library library(prelude.text() + kernels, target);
      for (const auto& [scalar, vector] : pairs) {
        for (int64_t n : {1, native - 1, native + 1, 8 * native - 1, 1021}) {
          expect_same(run_map(library, scalar, dtype, dtype, n),
                      run_map(library, vector, dtype, dtype, n), dtype, vector);
        }
      }
    }
  }
}

TEST(Prelude, VectorConversionsAgreeWithScalars) {
  for (const PreludeTarget& target : runnable_targets()) {
    for (DType from : kDTypes) {
      Prelude prelude(target);
      std::string kernels;
      const int native = prelude.native_lanes(4);
      std::vector<std::tuple<DType, std::string, std::string>> pairs;
      for (DType to : kDTypes) {
        const std::string scalar = add_convert_kernel(prelude, kernels, from, to, 1);
        for (int lanes : {2, native, 2 * native}) {
          pairs.emplace_back(to, scalar, add_convert_kernel(prelude, kernels, from, to, lanes));
        }
      }
      const Library library(prelude.text() + kernels, target);
      for (const auto& [to, scalar, vector] : pairs) {
        expect_same(run_map(library, scalar, from, to, 1021),
                    run_map(library, vector, from, to, 1021), to, vector);
      }
    }
  }
}

// One function of one dtype as a C++ function, in the widest native vector of the host.
template <class T>
class Evaluator {
 public:
  Evaluator(PreludeFn fn, DType dtype) : prelude_(host_target()) {
    name_ = add_map_kernel(prelude_, kernels_, fn, dtype, 16 / static_cast<int>(sizeof(T)));
    library_.emplace(prelude_.text() + kernels_, host_target());
  }
  T operator()(T x, T y = T()) const {
    T r;
    library_->find<MapKernel>(name_)(&x, &y, nullptr, &r, 1);
    return r;
  }

 private:
  Prelude prelude_;
  std::string kernels_;
  std::string name_;
  std::optional<Library> library_;
};

// Values that eager PyTorch gives, but for division by zero and smallest / -1, where it raises or
// traps.
TEST(Prelude, IntegerDivision) {
  constexpr int64_t kSmallest = std::numeric_limits<int64_t>::min();
  const Evaluator<int64_t> floor_div(PreludeFn::kFloorDiv, DType::kInt64);
  EXPECT_EQ(floor_div(-7, 2), -4);
  EXPECT_EQ(floor_div(7, -2), -4);
  EXPECT_EQ(floor_div(-8, 2), -4);
  EXPECT_EQ(floor_div(5, 0), 0);
  EXPECT_EQ(floor_div(kSmallest, -1), kSmallest);
  const Evaluator<int64_t> trunc_div(PreludeFn::kTruncDiv, DType::kInt64);
  EXPECT_EQ(trunc_div(-7, 2), -3);
  EXPECT_EQ(trunc_div(5, 0), 0);
  EXPECT_EQ(trunc_div(kSmallest, -1), kSmallest);
  const Evaluator<int64_t> remainder(PreludeFn::kRemainder, DType::kInt64);
  EXPECT_EQ(remainder(-7, 2), 1);
  EXPECT_EQ(remainder(7, -2), -1);
  EXPECT_EQ(remainder(7, 0), 0);
  EXPECT_EQ(remainder(kSmallest, -1), 0);
  const Evaluator<int64_t> fmod(PreludeFn::kFmod, DType::kInt64);
  EXPECT_EQ(fmod(-7, 2), -1);
  EXPECT_EQ(fmod(kSmallest, -1), 0);
  const Evaluator<int8_t> narrow(PreludeFn::kFloorDiv, DType::kInt8);
  EXPECT_EQ(narrow(-128, -1), -128);
  EXPECT_EQ(narrow(-7, 2), -4);
}

TEST(Prelude, IntegerPowersWrap) {
  const Evaluator<int64_t> pow(PreludeFn::kPow, DType::kInt64);
  EXPECT_EQ(pow(2, -1), 0);
  EXPECT_EQ(pow(1, -3), 1);
  EXPECT_EQ(pow(-1, -3), -1);
  EXPECT_EQ(pow(-1, -2), 1);
  EXPECT_EQ(pow(0, 0), 1);
  EXPECT_EQ(pow(0, -1), 0);
  EXPECT_EQ(pow(3, 4), 81);
  EXPECT_EQ(Evaluator<int8_t>(PreludeFn::kPow, DType::kInt8)(-128, 3), 0);
  EXPECT_EQ(Evaluator<uint8_t>(PreludeFn::kPow, DType::kUInt8)(3, 200), 161);
}

TEST(Prelude, ShiftsOutOfRange) {
  const Evaluator<int64_t> left(PreludeFn::kShiftLeft, DType::kInt64);
  EXPECT_EQ(left(1, 64), 0);
  EXPECT_EQ(left(1, -1), 0);
  EXPECT_EQ(left(1, 63), std::numeric_limits<int64_t>::min());
  const Evaluator<int64_t> right(PreludeFn::kShiftRight, DType::kInt64);
  EXPECT_EQ(right(-5, 64), -1);
  EXPECT_EQ(right(-5, -1), -1);
  EXPECT_EQ(right(5, -1), 0);
  const Evaluator<int8_t> left8(PreludeFn::kShiftLeft, DType::kInt8);
  EXPECT_EQ(left8(1, 7), -128);
  EXPECT_EQ(left8(1, 8), 0);
  const Evaluator<uint8_t> right8(PreludeFn::kShiftRight, DType::kUInt8);
  EXPECT_EQ(right8(200, 3), 25);
  EXPECT_EQ(right8(200, 8), 0);
}

TEST(Prelude, IntegersWrap) {
  EXPECT_EQ(Evaluator<uint8_t>(PreludeFn::kAdd, DType::kUInt8)(200, 100), 44);
  EXPECT_EQ(Evaluator<int16_t>(PreludeFn::kMul, DType::kInt16)(300, 300), 24464);
  EXPECT_EQ(
      Evaluator<int32_t>(PreludeFn::kSub, DType::kInt32)(std::numeric_limits<int32_t>::min(), 1),
      std::numeric_limits<int32_t>::max());
  EXPECT_EQ(Evaluator<int8_t>(PreludeFn::kAbs, DType::kInt8)(-128), -128);
  EXPECT_EQ(Evaluator<int8_t>(PreludeFn::kNeg, DType::kInt8)(-128), -128);
  EXPECT_EQ(Evaluator<uint8_t>(PreludeFn::kSign, DType::kUInt8)(7), 1);
  EXPECT_EQ(Evaluator<int8_t>(PreludeFn::kSign, DType::kInt8)(-7), -1);
}

// Equal as values, zeros of the same sign; any NaN equals any other.
void expect_float(double got, double expected) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(got)) << got;
    return;
  }
  EXPECT_EQ(got, expected);
  EXPECT_EQ(std::signbit(got), std::signbit(expected)) << got;
}

template <class T>
void check_float_division(DType dtype) {
  const T x[] = {5, -5, 1, T(kInf), 0, T(-0.0), 1, -1, 5, -5, -6, 6, T(kNan)};
  const T y[] = {0, 0, T(kInf), 1, 0, 3, T(-kInf), T(kInf), -3, 3, 3, -3, 1};
  const double quotient[] = {kInf, -kInf, 0, kNan, kNan, -0.0, -1, -1, -2, -2, -2, -2, kNan};
  const double modulo[] = {kNan, kNan, 1, kNan, kNan, -0.0, -kInf, kInf, -1, 1, -0.0, 0, kNan};
  const Evaluator<T> floor_div(PreludeFn::kFloorDiv, dtype);
  const Evaluator<T> remainder(PreludeFn::kRemainder, dtype);
  for (size_t i = 0; i < std::size(x); ++i) {
    SCOPED_TRACE(i);
    expect_float(floor_div(x[i], y[i]), quotient[i]);
    expect_float(remainder(x[i], y[i]), modulo[i]);
  }
}

TEST(Prelude, FloatDivision) {
  check_float_division<float>(DType::kFloat32);
  check_float_division<double>(DType::kFloat64);
}

TEST(Prelude, FloatEdges) {
  const Evaluator<float> max(PreludeFn::kMax, DType::kFloat32);
  const Evaluator<float> min(PreludeFn::kMin, DType::kFloat32);
  for (const Evaluator<float>* fn : {&max, &min}) {
    expect_float((*fn)(kNan, 1), kNan);
    expect_float((*fn)(1, kNan), kNan);
    expect_float((*fn)(kNan, kNan), kNan);
    expect_float((*fn)(-0.0f, 0.0f), -0.0);
    expect_float((*fn)(0.0f, -0.0f), 0.0);
  }
  const Evaluator<float> sign(PreludeFn::kSign, DType::kFloat32);
  expect_float(sign(kNan), 0);
  expect_float(sign(-0.0f), 0);
  expect_float(sign(-3), -1);
  const Evaluator<float> round(PreludeFn::kRound, DType::kFloat32);
  expect_float(round(0.5f), 0);
  expect_float(round(1.5f), 2);
  expect_float(round(-0.5f), -0.0);
  expect_float(round(-2.5f), -2);
  expect_float(round(8388609.0f), 8388609);
  expect_float(Evaluator<float>(PreludeFn::kCeil, DType::kFloat32)(-0.5f), -0.0);
  const Evaluator<double> digamma(PreludeFn::kDigamma, DType::kFloat64);
  expect_float(digamma(0.0), -kInf);
  expect_float(digamma(-0.0), kInf);
  expect_float(digamma(-3.0), kNan);
  EXPECT_NEAR(digamma(1.0), -0.57721566490153286, 1e-15);
  EXPECT_NEAR(digamma(-0.5), 0.036489973978576521, 1e-15);
  EXPECT_NEAR(digamma(20.0), 2.9705239922421490, 1e-15);
  const Evaluator<double> erfinv(PreludeFn::kErfinv, DType::kFloat64);
  expect_float(erfinv(1.0), kInf);
  expect_float(erfinv(-1.0), -kInf);
  expect_float(erfinv(1.5), kNan);
  expect_float(erfinv(-0.0), -0.0);
  for (double y : {1e-300, 1e-8, 0.01, 0.3, 0.7, 1.5}) {
    EXPECT_NEAR(erfinv(std::erf(y)) / y, 1, 4e-15) << y;
  }
  EXPECT_NEAR(Evaluator<float>(PreludeFn::kLgamma, DType::kFloat32)(0.5f), 0.57236494f, 1e-7);
}

// From eager; x86's conversion of what is out of range.
TEST(Prelude, FloatToInteger) {
  const double x[] = {kNan, kInf, -kInf, 3e9, -3e9, 300, -300, 255.7, -1.5, 129, 40000, 70000};
  const int64_t as_i8[] = {0, 0, 0, 0, 0, 44, -44, -1, -1, -127, 64, 112};
  const int64_t as_u8[] = {0, 0, 0, 0, 0, 44, 212, 255, 255, 129, 64, 112};
  const int64_t as_i16[] = {0, 0, 0, 0, 0, 300, -300, 255, -1, 129, -25536, 4464};
  constexpr int64_t kS32 = std::numeric_limits<int32_t>::min();
  constexpr int64_t kS64 = std::numeric_limits<int64_t>::min();
  const int64_t as_i32[] = {kS32, kS32, kS32, kS32, kS32, 300, -300, 255, -1, 129, 40000, 70000};
  const int64_t as_i64[] = {kS64, kS64, kS64, 3000000000, -3000000000, 300,
                            -300, 255,  -1,   129,        40000,       70000};
  const std::pair<DType, const int64_t*> cases[] = {{DType::kInt8, as_i8},
                                                    {DType::kUInt8, as_u8},
                                                    {DType::kInt16, as_i16},
                                                    {DType::kInt32, as_i32},
                                                    {DType::kInt64, as_i64}};
  Prelude prelude(host_target());
  std::string kernels;
  for (const auto& [to, expected] : cases) {
    add_convert_kernel(prelude, kernels, DType::kFloat64, to, 4);
  }
  const Library library(prelude.text() + kernels, host_target());
  for (const auto& [to, expected] : cases) {
    int64_t got[std::size(x)] = {};
    library.find<MapKernel>("map_f64_" + name_of(to) + "_4")(x, nullptr, nullptr, got,
                                                             std::size(x));
    for (size_t i = 0; i < std::size(x); ++i) {
      const int64_t size = size_of(to);
      int64_t value = 0;
      std::memcpy(&value, reinterpret_cast<char*>(got) + i * size, size);
      const int64_t mask = size == 8 ? -1 : (int64_t{1} << 8 * size) - 1;
      EXPECT_EQ(value, expected[i] & mask) << name_of(to) << " of " << x[i];
    }
  }
}

// The nearest multiple of the spacing of floats with `digits` bits and exponents from `lowest`.
double round_to(double x, int digits, int lowest, double largest) {
  if (!std::isfinite(x) || x == 0) return x;
  const int exponent = std::max(std::ilogb(x), lowest);
  const double unit = std::ldexp(1.0, exponent - digits + 1);
  const double y = std::nearbyint(x / unit) * unit;
  return std::abs(y) > largest ? std::copysign(kInf, x) : y;
}

TEST(Prelude, HalfRounding) {
  for (const PreludeTarget& target : runnable_targets()) {
    Prelude prelude(target);
    std::string kernels;
    add_convert_kernel(prelude, kernels, DType::kFloat32, DType::kFloat16, 8);
    add_convert_kernel(prelude, kernels, DType::kFloat32, DType::kBFloat16, 8);
    add_convert_kernel(prelude, kernels, DType::kFloat16, DType::kFloat32, 8);
    add_convert_kernel(prelude, kernels, DType::kBFloat16, DType::kFloat32, 8);
    const Library library(prelude.text() + kernels, target);
    std::vector<float> x;
    for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4093) {
      x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    }
    // Ties, the overflow threshold and the smallest values.
    for (uint32_t bits : {0x477fefffu, 0x477ff000u, 0x33000000u, 0x33000001u, 0x38801000u,
                          0x3f808000u, 0x3f818000u, 0x7f7f7fffu, 0x7f7f8000u, 0x7f800001u}) {
      x.push_back(std::bit_cast<float>(bits));
    }
    std::vector<uint16_t> half(x.size());
    std::vector<float> back(x.size());
    for (const bool brain : {false, true}) {
      const std::string dtype = brain ? "bf16" : "f16";
      library.find<MapKernel>("map_f32_" + dtype + "_8")(x.data(), nullptr, nullptr, half.data(),
                                                         x.size());
      library.find<MapKernel>("map_" + dtype + "_f32_8")(half.data(), nullptr, nullptr, back.data(),
                                                         x.size());
      for (size_t i = 0; i < x.size(); ++i) {
        const double expected =
            brain ? round_to(x[i], 8, -126, 3.3895313892515355e38) : round_to(x[i], 11, -14, 65504);
        if (std::isnan(expected) ? !std::isnan(back[i]) : back[i] != expected) {
          FAIL() << dtype << " of " << std::hexfloat << x[i] << " gives " << back[i];
        }
      }
    }
  }
}

// Everything that is no map, checked inside the kernel, which returns the number of the first check
// that fails, or 0.
TEST(Prelude, MasksReductionsAndMemory) {
  for (const PreludeTarget& target : runnable_targets()) {
    for (int scale : {1, 2}) {
      Prelude p(target);
      const int n = p.native_lanes(4) * scale;
      const std::string lanes = std::to_string(n);
      const DType f32 = DType::kFloat32;
      std::string body =
          "\nextern \"C\" int check(const float* x, const u8* b, float* r, u8* rb) {\n";
      auto expect = [&, number = 0](const std::string& condition) mutable {
        body += "  if (!(" + condition + ")) return " + std::to_string(++number) + ";\n";
      };
      body += "  const auto v = " + p.load(f32, n) + "(x);\n";
      body += "  const auto m = v > 2.5f;\n";
      expect(p.any(4, n) + "(m)");
      expect("!" + p.all(4, n) + "(m)");
      expect(p.all(4, n) + "(v > 0.5f)");
      expect("!" + p.any(4, n) + "(v > 1000.0f)");
      body += "  const auto s = " + p.select() + "(m, v, " + p.splat(f32, n) + "(0.0f));\n";
      expect(p.reduce(PreludeFn::kAdd, f32, n) + "(v) == " + lanes + " * (" + lanes + " + 1) / 2");
      expect(p.reduce(PreludeFn::kAdd, f32, n) + "(s) == " + lanes + " * (" + lanes +
             " + 1) / 2 - 3");
      expect(p.reduce(PreludeFn::kMax, f32, n) + "(v) == " + lanes);
      expect(p.reduce(PreludeFn::kMin, f32, n) + "(v) == 1");
      body += "  const auto bad = " + p.select() + "(v == 2.0f, v * __builtin_nanf(\"\"), v);\n";
      body += "  const float worst = " + p.reduce(PreludeFn::kMax, f32, n) + "(bad);\n";
      expect("worst != worst");
      const std::string to_i64 = p.convert(f32, DType::kInt64, n);
      body += "  const auto i = " + to_i64 + "(v) - 1;\n";
      expect(p.reduce_or(DType::kInt64, n) + "(i) == " + lanes + " - 1");
      expect(p.reduce_and(DType::kInt64, n) + "(i | 64) == 64");
      expect(p.reduce(PreludeFn::kMul, DType::kInt64, n) + "(i) == 0");
      body +=
          "  const auto g = " + p.gather(f32, DType::kInt64, n) + "(x, " + lanes + " - 1 - i);\n";
      expect(p.all(4, n) + "(g + v == " + lanes + " + 1.0f)");
      body += "  const auto c = " + p.iota(DType::kInt32, n) + "(0);\n";
      expect(p.all(4, n) + "(" + p.gather(f32, DType::kInt32, n) + "(x, c) == v)");
      expect(p.all(4, n) + "((c < 3) == " + p.first_lanes(4, n) + "(3))");
      body += "  const auto flags = " + p.load(DType::kBool, n) + "(b);\n";
      body += "  const auto wide = " + p.convert_mask(1, 4, n) + "(flags);\n";
      expect(p.all(4, n) + "(wide == ((c & 1) == 0))");
      expect(p.all(4, n) + "(" + p.mask_to(1, f32, n) +
             "(flags) == " + p.convert(DType::kInt32, f32, n) + "(1 - (c & 1)))");
      expect(p.all(4, n) + "(" + p.nonzero(DType::kInt32, n) + "(c) == (c != 0))");
      body += "  " + p.store(DType::kBool, n) + "(rb, flags == 0);\n";
      body +=
          "  " + p.store_stream(f32, n) + "(r, v + v);\n  " + p.fence() + "();\n  return 0;\n}\n";
      if (scale == 1) {
        body += "\nextern \"C\" void flip(void* rows) { " + p.transpose(f32, n) + "((" +
                p.type(f32, n) + "*)rows); }\n";
        const int wide = n / 2;
        body += "\nextern \"C\" void flip64(void* rows) { " + p.transpose(DType::kFloat64, wide) +
                "((" + p.type(DType::kFloat64, wide) + "*)rows); }\n";
      }
      const Library library(p.text() + body, target);
      alignas(64) float x[64];
      alignas(64) float r[64];
      uint8_t b[64];
      uint8_t rb[64];
      for (int i = 0; i < 64; ++i) {
        x[i] = static_cast<float>(i + 1);
        b[i] = i % 2 == 0;
      }
      EXPECT_EQ(
          library.find<int(const float*, const uint8_t*, float*, uint8_t*)>("check")(x, b, r, rb),
          0)
          << lanes << " lanes";
      for (int i = 0; i < n; ++i) {
        EXPECT_EQ(r[i], 2 * x[i]);
        EXPECT_EQ(rb[i], i % 2);
      }
      if (scale != 1) continue;
      alignas(64) float tile[16 * 16];
      for (int i = 0; i < n * n; ++i) tile[i] = static_cast<float>(i);
      library.find<void(void*)>("flip")(tile);
      for (int i = 0; i < n * n; ++i) EXPECT_EQ(tile[i], i % n * n + i / n);
      const int wide = n / 2;
      alignas(64) double tile64[8 * 8];
      for (int i = 0; i < wide * wide; ++i) tile64[i] = i;
      library.find<void(void*)>("flip64")(tile64);
      for (int i = 0; i < wide * wide; ++i) EXPECT_EQ(tile64[i], i % wide * wide + i / wide);
    }
  }
}

// Vectors of random words, from every place in a block.
TEST(Prelude, RandomWordsAreTheInterpreters) {
  using Draw = void(int64_t, int64_t, void*);
  constexpr int64_t kSeed = 0x0123456789abcdef;
  for (const PreludeTarget& target : runnable_targets()) {
    for (DType dtype : {DType::kInt32, DType::kInt64}) {
      Prelude prelude(target);
      std::string kernels;
      const std::vector<int> all_lanes = {1, 2, 4, 8, 16, 32};
      for (int lanes : all_lanes) {
        const std::string function = prelude.philox(dtype, lanes);
        kernels += "\nextern \"C\" void draw" + std::to_string(lanes) +
                   "(i64 seed, i64 index, void* r) { " + prelude.store(dtype, lanes) + "(r, " +
                   function + "(seed, index)); }\n";
      }
      const Library library(prelude.text() + kernels, target);
      for (int lanes : all_lanes) {
        const std::string kernel = "draw" + std::to_string(lanes);
        for (int64_t index : {0, 1, 2, 3, 4, 1000006}) {
          std::vector<uint8_t> expected;
          for (int64_t i = index; i < index + lanes; ++i) {
            const int64_t value = dtype == DType::kInt32 ? semantics::philox32(kSeed, i)
                                                         : semantics::philox64(kSeed, i);
            const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
            expected.insert(expected.end(), bytes, bytes + size_of(dtype));
          }
          std::vector<uint8_t> drawn(expected.size());
          library.find<Draw>(kernel)(kSeed, index, drawn.data());
          EXPECT_EQ(drawn, expected) << kernel << " of " << to_string(dtype) << " at " << index;
        }
      }
    }
  }
}

std::string everything(const PreludeTarget& target) {
  Prelude prelude(target);
  std::string kernels;
  for (DType dtype : kDTypes) {
    const int native = prelude.native_lanes(static_cast<int>(size_of(dtype)));
    for (PreludeFn fn : kFns) {
      if (supports(fn, dtype)) add_map_kernel(prelude, kernels, fn, dtype, native);
    }
    for (DType to : kDTypes) add_convert_kernel(prelude, kernels, dtype, to, 16);
    if (size_of(dtype) >= 4) prelude.transpose(dtype, native);
    prelude.store_stream(dtype, native);
    for (int lanes : {native, std::min(64, 2 * native)}) {
      prelude.load_tail(dtype, lanes);
      prelude.store_tail(dtype, lanes);
      prelude.store_exact(dtype, lanes);
      prelude.store_exact_tail(dtype, lanes);
    }
    if (dtype == DType::kInt32 || dtype == DType::kInt64) {
      for (int lanes : {1, 2, native, 2 * native}) prelude.philox(dtype, lanes);
    }
    prelude.any(static_cast<int>(size_of(dtype)), native);
  }
  return prelude.text() + kernels;
}

TEST(Prelude, CompilesForEveryTarget) {
  for (const PreludeTarget& target : {baseline_target(), avx2_target(), avx512_target()}) {
    for (const std::string& compiler : installed_compilers()) {
      EXPECT_NO_THROW(check_compiles(everything(target), target, compiler));
    }
  }
}

// The tiles of products, and what packs their operands.
std::string products(const PreludeTarget& target) {
  using Left = PreludeTile::Left;
  Prelude prelude(target);
  for (const bool pairs : {false, true}) {
    if (pairs && !prelude.has_pairs()) continue;
    for (const Left left : {Left::kFactors, Left::kRows, Left::kFarRows}) {
      for (const int64_t rows : {1, 5, 14}) {
        for (const bool prefetches : {false, true}) {
          for (const int64_t next_rows : {0, 4})
            prelude.product_tile({rows, 2, left, pairs, false, prefetches, next_rows});
        }
      }
    }
    prelude.dot_tile(4, 6, pairs);
  }
  prelude.product_tile({.rows = 5, .vectors = 2, .next_rows = 2, .brings_source = true});
  for (DType memory : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    prelude.pack_rows(memory, 2);
    prelude.pack_columns(memory, 2);
    if (is_half(memory)) prelude.widen_rows(memory);
  }
  if (prelude.has_pairs()) {
    prelude.product_tile({3, 4, Left::kRows, true, true, false});
    prelude.pack_pairs(2);
    prelude.join_rows();
    prelude.copy_pairs();
    prelude.store_flushed(DType::kBFloat16, 16);
    prelude.store_flushed_tail(DType::kBFloat16, 16);
  }
  if (prelude.has_tiles()) {
    prelude.configure_tiles();
    prelude.release_tiles();
    prelude.configure_tiles_of_two();
    for (const bool more_rows : {false, true}) {
      for (const int vectors : {1, 2}) {
        for (const bool has_parts : {false, true}) {
          prelude.matrix_tile({more_rows, vectors, has_parts, false});
          if (more_rows) prelude.matrix_tile({more_rows, vectors, has_parts, true});
        }
      }
    }
    prelude.turn_pairs();
  }
  return prelude.text();
}

TEST(Prelude, ProductsCompileForEveryTarget) {
  PreludeTarget with_pairs = avx512_target();
  with_pairs.bf16_pairs = true;
  PreludeTarget with_tiles = with_pairs;
  with_tiles.bf16_tiles = true;
  for (const PreludeTarget& target : {avx2_target(), avx512_target(), with_pairs, with_tiles}) {
    for (const std::string& compiler : installed_compilers()) {
      EXPECT_NO_THROW(check_compiles(products(target), target, compiler));
    }
  }
}

TEST(Prelude, TextIsDeterministicAndMinimal) {
  EXPECT_EQ(everything(avx2_target()), everything(avx2_target()));
  Prelude prelude(avx2_target());
  EXPECT_EQ(prelude.function(PreludeFn::kExp, DType::kFloat32, 8), "exp_f32x8");
  EXPECT_EQ(prelude.text().find("log"), std::string::npos);
  EXPECT_EQ(prelude.text().find("#include"), std::string::npos);
  const std::string once = prelude.text();
  prelude.function(PreludeFn::kExp, DType::kBFloat16, 8);
  EXPECT_EQ(prelude.text(), once);
}

}  // namespace
}  // namespace litz::testing
