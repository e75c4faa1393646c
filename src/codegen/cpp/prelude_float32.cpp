#include "codegen/cpp/prelude_fragments.h"

// Float32 functions. Polynomials are weighted minimax fits (tools/fit_polynomials.py). `fma` is one
// instruction or a product and a sum, so every argument reduction uses constants whose products
// with the small integer j are exact or, with FMA, become exact by cancellation.
//
// Odd functions are computed on |x| and get the sign of x at the end, which also keeps -0.
namespace litz::prelude {
namespace {

// exp(x) = 2^j e^r, |r| <= ln2 / 2. Adding 12582912 = 1.5 * 2^23 plus a bias rounds to a whole
// number and leaves j + bias in the low bits; shifting those to the exponent drops all other bits.
constexpr Fragment kFragments[] = {
    {"exp_reduced", R"(
LITZ_INLINE @V @N(@V c, @V j) {
  const @V r = @{fma}(j, @K(2.12194440e-4f), @{fma}(j, @K(-0.693359375f), c));
  @V p = @K(0.00139392552f);
  p = @{fma}(p, r, @K(0.00836952683f));
  p = @{fma}(p, r, @K(0.0416664183f));
  p = @{fma}(p, r, @K(0.166665137f));
  p = @{fma}(p, r, @K(0.5f));
  return @{fma}(r * r, p, r) + 1.0f;
}
)"},
    // x 2^j for j + 254 in the low bits of t: two factors, so that the result may be denormal or
    // just below overflow.
    {"scale", R"(
LITZ_INLINE @V @N(@V x, @V t) {
  const @U i = __builtin_bit_cast(@U, t);
  const @U h = i >> 1;
  return x * __builtin_bit_cast(@V, h << 23) * __builtin_bit_cast(@V, (i - h) << 23);
}
)"},
    // What becomes 0, as of -inf, does not pass through denormals, for which processors take long.
    {"exp", R"(
LITZ_INLINE @V @N(@V x) {
  const @V c = @{lesser}(@K(105.0f), @{greater}(@K(-105.0f), x));
  const @V t = @{fma}(c, @K(1.44269502f), @K(12583166.0f));
  const @V p = @{exp_reduced}(c, t - 12583166.0f);
  return @{scale}(x < -104.0f ? @K(0.0f) : p, t);
}
)"},
    // To the nearest bfloat16: the bits that it has, and zeros.
    {"round_bf16", R"(
LITZ_INLINE @V @N(@V x) {
  const @U u = __builtin_bit_cast(@U, x);
  const @U r = u + 0x7fff + ((u >> 16) & 1);
  return __builtin_bit_cast(@V, (x != x ? u | 0x400000 : r) & 0xffff0000);
}
)"},
    // exp(x) / 2, which overflows only where sinh and cosh do.
    {"exp_half", R"(
LITZ_INLINE @V @N(@V x) {
  const @V c = @{lesser}(@K(105.0f), @{greater}(@K(-105.0f), x));
  const @V t = @{fma}(c, @K(1.44269502f), @K(12583165.0f));
  return @{scale}(@{exp_reduced}(c, t - 12583165.0f), t);
}
)"},
    // For -87 <= x <= 88, or NaN.
    {"exp_inner", R"(
LITZ_INLINE @V @N(@V x) {
  const @V t = @{fma}(x, @K(1.44269502f), @K(12583039.0f));
  const @V p = @{exp_reduced}(x, t - 12583039.0f);
  return p * __builtin_bit_cast(@V, __builtin_bit_cast(@U, t) << 23);
}
)"},
    {"exp2", R"(
LITZ_INLINE @V @N(@V x) {
  const @V c = @{lesser}(@K(129.0f), @{greater}(@K(-151.0f), x));
  const @V t = c + 12583166.0f;
  const @V r = c - (t - 12583166.0f);
  @V p = @K(0.000154610549f);
  p = @{fma}(p, r, @K(0.00133854337f));
  p = @{fma}(p, r, @K(0.00961806718f));
  p = @{fma}(p, r, @K(0.0555037297f));
  p = @{fma}(p, r, @K(0.240226507f));
  p = @{fma}(p, r, @K(0.693147182f));
  return @{scale}(@{fma}(p, r, @K(1.0f)), t);
}
)"},
    // 2^j p + 2^j - 1 with p = e^r - 1, in halves because 2^128 is no float.
    {"expm1", R"(
LITZ_INLINE @V @N(@V x) {
  const @V c = @{lesser}(@K(89.0f), @{greater}(@K(-20.0f), x));
  const @V t = @{fma}(c, @K(1.44269502f), @K(12583038.0f));
  const @V j = t - 12583038.0f;
  const @V r = @{fma}(j, @K(2.12194440e-4f), @{fma}(j, @K(-0.693359375f), c));
  @V p = @K(0.00019956757f);
  p = @{fma}(p, r, @K(0.00139338966f));
  p = @{fma}(p, r, @K(0.00833319407f));
  p = @{fma}(p, r, @K(0.0416664779f));
  p = @{fma}(p, r, @K(0.166666672f));
  p = @{fma}(p, r, @K(0.5f));
  p = @{fma}(r * r, p, r);
  const @V h = __builtin_bit_cast(@V, __builtin_bit_cast(@U, t) << 23);
  const @V y = @{fma}(h, p, h - 0.5f) * 2.0f;
  return x == 0.0f ? x : y;
}
)"},
    // log(1 + f) = f + log_tail(f), sqrt(1/2) - 1 <= f <= sqrt(2) - 1; z = f^2.
    {"log_poly", R"(
LITZ_INLINE @V @N(@V f) {
  @V p = @K(0.0691510513f);
  p = @{fma}(p, f, @K(-0.117890894f));
  p = @{fma}(p, f, @K(0.118726783f));
  p = @{fma}(p, f, @K(-0.123844445f));
  p = @{fma}(p, f, @K(0.142187148f));
  p = @{fma}(p, f, @K(-0.16669248f));
  p = @{fma}(p, f, @K(0.200022236f));
  p = @{fma}(p, f, @K(-0.249999866f));
  return @{fma}(p, f, @K(0.333333105f));
}
)"},
    // x = 2^e (1 + f); returns f.
    {"log_split", R"(
LITZ_INLINE @V @N(@V x, @V* e) {
  const @M tiny = x < 1.17549435e-38f;
  const @I i = __builtin_bit_cast(@I, tiny ? x * 8388608.0f : x);
  const @I k = (i - 0x3f3504f3) >> 23;
  *e = @{from_int}(k) - (tiny ? @K(23.0f) : @K(0.0f));
  return __builtin_bit_cast(@V, i - (k << 23)) - 1.0f;
}
)"},
    // The value of a logarithm outside (0, inf).
    {"log_edges", R"(
LITZ_INLINE @V @N(@V x, @V y) {
  y = x < __builtin_inff() ? y : x;
  y = x == 0.0f ? @K(-__builtin_inff()) : y;
  return x < 0.0f ? @K(__builtin_nanf("")) : y;
}
)"},
    {"log", R"(
LITZ_INLINE @V @N(@V x) {
  @V e;
  const @V f = @{log_split}(x, &e);
  const @V z = f * f;
  @V q = @{fma}(f * z, @{log_poly}(f), e * -2.12194440e-4f);
  q = @{fma}(z, @K(-0.5f), q);
  return @{log_edges}(x, @{fma}(e, @K(0.693359375f), f + q));
}
)"},
    {"log2", R"(
LITZ_INLINE @V @N(@V x) {
  @V e;
  const @V f = @{log_split}(x, &e);
  const @V z = f * f;
  const @V q = @{fma}(z, @K(-0.5f), f * z * @{log_poly}(f));
  const @V y = @{fma}(f, @K(0.442695041f), q * 0.442695041f) + q;
  return @{log_edges}(x, y + f + e);
}
)"},
    {"log10", R"(
LITZ_INLINE @V @N(@V x) {
  @V e;
  const @V f = @{log_split}(x, &e);
  const @V z = f * f;
  const @V q = @{fma}(z, @K(-0.5f), f * z * @{log_poly}(f));
  @V y = @{fma}(e, @K(2.48745664e-4f), (f + q) * 7.00731903e-4f);
  y = @{fma}(q, @K(0.43359375f), y);
  y = @{fma}(f, @K(0.43359375f), y);
  return @{log_edges}(x, @{fma}(e, @K(0.30078125f), y));
}
)"},
    // 1 + x = 2^k (1 + f). Scaling x itself keeps the bits that 1 + x loses; beyond 2^25 it loses
    // none that matter.
    {"log1p", R"(
LITZ_INLINE @V @N(@V x) {
  const @V u = x + 1.0f;
  const @I i = __builtin_bit_cast(@I, u);
  const @I k = (i - 0x3f3504f3) >> 23;
  const @V s = __builtin_bit_cast(@V, 0x3f800000 - (k << 23));
  const @V m = __builtin_bit_cast(@V, i - (k << 23));
  const @V f = x > 33554432.0f ? m - 1.0f : @{fma}(x, s, s - 1.0f);
  const @V e = @{from_int}(k);
  const @V z = f * f;
  @V q = @{fma}(f * z, @{log_poly}(f), e * -2.12194440e-4f);
  q = @{fma}(z, @K(-0.5f), q);
  const @V y = @{log_edges}(u, @{fma}(e, @K(0.693359375f), f + q));
  return x == 0.0f ? x : y;
}
)"},
    {"sin_poly", R"(
LITZ_INLINE @V @N(@V r, @V low) {
  const @V z = r * r;
  @V p = @K(2.82432029e-06f);
  p = @{fma}(p, z, @K(-0.000198524634f));
  p = @{fma}(p, z, @K(0.00833337847f));
  p = @{fma}(p, z, @K(-0.166666672f));
  return r + @{fma}(r * z, p, low);
}
)"},
    {"cos_poly", R"(
LITZ_INLINE @V @N(@V r, @V low) {
  const @V z = r * r;
  @V p = @K(2.4428211e-05f);
  p = @{fma}(p, z, @K(-0.00138872885f));
  p = @{fma}(p, z, @K(0.0416666456f));
  const @V w = @{fma}(z, @K(-0.5f), @K(1.0f));
  const @V d = @{fma}(z, @K(-0.5f), 1.0f - w);
  return w + @{fma}(z * z, p, d - r * low);
}
)"},
    {"sin", R"(
LITZ_INLINE @V @N(@V x) {
  const @V a = @{abs}(x);
  @I q;
  @V low;
  const @V r = @{trig_reduce}(a, &q, &low);
  const @M odd = (q & 1) != 0;
  const @V v = odd ? @{cos_poly}(r, low) : @{sin_poly}(r, low);
  const @I sign = (q << 30) ^ __builtin_bit_cast(@I, x);
  const @V y = __builtin_bit_cast(@V, __builtin_bit_cast(@I, v) ^ (sign & (-2147483647 - 1)));
  return @{any_large}(a) ? @{sin_large}(x, y) : y;
}
)"},
    {"cos", R"(
LITZ_INLINE @V @N(@V x) {
  const @V a = @{abs}(x);
  @I q;
  @V low;
  const @V r = @{trig_reduce}(a, &q, &low);
  const @M odd = (q & 1) != 0;
  const @V v = odd ? @{sin_poly}(r, low) : @{cos_poly}(r, low);
  const @I sign = (q + 1) << 30;
  const @V y = __builtin_bit_cast(@V, __builtin_bit_cast(@I, v) ^ (sign & (-2147483647 - 1)));
  return @{any_large}(a) ? @{cos_large}(x, y) : y;
}
)"},
    {"asin_poly", R"(
LITZ_INLINE @V @N(@V z) {
  @V p = @K(0.0458230227f);
  p = @{fma}(p, z, @K(-0.00273979735f));
  p = @{fma}(p, z, @K(0.0282728225f));
  p = @{fma}(p, z, @K(0.0294690486f));
  p = @{fma}(p, z, @K(0.044716686f));
  p = @{fma}(p, z, @K(0.0749972165f));
  return @{fma}(p, z, @K(0.166666701f));
}
)"},
    // asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)) for a > 9/16, where that root is below 1/2.
    {"asin", R"(
LITZ_INLINE @V @N(@V x) {
  const @V a = @{abs}(x);
  const @M big = a > 0.5625f;
  const @V z = big ? @{fma}(a, @K(-0.5f), @K(0.5f)) : a * a;
  const @V s = big ? @{sqrt}(z) : a;
  const @V p = @{fma}(s * z, @{asin_poly}(z), s);
  const @V y = big ? 1.57079637f - @{fma}(p, @K(2.0f), @K(4.37113883e-8f)) : p;
  return @{flip_sign}(y, x);
}
)"},
    {"acos", R"(
LITZ_INLINE @V @N(@V x) {
  const @V a = @{abs}(x);
  const @M big = a > 0.5625f;
  const @V z = big ? @{fma}(a, @K(-0.5f), @K(0.5f)) : a * a;
  const @V s = big ? @{sqrt}(z) : a;
  const @V p = @{fma}(s * z, @{asin_poly}(z), s);
  const @V near = 1.57079637f - (@{flip_sign}(p, x) + 4.37113883e-8f);
  const @V far = x < 0.0f ? 3.14159274f - @{fma}(p, @K(2.0f), @K(8.74227766e-8f)) : p * 2.0f;
  return big ? far : near;
}
)"},
    // atan(y) for 0 <= y <= 1
    {"atan_poly", R"(
LITZ_INLINE @V @N(@V y) {
  const @V z = y * y;
  @V p = @K(-0.00182407361f);
  p = @{fma}(p, z, @K(0.011050689f));
  p = @{fma}(p, z, @K(-0.031430617f));
  p = @{fma}(p, z, @K(0.0582098551f));
  p = @{fma}(p, z, @K(-0.08418037f));
  p = @{fma}(p, z, @K(0.109570913f));
  p = @{fma}(p, z, @K(-0.142651513f));
  p = @{fma}(p, z, @K(0.199986294f));
  p = @{fma}(p, z, @K(-0.333333015f));
  return @{fma}(y * z, p, y);
}
)"},
    {"atan", R"(
LITZ_INLINE @V @N(@V x) {
  const @V a = @{abs}(x);
  const @M big = a > 1.0f;
  const @V p = @{atan_poly}(big ? 1.0f / a : a);
  return @{flip_sign}(big ? 1.57079637f - (p + 4.37113883e-8f) : p, x);
}
)"},
    {"tanh", R"(
LITZ_INLINE @V @N(@V x) {
  const @V a = @{abs}(x);
  const @V z = a * a;
  @V p = @K(-0.00571550103f);
  p = @{fma}(p, z, @K(0.0206491034f));
  p = @{fma}(p, z, @K(-0.0537430048f));
  p = @{fma}(p, z, @K(0.133314848f));
  p = @{fma}(p, z, @K(-0.333332837f));
  const @V c = @{lesser}(@K(9.1f), a);
  const @V y = 1.0f - @{near_quotient}(@K(2.0f), @{exp_inner}(c + c) + 1.0f);
  return @{flip_sign}(a < 0.625f ? @{fma}(a * z, p, a) : y, x);
}
)"},
    {"sinh", R"(
LITZ_INLINE @V @N(@V x) {
  const @V a = @{abs}(x);
  const @V z = a * a;
  @V p = @K(2.91159186e-08f);
  p = @{fma}(p, z, @K(2.73700334e-06f));
  p = @{fma}(p, z, @K(0.000198445327f));
  p = @{fma}(p, z, @K(0.00833331048f));
  p = @{fma}(p, z, @K(0.166666672f));
  const @V h = @{exp_half}(a);
  return @{flip_sign}(a < 1.5f ? @{fma}(a * z, p, a) : h - 0.25f / h, x);
}
)"},
    {"cosh", R"(
LITZ_INLINE @V @N(@V x) {
  const @V h = @{exp_half}(@{abs}(x));
  return h + 0.25f / h;
}
)"},
    {"sigmoid", R"(
LITZ_INLINE @V @N(@V x) {
  const @V e = @{exp}(-@{abs}(x));
  return @{near_quotient}(x < 0.0f ? e : @K(1.0f), e + 1.0f);
}
)"},
    // Up to 1 a polynomial, beyond it 1 - exp(-a Q(a)).
    {"erf", R"(
LITZ_INLINE @V @N(@V x) {
  const @V a = @{abs}(x);
  const @V z = a * a;
  @V p = @K(7.92045903e-05f);
  p = @{fma}(p, z, @K(-0.000803078467f));
  p = @{fma}(p, z, @K(0.00519073568f));
  p = @{fma}(p, z, @K(-0.026855126f));
  p = @{fma}(p, z, @K(0.112836182f));
  p = @{fma}(p, z, @K(-0.376126289f));
  p = @{fma}(p, z, @K(0.128379166f));
  const @V c = @{lesser}(@K(4.0f), a);
  @V q = @K(-2.35849802e-06f);
  q = @{fma}(q, c, @K(3.75028139e-05f));
  q = @{fma}(q, c, @K(-0.000237693239f));
  q = @{fma}(q, c, @K(0.000583054207f));
  q = @{fma}(q, c, @K(0.00165772368f));
  q = @{fma}(q, c, @K(-0.0210727248f));
  q = @{fma}(q, c, @K(0.104030371f));
  q = @{fma}(q, c, @K(0.636155784f));
  q = @{fma}(q, c, @K(1.12845385f));
  const @V y = 1.0f - @{exp_inner}(-q * c);
  return @{flip_sign}(a < 1.0f ? @{fma}(a, p, a) : y, x);
}
)"},
    // The rest is evaluated in float64 and rounded once.
    {"erfc", R"(
LITZ_INLINE @V @N(@V x) { return @{to_f32:f64}(@{erfc_f32:f64}(@{to_f64}(x))); }
)"},
    {"tan", R"(
LITZ_INLINE @V @N(@V x) {
  const @V a = @{abs}(x);
  const @V y = @{flip_sign}(@{to_f32:f64}(@{tan_f32:f64}(@{to_f64}(a))), x);
  return @{any_large}(a) ? @{tan_large}(x, y) : y;
}
)"},
    {"asinh", R"(
LITZ_INLINE @V @N(@V x) {
  return @{flip_sign}(@{to_f32:f64}(@{asinh_f32:f64}(@{to_f64}(@{abs}(x)))), x);
}
)"},
    {"acosh", R"(
LITZ_INLINE @V @N(@V x) { return @{to_f32:f64}(@{acosh_f32:f64}(@{to_f64}(x))); }
)"},
    {"atanh", R"(
LITZ_INLINE @V @N(@V x) {
  return @{flip_sign}(@{to_f32:f64}(@{atanh_f32:f64}(@{to_f64}(@{abs}(x)))), x);
}
)"},
    {"hypot", R"(
LITZ_INLINE @V @N(@V x, @V y) {
  const @V r = @{to_f32:f64}(@{hypot_f32:f64}(@{to_f64}(x), @{to_f64}(y)));
  const @V a = @{abs}(x);
  const @V b = @{abs}(y);
  const @M m = (a == __builtin_inff()) | (b == __builtin_inff());
  return m ? @K(__builtin_inff()) : r;
}
)"},
    // |x|^y = 2^(y log2 |x|) in float64; the sign and the special cases of IEEE 754 after it.
    {"pow", R"(
LITZ_INLINE @V @N(@V x, @V y) {
  const @V a = @{abs}(x);
  const @V b = @{abs}(y);
  @V r = @{to_f32:f64}(@{pow_f32:f64}(@{to_f64}(a), @{to_f64}(y)));
  const @M whole = (@{trunc}(y) == y) | (b == __builtin_inff());
  const @V half = y * 0.5f;
  const @M odd = whole & (@{trunc}(half) != half) & (b < 16777216.0f);
  r = a == 0.0f ? (y < 0.0f ? @K(__builtin_inff()) : @K(0.0f)) : r;
  r = odd ? @{flip_sign}(r, x) : r;
  const @M bad = (x < 0.0f) & (whole == 0) & (a != __builtin_inff());
  r = bad ? @K(__builtin_nanf("")) : r;
  r = ((x != x) | (y != y)) ? x + y : r;
  const @M one = (x == 1.0f) | (y == 0.0f) | ((x == -1.0f) & (b == __builtin_inff()));
  return one ? @K(1.0f) : r;
}
)"},
    {"atan2", R"(
LITZ_INLINE @V @N(@V y, @V x) {
  const @V a = @{abs}(y);
  const @V b = @{abs}(x);
  const @M steep = a > b;
  const @V small = steep ? b : a;
  const @V large = steep ? a : b;
  const @M equal = a == b;
  @V t = equal ? @K(1.0f) : small / large;
  t = large == 0.0f ? @K(0.0f) : t;
  @V p = @{atan_poly}(t);
  p = steep ? 1.57079637f - (p + 4.37113883e-8f) : p;
  const @M left = __builtin_bit_cast(@I, x) < 0;
  p = left ? 3.14159274f - (p + 8.74227766e-8f) : p;
  p = ((x != x) | (y != y)) ? x + y : p;
  return @{copysign}(p, y);
}
)"},
};

// a = q pi/2 + r + low for 0 <= a <= the limit of any_large.
// `r - s` is exact only where s is not small; there the rounding of s does not matter either.
constexpr std::string_view kReduceFma = R"(
LITZ_INLINE @V @N(@V a, @I* q, @V* low) {
  const @V t = @{fma}(a, @K(0.636619747f), @K(12582912.0f));
  const @V j = t - 12582912.0f;
  *q = __builtin_bit_cast(@I, t);
  const @V r = @{fma}(j, @K(-1.57079637f), a);
  const @V s = @{fma}(j, @K(1.71512489e-15f), @{fma}(j, @K(4.37113883e-8f), r));
  *low = @{abs}(s) > 0.0078125f ? @{fma}(j, @K(4.37113883e-8f), r - s) : @K(0.0f);
  return s;
}
)";
constexpr std::string_view kReduce = R"(
LITZ_INLINE @V @N(@V a, @I* q, @V* low) {
  const @V t = a * 0.636619747f + 12582912.0f;
  const @V j = t - 12582912.0f;
  *q = __builtin_bit_cast(@I, t);
  const @V r = a - j * 1.5703125f - j * 4.83751297e-4f;
  const @V s = r - j * 7.54953362e-8f;
  *low = r - s - j * 7.54953362e-8f - j * 2.56334415e-12f;
  return s;
}
)";
constexpr std::string_view kAnyLarge = R"(
LITZ_INLINE bool @N(@V a) { return __builtin_expect(@{any_mask}((a <= LIMIT) == 0), 0); }
)";

