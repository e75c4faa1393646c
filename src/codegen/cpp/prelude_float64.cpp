#include "codegen/cpp/prelude_fragments.h"

// Float64 functions, and the float64 parts of float32 functions (names ending in _f32), which need
// only some 34 correct bits. 6755399441055744 = 1.5 * 2^52 rounds to an integer whose low bits are
// that integer. Integer lanes are only added, subtracted and shifted left, because AVX2 has no
// other 64-bit lane operations.
namespace litz::prelude {
namespace {

constexpr Fragment kFragments[] = {
    {"exp_reduced", R"(
LITZ_INLINE @V @N(@V c, @V j) {
  const @V r = @{fma}(j, @K(-1.9082149292705877e-10), @{fma}(j, @K(-0.69314718036912382), c));
  @V p = @K(2.0927865954463202e-09);
  p = @{fma}(p, r, @K(2.5113442147205826e-08));
  p = @{fma}(p, r, @K(2.7557230169543423e-07));
  p = @{fma}(p, r, @K(2.7557230803587477e-06));
  p = @{fma}(p, r, @K(2.4801587377810072e-05));
  p = @{fma}(p, r, @K(0.00019841269900475433));
  p = @{fma}(p, r, @K(0.001388888888885612));
  p = @{fma}(p, r, @K(0.0083333333333153684));
  p = @{fma}(p, r, @K(0.041666666666666727));
  p = @{fma}(p, r, @K(0.16666666666666685));
  p = @{fma}(p, r, @K(0.5));
  return @{fma}(r * r, p, r) + 1.0;
}
)"},
    // x 2^j for j + 2046 in the low bits of t; two factors, so that the result may be denormal.
    {"scale", R"(
LITZ_INLINE @V @N(@V x, @V t) {
  const @U i = __builtin_bit_cast(@U, t);
  const @U h = i >> 1;
  return x * __builtin_bit_cast(@V, h << 52) * __builtin_bit_cast(@V, (i - h) << 52);
}
)"},
    {"exp", R"(
LITZ_INLINE @V @N(@V x) {
  const @V c = @{lesser}(@K(710.0), @{greater}(@K(-746.0), x));
  const @V t = @{fma}(c, @K(1.4426950408889634), @K(6755399441057790.0));
  return @{scale}(@{exp_reduced}(c, t - 6755399441057790.0), t);
}
)"},
    // Valid for |x| <= 700.
    {"exp_inner", R"(
LITZ_INLINE @V @N(@V x) {
  const @V t = @{fma}(x, @K(1.4426950408889634), @K(6755399441056767.0));
  const @V p = @{exp_reduced}(x, t - 6755399441056767.0);
  return p * __builtin_bit_cast(@V, __builtin_bit_cast(@U, t) << 52);
}
)"},
    // x = 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt(2); returns f. The exponent field becomes a
    // float64 by an or into the bits of 2^52.
    {"log_split", R"(
LITZ_INLINE @V @N(@V x, @V* e) {
  const @M tiny = x < 2.2250738585072014e-308;
  const @U i = __builtin_bit_cast(@U, tiny ? x * 18014398509481984.0 : x);
  const @U k = (i - 0x3fe6a09e667f3bcd + 0x3ff0000000000000) >> 52;
  *e = __builtin_bit_cast(@V, k | 0x4330000000000000) - (tiny ? @K(4503599627371573.0) : @K(4503599627371519.0));
  return __builtin_bit_cast(@V, i - (k << 52) + 0x3ff0000000000000) - 1.0;
}
)"},
    // log(1 + f) = f - (z/2 - s (z/2 + R)) with z = f^2, s = f / (2 + f).
    {"log", R"(
LITZ_INLINE @V @N(@V x) {
  @V e;
  const @V f = @{log_split}(x, &e);
  const @V s = f / (f + 2.0);
  const @V w = s * s;
  @V p = @K(0.14827312185835129);
  p = @{fma}(p, w, @K(0.15311054615839514));
  p = @{fma}(p, w, @K(0.18183675605250857));
  p = @{fma}(p, w, @K(0.22222196553021487));
  p = @{fma}(p, w, @K(0.28571428760791046));
  p = @{fma}(p, w, @K(0.39999999999338259));
  p = @{fma}(p, w, @K(0.66666666666667451));
  const @V h = f * f * 0.5;
  const @V q = h - @{fma}(s, @{fma}(p, w, h), e * 1.9082149292705877e-10);
  return @{log_edges}(x, @{fma}(e, @K(0.69314718036912382), @K(0.0)) - (q - f));
}
)"},
    {"log_edges", R"(
LITZ_INLINE @V @N(@V x, @V y) {
  y = x < __builtin_inf() ? y : x;
  y = x == 0.0 ? @K(-__builtin_inf()) : y;
  return x < 0.0 ? @K(__builtin_nan("")) : y;
}
)"},
    {"sigmoid", R"(
LITZ_INLINE @V @N(@V x) {
  const @V e = @{exp}(-@{abs}(x));
  return (x < 0.0 ? e : @K(1.0)) / (e + 1.0);
}
)"},
    {"tanh", R"(
LITZ_INLINE @V @N(@V x) {
  const @V a = @{abs}(x);
  const @V z = a * a;
  @V p = @{fma}(@K(-0.96439981347983095), z, @K(-99.28933956363926));
  p = @{fma}(p, z, @K(-1614.7210594669384));
  @V q = z + 112.8134294353838;
  q = @{fma}(q, z, @K(2235.5332900511703));
  q = @{fma}(q, z, @K(4844.1631784008168));
  const @M small = a < 0.625;
  const @V c = @{lesser}(@K(20.0), a);
  const @V e = @{exp_inner}(c + c) + 1.0;
  const @V d = (small ? p * z : @K(-2.0)) / (small ? q : e);
  return @{flip_sign}(small ? @{fma}(a, d, a) : d + 1.0, x);
}
)"},
    {"sin_poly", R"(
LITZ_INLINE @V @N(@V r) {
  const @V z = r * r;
  @V p = @K(1.5890279651803654e-10);
  p = @{fma}(p, z, @K(-2.5050647220783205e-08));
  p = @{fma}(p, z, @K(2.7557312995373508e-06));
  p = @{fma}(p, z, @K(-0.00019841269827840596));
  p = @{fma}(p, z, @K(0.0083333333333200175));
  p = @{fma}(p, z, @K(-0.16666666666666621));
  return @{fma}(r * z, p, r);
}
)"},
    {"cos_poly", R"(
LITZ_INLINE @V @N(@V r) {
  const @V z = r * r;
  @V p = @K(-1.1355192966996672e-11);
  p = @{fma}(p, z, @K(2.0875638547166581e-09));
  p = @{fma}(p, z, @K(-2.7557313740536622e-07));
  p = @{fma}(p, z, @K(2.4801587287411836e-05));
  p = @{fma}(p, z, @K(-0.0013888888888870898));
  p = @{fma}(p, z, @K(0.041666666666666581));
  const @V h = z * 0.5;
  const @V w = 1.0 - h;
  return w + @{fma}(z * z, p, (1.0 - w) - h);
}
)"},
    {"sin", R"(
LITZ_INLINE @V @N(@V x) {
  const @V a = @{abs}(x);
  @U q;
  const @V r = @{trig_reduce}(a, &q);
  const @M odd = (q & 1) != 0;
  const @V v = odd ? @{cos_poly}(r) : @{sin_poly}(r);
  const @U sign = (q << 62) ^ __builtin_bit_cast(@U, x);
  const @V y = __builtin_bit_cast(@V, __builtin_bit_cast(@U, v) ^ (sign & 0x8000000000000000));
  return @{any_large}(a) ? @{sin_large}(x, y) : y;
}
)"},
    {"cos", R"(
LITZ_INLINE @V @N(@V x) {
  const @V a = @{abs}(x);
  @U q;
  const @V r = @{trig_reduce}(a, &q);
  const @M odd = (q & 1) != 0;
  const @V v = odd ? @{sin_poly}(r) : @{cos_poly}(r);
  const @U sign = (q + 1) << 62;
  const @V y = __builtin_bit_cast(@V, __builtin_bit_cast(@U, v) ^ (sign & 0x8000000000000000));
  return @{any_large}(a) ? @{cos_large}(x, y) : y;
}
)"},
    // Up to 1, x + x P(x^2) / Q(x^2); beyond, 1 - exp(-x^2) R(x) / S(x).
    {"erf", R"(
LITZ_INLINE @V @N(@V x) {
  const @V a = @{abs}(x);
  const @V z = a * a;
  @V p = @K(-0.99645383978965008);
  p = @{fma}(p, z, @K(-23.822841435581381));
  p = @{fma}(p, z, @K(-424.00825012767615));
  p = @{fma}(p, z, @K(-2324.3875921558797));
  p = @{fma}(p, z, @K(-15252.885892511353));
  p = @{fma}(p, z, @K(6176.8629944795202));
  @V q = z + 33.291037604509597;
  q = @{fma}(q, z, @K(514.21393132873231));
  q = @{fma}(q, z, @K(4512.3503720554299));
  q = @{fma}(q, z, @K(22154.221378134316));
  q = @{fma}(q, z, @K(48114.216147577958));
  const @V c = @{lesser}(@K(6.0), a);
  @V r = @K(0.56418521775354269);
  r = @{fma}(r, c, @K(5.3289167921602107));
  r = @{fma}(r, c, @K(23.603060426484088));
  r = @{fma}(r, c, @K(59.988602812275595));
  r = @{fma}(r, c, @K(87.853888572952911));
  r = @{fma}(r, c, @K(63.178200884999761));
  @V s = c + 9.4450123265112538;
  s = @{fma}(s, c, @K(42.339092183774639));
  s = @{fma}(s, c, @K(111.01327881462934));
  s = @{fma}(s, c, @K(176.38417799948922));
  s = @{fma}(s, c, @K(159.14278716094734));
  s = @{fma}(s, c, @K(63.178208018325208));
  r = r * @{exp_inner}(-(c * c));
  const @M small = a < 1.0;
  const @V d = (small ? p : r) / (small ? q : s);
  return @{flip_sign}(small ? @{fma}(a, d, a) : 1.0 - d, x);
}
)"},
    // log(1 + u) for u >= 0: the rounding error of 1 + u comes back as a correction.
    {"log1p_f32", R"(
LITZ_INLINE @V @N(@V u) {
  const @V w = u + 1.0;
  const @V c = (u - (w - 1.0)) / w;
  return @{log}(w) + (w < 1e300 ? c : @K(0.0));
}
)"},
    {"asinh_f32", R"(
LITZ_INLINE @V @N(@V a) {
  const @V z = a * a;
  const @V u = a + z / (@{sqrt}(z + 1.0) + 1.0);
  return @{log1p_f32}(a < 1e300 ? u : a);
}
)"},
    {"acosh_f32", R"(
LITZ_INLINE @V @N(@V x) {
  const @V d = x - 1.0;
  const @V y = @{log1p_f32}(d + @{sqrt}(d * (x + 1.0)));
  return d < 0.0 ? @K(__builtin_nan("")) : y;
}
)"},
    {"atanh_f32", R"(
LITZ_INLINE @V @N(@V a) {
  const @V y = @{log1p_f32}((a + a) / (1.0 - a)) * 0.5;
  return a > 1.0 ? @K(__builtin_nan("")) : y;
}
)"},
    {"tan_f32", R"(
LITZ_INLINE @V @N(@V a) {
  @U q;
  const @V r = @{trig_reduce}(a, &q);
  const @V s = @{sin_poly}(r);
  const @V c = @{cos_poly}(r);
  const @M odd = (q & 1) != 0;
  return (odd ? -c : s) / (odd ? s : c);
}
)"},
    {"hypot_f32", R"(
LITZ_INLINE @V @N(@V x, @V y) { return @{sqrt}(x * x + y * y); }
)"},
    // erfc(|x|) = exp(-x^2) g / (1 + 2|x|), g a polynomial in (|x| - 2.75) / (|x| + 2.75).
    {"erfc_f32", R"(
LITZ_INLINE @V @N(@V x) {
  const @V a = @{abs}(x);
  const @V c = @{lesser}(@K(10.6), a);
  const @V u = (c - 2.75) / (c + 2.75);
  @V p = @K(1.7847404991292293e-05);
  p = @{fma}(p, u, @K(-1.5584629493762518e-05));
  p = @{fma}(p, u, @K(-0.00027063223788040513));
  p = @{fma}(p, u, @K(6.4009766205399979e-05));
  p = @{fma}(p, u, @K(0.0019317305829976786));
  p = @{fma}(p, u, @K(-0.0026310153182144296));
  p = @{fma}(p, u, @K(-0.010501161209368223));
  p = @{fma}(p, u, @K(0.052321022709352079));
  p = @{fma}(p, u, @K(-0.11449300273589973));
  p = @{fma}(p, u, @K(0.14490623950644288));
  p = @{fma}(p, u, @K(-0.071306217174539818));
  p = @{fma}(p, u, @K(-0.13046248164483445));
  p = @{fma}(p, u, @K(1.2588036258647166));
  const @V y = @{exp_inner}(-(c * c)) * p / (c + c + 1.0);
  return x < 0.0 ? 2.0 - y : y;
}
)"},
    // a^y for a > 0; other a give anything.
    {"pow_f32", R"(
LITZ_INLINE @V @N(@V a, @V y) {
  @V e;
  const @V f = @{log_split}(a, &e);
  const @V s = f / (f + 2.0);
  const @V w = s * s;
  @V p = @K(0.3411586563947836);
  p = @{fma}(p, w, @K(0.41165033065987078));
  p = @{fma}(p, w, @K(0.5770839434941607));
  p = @{fma}(p, w, @K(0.96179667155174042));
  p = @{fma}(p, w, @K(2.8853900817914315));
  @V t = y * @{fma}(p, s, e);
  t = a < __builtin_inf() ? t : y * __builtin_inf();
  t = @{lesser}(@K(160.0), @{greater}(@K(-160.0), t));
  const @V m = t + 6755399441056767.0;
  const @V r = t - (m - 6755399441056767.0);
  @V q = @K(1.531751444438775e-05);
  q = @{fma}(q, r, @K(0.00015471064967768477));
  q = @{fma}(q, r, @K(0.001333341816560345));
  q = @{fma}(q, r, @K(0.009618021395636887));
  q = @{fma}(q, r, @K(0.055504109815479527));
  q = @{fma}(q, r, @K(0.24022651245466711));
  q = @{fma}(q, r, @K(0.69314718053337798));
  q = @{fma}(q, r, @K(0.99999999995619504));
  return q * __builtin_bit_cast(@V, __builtin_bit_cast(@U, m) << 52);
}
)"},
};

constexpr std::string_view kReduceFma = R"(
LITZ_INLINE @V @N(@V a, @U* q) {
  const @V t = @{fma}(a, @K(0.63661977236758138), @K(6755399441055744.0));
  const @V j = t - 6755399441055744.0;
  *q = __builtin_bit_cast(@U, t);
  @V r = @{fma}(j, @K(-1.5707963267948966), a);
  r = @{fma}(j, @K(-6.123233995736766e-17), r);
  return @{fma}(j, @K(1.4973849048591833e-33), r);
}
)";
constexpr std::string_view kReduce = R"(
LITZ_INLINE @V @N(@V a, @U* q) {
  const @V t = a * 0.63661977236758138 + 6755399441055744.0;
  const @V j = t - 6755399441055744.0;
  *q = __builtin_bit_cast(@U, t);
  return a - j * 1.5707963267341256 - j * 6.077100506303966e-11 - j * 2.0222662487959506e-21;
}
)";
constexpr std::string_view kAnyLarge = R"(
LITZ_INLINE bool @N(@V a) { return __builtin_expect(@{any_mask}((a <= 1000000.0) == 0), 0); }
)";

}  // namespace

std::string float64_fragment(const PreludeTarget& target, std::string_view name) {
  if (std::string text = find(kFragments, name); !text.empty()) return text;
  if (name == "trig_reduce") return std::string(target.fma ? kReduceFma : kReduce);
  if (name == "any_large") return std::string(kAnyLarge);
  return "";
}

}  // namespace litz::prelude
