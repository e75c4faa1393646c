// Errors of the prelude's float functions in units in the last place, against libm in the next
// wider type. With LITZ_TEST_ULP_TABLE set it also prints the table of docs/numerics.md.
#include <gtest/gtest.h>
#include <algorithm>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>

#include "prelude_harness.h"

namespace litz::testing {
namespace {

using Wide = long double;

struct Row {
  PreludeFn fn;
  Wide (*reference)(Wide, Wide);
  double f32_ulp;  // bound with FMA
  double f64_ulp;
  double f32_ulp_baseline;  // bound without
  double f64_ulp_baseline;
};

template <Wide (*F)(Wide)>
Wide unary(Wide x, Wide) {
  return F(x);
}

Wide reference_rsqrt(Wide x) { return 1 / std::sqrt(x); }
Wide reference_sigmoid(Wide x) { return 1 / (1 + std::exp(-x)); }
Wide reference_reciprocal(Wide x) { return 1 / x; }

#define LITZ_UNARY(name) unary<static_cast<Wide (*)(Wide)>(std::name)>
#define LITZ_BINARY(name) [](Wide x, Wide y) { return std::name(x, y); }

const Row kRows[] = {
    {PreludeFn::kSqrt, LITZ_UNARY(sqrt), 0.5, 0.5, 0.5, 0.5},
    {PreludeFn::kRsqrt, unary<reference_rsqrt>, 1.5, 1.5, 1.5, 1.5},
    {PreludeFn::kReciprocal, unary<reference_reciprocal>, 0.5, 0.5, 0.5, 0.5},
    {PreludeFn::kExp, LITZ_UNARY(exp), 1.5, 1.5, 1.5, 1.5},
    {PreludeFn::kExp2, LITZ_UNARY(exp2), 1.5, 1.5, 1.5, 1.5},
    {PreludeFn::kExpm1, LITZ_UNARY(expm1), 1.5, 1.5, 1.5, 1.5},
    {PreludeFn::kLog, LITZ_UNARY(log), 1.5, 1.5, 1.5, 1.5},
    {PreludeFn::kLog2, LITZ_UNARY(log2), 1.5, 1.5, 1.5, 1.5},
    {PreludeFn::kLog10, LITZ_UNARY(log10), 1.5, 1.6, 1.7, 1.6},
    {PreludeFn::kLog1p, LITZ_UNARY(log1p), 1.5, 1.5, 1.5, 1.5},
    {PreludeFn::kSin, LITZ_UNARY(sin), 1.5, 1.5, 1.5, 1.8},
    {PreludeFn::kCos, LITZ_UNARY(cos), 1.5, 1.5, 1.5, 1.8},
    {PreludeFn::kTan, LITZ_UNARY(tan), 1.5, 1.5, 1.5, 1.5},
    {PreludeFn::kAsin, LITZ_UNARY(asin), 1.5, 1.5, 1.5, 1.5},
    {PreludeFn::kAcos, LITZ_UNARY(acos), 1.5, 1.5, 1.5, 1.5},
    {PreludeFn::kAtan, LITZ_UNARY(atan), 1.5, 1.5, 1.5, 1.5},
    {PreludeFn::kSinh, LITZ_UNARY(sinh), 1.5, 2.0, 1.5, 2.0},
    {PreludeFn::kCosh, LITZ_UNARY(cosh), 1.5, 2.0, 1.5, 2.0},
    {PreludeFn::kTanh, LITZ_UNARY(tanh), 1.5, 2.0, 1.5, 2.0},
    {PreludeFn::kAsinh, LITZ_UNARY(asinh), 0.51, 2.0, 0.51, 2.0},
    {PreludeFn::kAcosh, LITZ_UNARY(acosh), 0.51, 2.0, 0.51, 2.0},
    {PreludeFn::kAtanh, LITZ_UNARY(atanh), 0.51, 2.0, 0.51, 2.0},
    {PreludeFn::kErf, LITZ_UNARY(erf), 1.5, 1.5, 1.5, 1.5},
    {PreludeFn::kErfc, LITZ_UNARY(erfc), 0.51, 2.6, 0.51, 2.6},
    {PreludeFn::kSigmoid, unary<reference_sigmoid>, 2.4, 2.4, 2.4, 2.4},
    {PreludeFn::kPow, LITZ_BINARY(pow), 0.6, 1.0, 0.6, 1.0},
    {PreludeFn::kAtan2, LITZ_BINARY(atan2), 1.5, 1.0, 1.5, 1.0},
    {PreludeFn::kHypot, LITZ_BINARY(hypot), 0.51, 1.0, 0.51, 1.0},
    {PreludeFn::kFmod, LITZ_BINARY(fmod), 0.0, 0.0, 0.0, 0.0},
};

// Distance from the exact value in units of the last place of T there.
template <class T>
double ulp_error(T got, Wide exact) {
  const T rounded = static_cast<T>(exact);
  if (std::isnan(rounded) || std::isnan(got)) {
    return std::isnan(rounded) && std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  }
  if (got == rounded) {
    if (got == 0 && exact == 0 && std::signbit(got) != std::signbit(exact)) {
      return std::numeric_limits<double>::infinity();
    }
    if (std::isinf(got)) return 0;
  }
  const T largest = std::numeric_limits<T>::max();
  if (std::isinf(got) || std::isinf(rounded)) {
    // One of the two overflows: count from the largest finite value.
    const T finite = std::isinf(got) ? rounded : got;
    if (std::isinf(got) && std::isinf(rounded)) return std::numeric_limits<double>::infinity();
    return std::abs(finite) == largest ? 1 : std::numeric_limits<double>::infinity();
  }
  int exponent;
  std::frexp(rounded, &exponent);
  exponent = std::max(exponent, std::numeric_limits<T>::min_exponent);
  const Wide unit = std::ldexp(static_cast<Wide>(1), exponent - std::numeric_limits<T>::digits);
  return static_cast<double>(std::abs(got - exact) / unit);
}

template <class T>
std::vector<T> special_values() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values{0,
                        1,
                        T(0.5),
                        2,
                        3,
                        T(1.5),
                        10,
                        100,
                        T(0.1),
                        Limits::min(),
                        Limits::denorm_min(),
                        Limits::max(),
                        Limits::infinity(),
                        Limits::epsilon(),
                        T(88.722835),
                        T(88.72284),
                        T(103.972),
                        T(103.98),
                        T(709.7827),
                        T(709.783),
                        T(745.13),
                        T(745.14),
                        T(0.625),
                        T(1e5),
                        T(1e10),
                        std::nextafter(T(1), T(0)),
                        std::nextafter(T(1), T(2)),
                        T(3.14159265358979323846),
                        T(1.57079632679489661923),
                        Limits::quiet_NaN()};
  const size_t count = values.size();
  for (size_t i = 0; i < count; ++i) values.push_back(-values[i]);
  return values;
}

// Bit patterns a fixed step apart, then the special values; the length is odd, to end in a tail.
std::vector<float> sweep(float) {
  std::vector<float> values;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 1009) {
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (float x : special_values<float>()) values.push_back(x);
  // Where most arguments are.
  for (int i = -200000; i <= 200000; ++i) values.push_back(static_cast<float>(i) * 1.7e-4f);
  if (values.size() % 2 == 0) values.push_back(1.25f);
  return values;
}

std::vector<double> sweep(double) {
  std::vector<double> values;
  for (uint64_t i = 0; i < 500000; ++i) {
    values.push_back(std::bit_cast<double>(i * 36893488147419ull));
  }
  for (double x : special_values<double>()) values.push_back(x);
  for (int i = -200000; i <= 200000; ++i) values.push_back(i * 1.7123456789e-4);
  if (values.size() % 2 == 0) values.push_back(1.25);
  return values;
}

// Second operands: a shuffled copy of the sweep, and small whole numbers.
template <class T>
std::vector<T> partners(const std::vector<T>& values) {
  std::vector<T> result(values.size());
  uint64_t state = 12345;
  for (size_t i = 0; i < result.size(); ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const uint64_t pick = state >> 33;
    switch (pick % 4) {
      case 0:
        result[i] = static_cast<T>(static_cast<int>(pick / 4 % 41) - 20);
        break;
      case 1:
        result[i] = static_cast<T>(static_cast<int>(pick / 4 % 8000) - 4000) / T(1000);
        break;
      case 2:
        result[i] = values[i] * T(1.1);
        break;
      default:
        result[i] = values[pick % values.size()];
    }
  }
  return result;
}

template <class T>
double worst_error(const Library& library, const std::string& kernel, const Row& row,
                   const std::vector<T>& x, const std::vector<T>& y, size_t* where) {
  std::vector<T> result(x.size());
  library.find<MapKernel>(kernel)(x.data(), y.data(), nullptr, result.data(),
                                  static_cast<int64_t>(x.size()));
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = ulp_error(result[i], row.reference(x[i], y[i]));
    if (error > worst) {
      worst = error;
      *where = i;
    }
  }
  return worst;
}