std::string with_limit(std::string_view limit) {
  std::string text(kAnyLarge);
  text.replace(text.find("LIMIT"), 5, limit);
  return text;
}

// The same with an instruction that scales, but for denormals, whose bits are the multiple of
// 2^-149 that is nearest.
constexpr std::string_view kExp512 = R"(
LITZ_INLINE @V @N(@V x) {
  const @V c = @{lesser}(@K(105.0f), @{greater}(@K(-105.0f), x));
  const @V j = @{fma}(c, @K(1.44269502f), @K(12583166.0f)) - 12583166.0f;
  const @V p = @{exp_reduced}(c, j);
  const @M tiny = x < -87.3365479f;
  if (__builtin_expect(@{any_mask}(tiny), 0)) {
    const @V multiple = __builtin_ia32_scalefps512_mask(p, j + 149.0f, p, -1, 4);
    const @V rest = __builtin_ia32_scalefps512_mask(p, tiny ? @K(0.0f) : j, p, -1, 4);
    @I bits;
    __asm__("vcvtps2dq %1, %0" : "=v"(bits) : "v"(multiple));
    return tiny ? __builtin_bit_cast(@V, bits) : rest;
  }
  return __builtin_ia32_scalefps512_mask(p, j, p, -1, 4);
}
)";

