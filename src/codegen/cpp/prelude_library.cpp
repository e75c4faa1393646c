#include "codegen/cpp/prelude_fragments.h"

// Functions that run one lane at a time: libm, and scalar routines for what libm has not.
namespace litz::prelude {
namespace {

// Names whose libm function is `name` (float64) or `name`f (float32).
constexpr std::string_view kUnaryLibm[] = {"exp2",  "expm1", "log2", "log10", "log1p", "tan",
                                           "asin",  "acos",  "atan", "sinh",  "cosh",  "asinh",
                                           "acosh", "atanh", "erf",  "erfc"};
constexpr std::string_view kBinaryLibm[] = {"pow", "atan2", "hypot", "fmod", "nextafter"};

template <size_t N>
bool contains(const std::string_view (&names)[N], std::string_view name) {
  for (std::string_view each : names) {
    if (each == name) return true;
  }
  return false;
}

constexpr std::string_view kUnaryByLane = R"(
LITZ_INLINE @V @N(@V x) {
  @V r = x;
  for (int i = 0; i < @n; ++i) r[i] = @{self:lane}(x[i]);
  return r;
}
)";
constexpr std::string_view kBinaryByLane = R"(
LITZ_INLINE @V @N(@V x, @V y) {
  @V r = x;
  for (int i = 0; i < @n; ++i) r[i] = @{self:lane}(x[i], y[i]);
  return r;
}
)";

// Replaces in y the lanes that the short argument reduction cannot serve.
std::string large_text(std::string_view libm, Shape shape) {
  const std::string limit_test = "@{any_large:lane}";
  std::string call = "__builtin_" + std::string(libm) + (shape.dtype == DType::kFloat32 ? "f" : "");
  if (shape.scalar()) {
    return "\nLITZ_COLD @V @N(@V x, @V) { return " + call + "(x); }\n";
  }
  return "\nLITZ_COLD @V @N(@V x, @V y) {\n  for (int i = 0; i < @n; ++i) y[i] = " + limit_test +
         "(@{abs:lane}(x[i])) ? " + call + "(x[i]) : y[i];\n  return y;\n}\n";
}

// lgamma_r keeps the sign of gamma out of a global.
constexpr std::string_view kLgamma = R"(
extern "C" double lgamma_r(double, int*) noexcept;
LITZ_INLINE f64 @N(f64 x) {
  int sign;
  return lgamma_r(x, &sign);
}
)";
constexpr std::string_view kLgammaF = R"(
extern "C" float lgammaf_r(float, int*) noexcept;
LITZ_INLINE f32 @N(f32 x) {
  int sign;
  return lgammaf_r(x, &sign);
}
)";

// psi(x) = psi(x + 1) - 1/x up to 10, then the asymptotic series; psi(1 - x) - pi / tan(pi x) below
// 0.
constexpr std::string_view kDigamma = R"(
LITZ_COLD f64 @N(f64 x) {
  if (x == 0.0) return __builtin_copysign(__builtin_inf(), -x);
  f64 r = 0.0;
  if (x < 0.0) {
    const f64 f = x - __builtin_trunc(x);
    if (f == 0.0) return __builtin_nan("");
    r = -3.14159265358979323846 / __builtin_tan(3.14159265358979323846 * f);
    x = 1.0 - x;
  }
  for (; x < 10.0; x += 1.0) r -= 1.0 / x;
  if (x == __builtin_inf()) return x;
  const f64 z = 1.0 / (x * x);
  f64 p = 1.0 / 12.0;
  p = 691.0 / 32760.0 - z * p;
  p = 1.0 / 132.0 - z * p;
  p = 1.0 / 240.0 - z * p;
  p = 1.0 / 252.0 - z * p;
  p = 1.0 / 120.0 - z * p;
  p = 1.0 / 12.0 - z * p;
  return r + __builtin_log(x) - 0.5 / x - z * p;
}
)";

// A closed form good to 3 digits (Winitzki), then two steps of Halley's method, whose error is
// cubed each time. Near 1 it solves erfc(y) = 1 - |x|, which has no cancellation.
constexpr std::string_view kErfinv = R"(
LITZ_COLD f64 @N(f64 x) {
  const f64 a = __builtin_fabs(x);
  if (!(a < 1.0)) return a == 1.0 ? __builtin_copysign(__builtin_inf(), x) : __builtin_nan("");
  const f64 l = __builtin_log1p(-a * a);
  const f64 t = 4.3307467508 + 0.5 * l;
  f64 y = __builtin_sqrt(-l / 0.147 / (t + __builtin_sqrt(t * t - l / 0.147)));
  for (int i = 0; i < 2; ++i) {
    const f64 f = a < 0.5 ? __builtin_erf(y) - a : (1.0 - a) - __builtin_erfc(y);
    const f64 u = f * 0.88622692545275801365 * __builtin_exp(y * y);
    y -= u / (1.0 + y * u);
  }
  return __builtin_copysign(y, x);
}
)";

constexpr std::string_view kThroughF64 = R"(
LITZ_INLINE f32 @N(f32 x) { return (f32)@{self:f64}(x); }
)";

}  // namespace

std::string library_fragment(std::string_view name, Shape shape) {
  const bool is_f32 = shape.dtype == DType::kFloat32;
  if (name.ends_with("_large") && name != "any_large") {
    return large_text(name.substr(0, name.size() - 6), shape);
  }
  const bool unary = contains(kUnaryLibm, name);
  const bool binary = contains(kBinaryLibm, name);
  const bool routine = name == "lgamma" || name == "digamma" || name == "erfinv";
  if (!unary && !binary && !routine) return "";
  if (!shape.scalar()) return std::string(binary ? kBinaryByLane : kUnaryByLane);
  if (name == "lgamma") return std::string(is_f32 ? kLgammaF : kLgamma);
  if (routine && is_f32) return std::string(kThroughF64);
  if (name == "digamma") return std::string(kDigamma);
  if (name == "erfinv") return std::string(kErfinv);
  const std::string call = "__builtin_" + std::string(name) + (is_f32 ? "f" : "");
  if (binary) return "\nLITZ_INLINE @V @N(@V x, @V y) { return " + call + "(x, y); }\n";
  return "\nLITZ_INLINE @V @N(@V x) { return " + call + "(x); }\n";
}

}  // namespace litz::prelude
