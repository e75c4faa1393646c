#include "ir/scalar_semantics.h"

#include <math.h>  // lgamma_r, which unlike lgamma writes no global

#include <cmath>
#include <limits>

namespace litz::semantics {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Recurrence up to 10 and there the asymptotic series, whose first left-out term is below 1e-17.
double digamma_positive(double x) {
  double result = 0;
  for (; x < 10; ++x) result -= 1 / x;
  const double y = 1 / (x * x);
  const double tail =
      y *
      (1.0 / 12 -
       y * (1.0 / 120 -
            y * (1.0 / 252 -
                 y * (1.0 / 240 - y * (1.0 / 132 - y * (691.0 / 32760 -
                                                        y * (1.0 / 12 - y * 3617.0 / 8160)))))));
  return result + std::log(x) - 0.5 / x - tail;
}

}  // namespace

double digamma(double x) {
  if (x == 0) return std::copysign(kInfinity, -x);
  if (x > 0 || std::isnan(x)) return x == kInfinity ? x : digamma_positive(x);
  if (x == std::floor(x)) return kNan;
  // Reflection; taking the nearest integer off keeps tan accurate.
  return digamma_positive(1 - x) - kPi / std::tan(kPi * (x - std::nearbyint(x)));
}

// Winitzki's closed form is within 0.2 %; each step of Halley's method triples the digits.
double erfinv(double y) {
  const double magnitude = std::fabs(y);
  if (!(magnitude < 1)) return magnitude == 1 ? std::copysign(kInfinity, y) : kNan;
  if (magnitude == 0) return y;
  constexpr double kA = 0.147;
  const double logarithm = std::log1p(-magnitude * magnitude);
  const double half = 2 / (kPi * kA) + logarithm / 2;
  // half * half - logarithm / kA, rearranged so that nothing cancels near zero.
  double x = std::sqrt(-logarithm / kA / (std::sqrt(half * half - logarithm / kA) + half));
  for (int step = 0; step < 3; ++step) {
    // Near 1 the complement keeps the digits; 1 - magnitude is exact there.
    const double error = magnitude < 0.5 ? std::erf(x) - magnitude : (1 - magnitude) - std::erfc(x);
    const double newton = error / (2 / std::sqrt(kPi) * std::exp(-x * x));
    x -= newton / (1 + x * newton);
  }
  return std::copysign(x, y);
}

double lgamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

}  // namespace litz::semantics