// One instruction, which rounds once, too.
constexpr std::string_view kScale512 = R"(
LITZ_INLINE @V @N(@V x, @V t) {
  return __builtin_ia32_scalefps512_mask(x, t - 12583166.0f, x, -1, 4);
}
)";

// n / d, or its neighbour in rare cases, for 1 <= d < 2^126: dividing wide vectors takes several
// times as long.
constexpr std::string_view kNearQuotient = R"(
LITZ_INLINE @V @N(@V n, @V d) {
  @V r;
  RECIPROCAL
  r = @{fma}(@{fma}(-d, r, @K(1.0f)), r, r);
  const @V q = n * r;
  return @{fma}(@{fma}(-q, d, n), r, q);
}
)";
constexpr std::string_view kQuotient = R"(
LITZ_INLINE @V @N(@V n, @V d) { return n / d; }
)";

std::string near_quotient(const PreludeTarget& target, int lanes) {
  if (!target.avx512 || (lanes != 1 && lanes < 4)) return std::string(kQuotient);
  std::string text(kNearQuotient);
  text.replace(text.find("RECIPROCAL"), 10,
               lanes == 1 ? R"(__asm__("vrcp14ss %1, %1, %0" : "=v"(r) : "v"(d));)"
                          : R"(__asm__("vrcp14ps %1, %0" : "=v"(r) : "v"(d));)");
  return text;
}

