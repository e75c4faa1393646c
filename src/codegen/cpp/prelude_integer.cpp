#include "codegen/cpp/prelude_fragments.h"

// Integer functions. Arithmetic goes through the unsigned type of the lane (@U), for scalars
// narrower than int through u32 (@X), so that nothing overflows and narrow results wrap.
namespace litz::prelude {
namespace {

constexpr Fragment kFragments[] = {
    {"add", "\nLITZ_INLINE @V @N(@V x, @V y) { return (@V)((@A)x + (@A)y); }\n"},
    {"sub", "\nLITZ_INLINE @V @N(@V x, @V y) { return (@V)((@A)x - (@A)y); }\n"},
    {"mul", "\nLITZ_INLINE @V @N(@V x, @V y) { return (@V)((@A)x * (@A)y); }\n"},
    {"neg", "\nLITZ_INLINE @V @N(@V x) { return (@V)(@A{} - (@A)x); }\n"},
    {"and", "\nLITZ_INLINE @V @N(@V x, @V y) { return x & y; }\n"},
    {"or", "\nLITZ_INLINE @V @N(@V x, @V y) { return x | y; }\n"},
    {"min", "\nLITZ_INLINE @V @N(@V x, @V y) { return x < y ? x : y; }\n"},
    {"max", "\nLITZ_INLINE @V @N(@V x, @V y) { return x > y ? x : y; }\n"},
};

constexpr Fragment kSigned[] = {
    {"abs", "\nLITZ_INLINE @V @N(@V x) { return x < 0 ? @{neg}(x) : x; }\n"},
    {"sign",
     "\nLITZ_INLINE @V @N(@V x) { return x > 0 ? @K((@S)1) : (x < 0 ? @K((@S)-1) : @K((@S)0)); "
     "}\n"},
};

constexpr Fragment kUnsigned[] = {
    {"abs", "\nLITZ_INLINE @V @N(@V x) { return x; }\n"},
    {"sign", "\nLITZ_INLINE @V @N(@V x) { return x > 0 ? @K((@S)1) : @K((@S)0); }\n"},
};

// Scalars; vectors go lane by lane, as x86 divides no integer vectors. / and % on @A of narrow
// types would divide as unsigned, so these use the promoted signed values; -1 is handled apart,
// because the smallest value divided by it traps.
constexpr Fragment kScalarSigned[] = {
    {"trunc_div", R"(
LITZ_INLINE @V @N(@V x, @V y) {
  return y == 0 ? (@V)0 : y == -1 ? @{neg}(x) : (@V)(x / y);
}
)"},
    {"fmod",
     "\nLITZ_INLINE @V @N(@V x, @V y) { return ((y == 0) | (y == -1)) ? (@V)0 : (@V)(x % y); }\n"},
    {"floor_div", R"(
LITZ_INLINE @V @N(@V x, @V y) {
  const @V m = @{fmod}(x, y);
  return (@V)(@{trunc_div}(x, y) - ((m != 0) & ((m < 0) != (y < 0))));
}
)"},
    {"remainder", R"(
LITZ_INLINE @V @N(@V x, @V y) {
  const @V m = @{fmod}(x, y);
  return ((m != 0) & ((m < 0) != (y < 0))) ? (@V)(m + y) : m;
}
)"},
    // A negative power is 0 but for the bases 1 and -1.
    {"pow", R"(
LITZ_INLINE @V @N(@V x, @V y) {
  if (y < 0) return x == 1 ? (@V)1 : x == -1 ? (@V)(y & 1 ? -1 : 1) : (@V)0;
  @V r = 1;
  for (; y != 0; y >>= 1, x = @{mul}(x, x)) r = y & 1 ? @{mul}(r, x) : r;
  return r;
}
)"},
};

constexpr Fragment kScalarUnsigned[] = {
    {"trunc_div", "\nLITZ_INLINE @V @N(@V x, @V y) { return y == 0 ? (@V)0 : (@V)(x / y); }\n"},
    {"floor_div", "\nLITZ_INLINE @V @N(@V x, @V y) { return y == 0 ? (@V)0 : (@V)(x / y); }\n"},
    {"fmod", "\nLITZ_INLINE @V @N(@V x, @V y) { return y == 0 ? (@V)0 : (@V)(x % y); }\n"},
    {"remainder", "\nLITZ_INLINE @V @N(@V x, @V y) { return y == 0 ? (@V)0 : (@V)(x % y); }\n"},
    {"pow", R"(
LITZ_INLINE @V @N(@V x, @V y) {
  @V r = 1;
  for (; y != 0; y >>= 1, x = @{mul}(x, x)) r = y & 1 ? @{mul}(r, x) : r;
  return r;
}
)"},
};

constexpr std::string_view kBinaryByLane = R"(
LITZ_INLINE @V @N(@V x, @V y) {
  @V r = x;
  for (int i = 0; i < @n; ++i) r[i] = @{self:lane}(x[i], y[i]);
  return r;
}
)";

// Counts are compared as unsigned values, so a negative one is out of range too. Shifting by
// count & (bits - 1) is defined; the select drops the result where the count was out of range.
std::string shift_text(std::string_view name, bool is_signed) {
  if (name == "shl") {
    return R"(
LITZ_INLINE @V @N(@V x, @V y) {
  const @U c = (@U)y;
  return c < @b ? (@V)((@A)x << (@A)(c & (@X)(@b - 1))) : @K((@S)0);
}
)";
  }
  if (is_signed) {
    return R"(
LITZ_INLINE @V @N(@V x, @V y) {
  const @U c = (@U)y;
  return x >> (@V)(c < @b ? (@U)(c & (@X)(@b - 1)) : @J((@X)(@b - 1)));
}
)";
  }
  return R"(
LITZ_INLINE @V @N(@V x, @V y) {
  return y < @b ? (@V)(x >> (@V)(y & (@X)(@b - 1))) : @K((@S)0);
}
)";
}

}  // namespace

std::string integer_fragment(std::string_view name, Shape shape) {
  const bool has_sign = is_signed(shape.dtype);
  if (name == "shl" || name == "shr") return shift_text(name, has_sign);
  std::string text = find(kFragments, name);
  if (text.empty()) text = has_sign ? find(kSigned, name) : find(kUnsigned, name);
  if (!text.empty()) return text;
  text = has_sign ? find(kScalarSigned, name) : find(kScalarUnsigned, name);
  return text.empty() || shape.scalar() ? text : std::string(kBinaryByLane);
}

}  // namespace litz::prelude