template <class T>
void check_dtype(const PreludeTarget& target, DType dtype) {
  Prelude prelude(target);
  std::string kernels;
  std::vector<std::string> names;
  const int lanes = prelude.native_lanes(sizeof(T));
  for (const Row& row : kRows) {
    names.push_back(add_map_kernel(prelude, kernels, row.fn, dtype, lanes));
  }
  const Library library(prelude.text() + kernels, target);
  const std::vector<T> x = sweep(T());
  const std::vector<T> y = partners(x);
  const bool table = std::getenv("LITZ_TEST_ULP_TABLE") != nullptr;
  for (size_t i = 0; i < names.size(); ++i) {
    const Row& row = kRows[i];
    const bool f32 = dtype == DType::kFloat32;
    const double bound = target.fma ? (f32 ? row.f32_ulp : row.f64_ulp)
                                    : (f32 ? row.f32_ulp_baseline : row.f64_ulp_baseline);
    size_t where = 0;
    const double error = worst_error(library, names[i], row, x, y, &where);
    if (table) {
      std::printf("| %s | %s | %s | %.2f |\n", std::string(to_string(row.fn)).c_str(),
                  f32 ? "float32" : "float64", target.fma ? "fma" : "baseline", error);
    }
    EXPECT_LE(error, bound) << names[i] << " at " << std::hexfloat << x[where] << ", " << y[where]
                            << std::defaultfloat << " = " << x[where] << ", " << y[where];
  }
}

TEST(PreludeAccuracy, Float32) {
  for (const PreludeTarget& target : runnable_targets()) {
    check_dtype<float>(target, DType::kFloat32);
  }
}

TEST(PreludeAccuracy, Float64) {
  for (const PreludeTarget& target : runnable_targets()) {
    check_dtype<double>(target, DType::kFloat64);
  }
}

}  // namespace
}  // namespace litz::testing