// The words of 32 in memory, aligned to 64 bytes, that the low five bits of the index choose: of a
// whole register, of a part of one, and one word.
constexpr std::string_view kLookUp = R"(
LITZ_INLINE @V @N(const f32* table, @V index) {
  @V low = *(const @V*)table;
  __asm__("vpermt2ps %2, %1, %0" : "+v"(low) : "v"(index), "v"(*(const @V*)(table + 16)));
  return low;
}
)";
constexpr std::string_view kLookUpLanes = R"(
LITZ_INLINE @V @N(const f32* table, @V index) {
  @V found = {};
  for (int i = 0; i < @n; ++i) found[i] = @{look_up:lane}(table, index[i]);
  return found;
}
)";
constexpr std::string_view kLookUpOne = R"(
LITZ_INLINE @V @N(const f32* table, @V index) {
  return table[__builtin_bit_cast(@U, index) & 31];
}
)";
// A polynomial of (8 |x| - n) for every whole n from 0 to 31, the one that is nearest to 8 |x|: the
// coefficients of the fifth power first, the sum's first term last. For n = 0 that is |x|, so that
// small values keep their digits. Found by interpolation at Chebyshev's points, for n = 0 of
// (erf(x) - x) / 8x; the last one rounds to 1 from where erf does.
constexpr std::string_view kErfByTable = R"(
LITZ_INLINE @V @N(@V x) {
  alignas(64) static const f32 table[192] = {
    3.43054512e-06f, 3.17508466e-06f, 2.44013972e-06f, 1.38682151e-06f,
    2.24450787e-07f, -8.34106459e-07f, -1.62154583e-06f, -2.0479431e-06f,
    -2.10863755e-06f, -1.86973273e-06f, -1.43920192e-06f, -9.34272805e-07f,
    -4.5452984e-07f, -6.62574564e-08f, 2.01076787e-07f, 3.48929291e-07f,
    3.98843127e-07f, 3.80997392e-07f, 3.25126393e-07f, 2.55069153e-07f,
    1.86783453e-07f, 1.28841123e-07f, 8.42160617e-08f, 5.23791499e-08f,
    3.10924122e-08f, 1.76551378e-08f, 9.60674829e-09f, 5.01627317e-09f,
    2.51640775e-09f, 1.21390531e-09f, 5.63552705e-10f, 0.0f,

    7.49534568e-09f, 1.67418093e-05f, 3.09432653e-05f, 4.05981664e-05f,
    4.46256709e-05f, 4.30219152e-05f, 3.67503853e-05f, 2.74257236e-05f,
    1.68973347e-05f, 6.85160603e-06f, -1.47332491e-06f, -7.41476288e-06f,
    -1.08607619e-05f, -1.21177773e-05f, -1.17308773e-05f, -1.03114726e-05f,
    -8.40875055e-06f, -6.43834619e-06f, -4.66317761e-06f, -3.21080188e-06f,
    -2.10907365e-06f, -1.32506295e-06f, -7.97809264e-07f, -4.61045829e-07f,
    -2.56036571e-07f, -1.3677419e-07f, -7.0340711e-08f, -3.48504159e-08f,
    -1.66440977e-08f, -7.66619301e-09f, -3.4068488e-09f, 0.0f,

    -0.000734623347f, -0.000700631179f, -0.000603848952f, -0.000458742463f,
    -0.000286062132f, -0.000108734297f, 5.23215567e-05f, 0.000181491094f,
    0.000270252029f, 0.000317289552f, 0.000327218295f, 0.00030847211f,
    0.000271000084f, 0.000224298186f, 0.00017608855f, 0.000131720968f,
    9.41855396e-05f, 6.45262116e-05f, 4.243078e-05f, 2.68174463e-05f,
    1.63087589e-05f, 9.55160249e-06f, 5.39137318e-06f, 2.93463177e-06f,
    1.54120562e-06f, 7.81284143e-07f, 3.82438003e-07f, 1.80824358e-07f,
    8.26074427e-08f, 3.64716293e-08f, 1.55653836e-08f, 0.0f,

    9.67968136e-11f, -0.00216969475f, -0.0041406746f, -0.00574424816f,
    -0.00686548231f, -0.00745604467f, -0.00753434468f, -0.00717424741f,
    -0.00648605544f, -0.00559466146f, -0.00461955601f, -0.0036600763f,
    -0.00278743124f, -0.0020432428f, -0.00144306745f, -0.000982788508f,
    -0.000645843334f, -0.000409753557f, -0.000251096761f, -0.000148677471f,
    -8.50888537e-05f, -4.70805135e-05f, -2.51913789e-05f, -1.30374456e-05f,
    -6.52738754e-06f, -3.1619843e-06f, -1.48221977e-06f, -6.72435419e-07f,
    -2.95270695e-07f, -1.25505792e-07f, -5.16438234e-08f, -1.80000001e-07f,

    0.0160473958f, 0.138860658f, 0.132501766f, 0.122544102f,
    0.109847821f, 0.0954374447f, 0.0803663805f, 0.0655931309f,
    0.0518884361f, 0.0397842452f, 0.0295651406f, 0.0212949719f,
    0.014866286f, 0.0100590326f, 0.00659687445f, 0.00419322867f,
    0.00258337311f, 0.00154260255f, 0.00089278986f, 0.000500809751f,
    0.000272285542f, 0.000143484387f, 7.32846529e-05f, 3.62785358e-05f,
    1.74066317e-05f, 8.09483572e-06f, 3.64862831e-06f, 1.59396757e-06f,
    6.74928344e-07f, 2.7699005e-07f, 1.1017903e-07f, 7.99999995e-08f,

    0.0f, 0.140316203f, 0.276326388f, 0.404116899f,
    0.520499885f, 0.623240888f, 0.711155653f, 0.784075081f,
    0.842700779f, 0.888388216f, 0.92290014f, 0.948170066f,
    0.966105163f, 0.978443742f, 0.986671686f, 0.99199003f,
    0.995322287f, 0.997345984f, 0.998537302f, 0.999217033f,
    0.999593019f, 0.999794602f, 0.999899387f, 0.999952137f,
    0.999977887f, 0.999990106f, 0.999995708f, 0.999998212f,
    0.999999285f, 0.999999702f, 0.999999881f, 1.0f};
  const @V c = @{lesser}(@K(3.93000007f), @{abs}(x));
  const @V u = @{fma}(c, @K(8.0f), @K(12582912.0f));
  const @V t = @{fma}(c, @K(8.0f), 12582912.0f - u);
  @V p = @{look_up}(table, u);
  p = @{fma}(p, t, @{look_up}(table + 32, u));
  p = @{fma}(p, t, @{look_up}(table + 64, u));
  p = @{fma}(p, t, @{look_up}(table + 96, u));
  p = @{fma}(p, t, @{look_up}(table + 128, u));
  return @{flip_sign}(@{fma}(p, t, c <= 0.0625f ? c : @{look_up}(table + 160, u)), x);
}
)";

}  // namespace

std::string float32_fragment(const PreludeTarget& target, std::string_view name, int lanes) {
  if (target.avx512 && name == "erf") return std::string(kErfByTable);
  if (target.avx512 && name == "exp" && lanes == 16) return std::string(kExp512);
  if (target.avx512 && name == "scale" && lanes == 16) return std::string(kScale512);
  if (name == "near_quotient") return near_quotient(target, lanes);
  if (name == "look_up")
    return std::string(lanes == 16 ? kLookUp : lanes == 1 ? kLookUpOne : kLookUpLanes);
  if (std::string text = find(kFragments, name); !text.empty()) return text;
  if (name == "trig_reduce") return std::string(target.fma ? kReduceFma : kReduce);
  if (name == "any_large") return with_limit(target.fma ? "48000.0f" : "4000.0f");
  return "";
}

}  // namespace litz::prelude
