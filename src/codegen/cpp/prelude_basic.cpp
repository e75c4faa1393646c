#include "codegen/cpp/prelude_fragments.h"

// What the math is built from: single instructions, with the builtin that each compiler has for
// them, and what replaces them where the target has none.
namespace litz::prelude {
namespace {

bool is_f32(Shape shape) { return shape.dtype == DType::kFloat32; }

// One lane at a time through the scalar version of the function.
std::string unary_by_lane() {
  return R"(
LITZ_INLINE @V @N(@V x) {
  @V r = x;
  for (int i = 0; i < @n; ++i) r[i] = @{self:lane}(x[i]);
  return r;
}
)";
}

// A body that clang with generic builtins writes as `generic`, and others as `builtin`.
std::string by_compiler(std::string_view params, std::string_view feature, std::string_view generic,
                        std::string_view builtin) {
  std::string text = "\nLITZ_INLINE @V @N(" + std::string(params) + ") {\n";
  text += "#if LITZ_HAS(" + std::string(feature) + ")\n  return " + std::string(generic) + ";\n";
  text += "#else\n  return " + std::string(builtin) + ";\n#endif\n}\n";
  return text;
}

std::string fma_fragment(const PreludeTarget& target, Shape shape) {
  if (!target.fma) return "\nLITZ_INLINE @V @N(@V x, @V y, @V z) { return x * y + z; }\n";
  const std::string suffix = is_f32(shape) ? "ps" : "pd";
  if (shape.scalar()) {
    return "\nLITZ_INLINE @V @N(@V x, @V y, @V z) { return __builtin_fma" +
           std::string(is_f32(shape) ? "f" : "") + "(x, y, z); }\n";
  }
  std::string builtin;
  switch (shape.bytes()) {
    case 64:
      builtin = "__builtin_ia32_vfmadd" + suffix + "512_mask(x, y, z, -1, 4)";
      break;
    case 32:
      builtin = "__builtin_ia32_vfmadd" + suffix + "256(x, y, z)";
      break;
    case 16:
      builtin = "__builtin_ia32_vfmadd" + suffix + "(x, y, z)";
      break;
    default:
      return R"(
LITZ_INLINE @V @N(@V x, @V y, @V z) {
  @V r = x;
  for (int i = 0; i < @n; ++i) r[i] = @{self:lane}(x[i], y[i], z[i]);
  return r;
}
)";
  }
  return by_compiler("@V x, @V y, @V z", "__builtin_elementwise_fma",
                     "__builtin_elementwise_fma(x, y, z)", builtin);
}

std::string sqrt_fragment(Shape shape) {
  const std::string type = is_f32(shape) ? "f" : "";
  const std::string suffix = is_f32(shape) ? "ps" : "pd";
  if (shape.scalar()) {
    // The builtin would call libm for negative operands, to set errno.
    return R"(
LITZ_INLINE @V @N(@V x) {
  typedef @S W __attribute__((vector_size(16)));
#if LITZ_HAS(__builtin_elementwise_sqrt)
  return __builtin_elementwise_sqrt(W{x})[0];
#else
  return __builtin_ia32_sqrt)" +
           suffix + R"((W{x})[0];
#endif
}
)";
  }
  switch (shape.bytes()) {
    case 64:
      return R"(
LITZ_INLINE @V @N(@V x) {
#if LITZ_HAS(__builtin_elementwise_sqrt)
  return __builtin_elementwise_sqrt(x);
#elif defined(__clang__)
  return __builtin_ia32_sqrt)" +
             suffix + R"(512(x, 4);
#else
  return __builtin_ia32_sqrt)" +
             suffix + R"(512_mask(x, x, -1, 4);
#endif
}
)";
    case 32:
      return by_compiler("@V x", "__builtin_elementwise_sqrt", "__builtin_elementwise_sqrt(x)",
                         "__builtin_ia32_sqrt" + suffix + "256(x)");
    case 16:
      return by_compiler("@V x", "__builtin_elementwise_sqrt", "__builtin_elementwise_sqrt(x)",
                         "__builtin_ia32_sqrt" + suffix + "(x)");
    default:
      return unary_by_lane();
  }
}

// x < y ? x : y (or x > y): the instruction, y where either is NaN. g++ does not find it by itself.
std::string extreme_fragment(Shape shape, bool less) {
  const std::string pattern = std::string("x ") + (less ? "<" : ">") + " y ? x : y";
  const std::string builtin =
      std::string("__builtin_ia32_") + (less ? "min" : "max") + (is_f32(shape) ? "ps" : "pd");
  std::string call;
  if (!shape.scalar() && shape.bytes() == 64) call = builtin + "512_mask(x, y, x, -1, 4)";
  if (!shape.scalar() && shape.bytes() == 32) call = builtin + "256(x, y)";
  if (!shape.scalar() && shape.bytes() == 16) call = builtin + "(x, y)";
  if (call.empty()) return "\nLITZ_INLINE @V @N(@V x, @V y) { return " + pattern + "; }\n";
  return "\nLITZ_INLINE @V @N(@V x, @V y) {\n#ifdef __clang__\n  return " + pattern +
         ";\n#else\n  return " + call + ";\n#endif\n}\n";
}

// mode: the rounding field of roundps (0 nearest even, 1 down, 2 up, 3 to zero).
std::string round_fragment(const PreludeTarget& target, Shape shape, int mode) {
  const std::string suffix = is_f32(shape) ? "ps" : "pd";
  const std::string imm = std::to_string(mode | 8);
  if (target.avx2) {
    if (shape.scalar()) {
      return "\nLITZ_INLINE @V @N(@V x) {\n  typedef @S W __attribute__((vector_size(16)));\n"
             "  return __builtin_ia32_round" +
             suffix + "(W{x}, " + imm + ")[0];\n}\n";
    }
    switch (shape.bytes()) {
      case 64:
        return "\nLITZ_INLINE @V @N(@V x) { return __builtin_ia32_rndscale" + suffix + "_mask(x, " +
               imm + ", x, -1, 4); }\n";
      case 32:
        return "\nLITZ_INLINE @V @N(@V x) { return __builtin_ia32_round" + suffix + "256(x, " +
               imm + "); }\n";
      case 16:
        return "\nLITZ_INLINE @V @N(@V x) { return __builtin_ia32_round" + suffix + "(x, " + imm +
               "); }\n";
      default:
        return unary_by_lane();
    }
  }
  // Adding 2^23 (2^52) to |x| leaves no bits below the point.
  std::string big = is_f32(shape) ? "8388608.0f" : "4503599627370496.0";
  std::string one = is_f32(shape) ? "1.0f" : "1.0";
  std::string zero = is_f32(shape) ? "0.0f" : "0.0";
  std::string text = "\nLITZ_INLINE @V @N(@V x) {\n  const @V a = @{abs}(x);\n  @V r = (a + " +
                     big + ") - " + big + ";\n";
  if (mode == 3) text += "  r = r > a ? r - " + one + " : r;\n";
  text += "  r = @{copysign}(r, x);\n";
  if (mode == 1) text += "  r = r > x ? @{copysign}(r - " + one + ", x) : r;\n";
  if (mode == 2) text += "  r = r < x ? @{copysign}(r + " + one + ", x) : r;\n";
  text += "  return a < " + big + " ? r : x;\n}\n";
  return text;
}

std::string any_fragment(const PreludeTarget& target, Shape shape) {
  if (shape.scalar()) return "\nLITZ_INLINE bool @N(@M m) { return m; }\n";
  switch (shape.bytes()) {
    case 64:
      return "\nLITZ_INLINE bool @N(@M m) {\n  typedef char W __attribute__((vector_size(64)));\n"
             "  return __builtin_ia32_cvtb2mask512(__builtin_bit_cast(W, m)) != 0;\n}\n";
    case 32:
      if (!target.avx2) break;
      return "\nLITZ_INLINE bool @N(@M m) {\n  typedef char W __attribute__((vector_size(32)));\n"
             "  return __builtin_ia32_pmovmskb256(__builtin_bit_cast(W, m)) != 0;\n}\n";
    case 16:
      return "\nLITZ_INLINE bool @N(@M m) {\n  typedef char W __attribute__((vector_size(16)));\n"
             "  return __builtin_ia32_pmovmskb128(__builtin_bit_cast(W, m)) != 0;\n}\n";
    default:
      break;
  }
  const int bits = shape.bytes() * 8;
  return "\nLITZ_INLINE bool @N(@M m) { return __builtin_bit_cast(u" + std::to_string(bits) +
         ", m) != 0; }\n";
}

std::string reduce_text(std::string_view combine, int lanes) {
  std::string text = "\nLITZ_INLINE @S @N(@V x) {\n";
  if (lanes == 1) return text + "  return x;\n}\n";
  for (int half = lanes / 2; half >= 1; half /= 2) {
    text += "  x = " + std::string(combine) + "(x, __builtin_shufflevector(x, x, " +
            index_list(half, half) + ", " + index_list(0, half);
    for (int i = 2 * half; i < lanes; ++i) text += ", " + std::to_string(i);
    text += "));\n";
  }
  return text + "  return x[0];\n}\n";
}

// Transposes by swapping off-diagonal blocks of 1, 2, 4, ... elements.
std::string transpose_text(int lanes) {
  std::string text = "\nLITZ_INLINE void @N(@V* rows) {\n";
  for (int i = 0; i < lanes; ++i) {
    text += "  @V r" + std::to_string(i) + " = rows[" + std::to_string(i) + "];\n";
  }
  text += "  @V t;\n";
  for (int step = lanes / 2; step >= 1; step /= 2) {
    std::string low;
    std::string high;
    for (int k = 0; k < lanes; ++k) {
      low += ", " + std::to_string((k & step) == 0 ? k : lanes + k - step);
      high += ", " + std::to_string((k & step) == 0 ? k + step : lanes + k);
    }
    for (int i = 0; i < lanes; ++i) {
      if ((i & step) != 0) continue;
      const std::string a = "r" + std::to_string(i);
      const std::string b = "r" + std::to_string(i + step);
      text += "  t = __builtin_shufflevector(" + a + ", " + b + low + ");\n";
      text += "  " + b + " = __builtin_shufflevector(" + a + ", " + b + high + ");\n";
      text += "  " + a + " = t;\n";
    }
  }
  for (int i = 0; i < lanes; ++i) {
    text += "  rows[" + std::to_string(i) + "] = r" + std::to_string(i) + ";\n";
  }
  return text + "}\n";
}

std::string iota_text(int lanes) {
  std::string text = "\nLITZ_INLINE @V @N(@S x) {\n  return @V{x";
  for (int i = 1; i < lanes; ++i) text += ", (@S)(x + " + std::to_string(i) + ")";
  return text + "};\n}\n";
}

std::string splat_text(int lanes) {
  std::string text = "\nLITZ_INLINE @V @N(@S x) { return @V{x";
  for (int i = 1; i < lanes; ++i) text += ", x";
  return text + "}; }\n";
}

std::string first_lanes_text(Shape shape) {
  if (shape.scalar()) return "\nLITZ_INLINE bool @N(i64 n) { return n > 0; }\n";
  return "\nLITZ_INLINE @M @N(i64 n) { return @M{" + index_list(0, shape.lanes) + "} < (@Z)n; }\n";
}

// For floats of both widths; `@F` is the suffix of a float literal.
constexpr Fragment kFloat[] = {
    {"add", "\nLITZ_INLINE @V @N(@V x, @V y) { return x + y; }\n"},
    {"sub", "\nLITZ_INLINE @V @N(@V x, @V y) { return x - y; }\n"},
    {"mul", "\nLITZ_INLINE @V @N(@V x, @V y) { return x * y; }\n"},
    {"neg", "\nLITZ_INLINE @V @N(@V x) { return -x; }\n"},
    {"abs", R"(
LITZ_INLINE @V @N(@V x) {
  return __builtin_bit_cast(@V, __builtin_bit_cast(@U, x) & (~(@X)0 >> 1));
}
)"},
    {"flip_sign", R"(
LITZ_INLINE @V @N(@V x, @V s) {
  return __builtin_bit_cast(@V, __builtin_bit_cast(@U, x) ^ (__builtin_bit_cast(@U, s) & ~(~(@X)0 >> 1)));
}
)"},
    {"copysign", R"(
LITZ_INLINE @V @N(@V x, @V s) {
  const @U m = __builtin_bit_cast(@U, x) & (~(@X)0 >> 1);
  return __builtin_bit_cast(@V, m | (__builtin_bit_cast(@U, s) & ~(~(@X)0 >> 1)));
}
)"},
    {"sign", R"(
LITZ_INLINE @V @N(@V x) {
  const @V y = x < 0.0@F ? @K(-1.0@F) : @K(0.0@F);
  return x > 0.0@F ? @K(1.0@F) : y;
}
)"},
    {"min", R"(
LITZ_INLINE @V @N(@V x, @V y) {
  const @V r = @{lesser}(y, x);
  return y != y ? y : r;
}
)"},
    {"max", R"(
LITZ_INLINE @V @N(@V x, @V y) {
  const @V r = @{greater}(y, x);
  return y != y ? y : r;
}
)"},
    {"rsqrt", "\nLITZ_INLINE @V @N(@V x) { return 1.0@F / @{sqrt}(x); }\n"},
    {"reciprocal", "\nLITZ_INLINE @V @N(@V x) { return 1.0@F / x; }\n"},
    {"trunc_div", "\nLITZ_INLINE @V @N(@V x, @V y) { return @{trunc}(x / y); }\n"},
    {"remainder", R"(
LITZ_INLINE @V @N(@V x, @V y) {
  const @V m = @{fmod}(x, y);
  return ((m != 0.0@F) & ((y < 0.0@F) != (m < 0.0@F))) ? m + y : m;
}
)"},
    // Subtracting the remainder makes the quotient a whole number up to rounding, so that floor
    // does not step below a quotient that is exact.
    {"floor_div", R"(
LITZ_INLINE @V @N(@V x, @V y) {
  const @V m = @{fmod}(x, y);
  @V q = (x - m) / y;
  q = ((m != 0.0@F) & ((y < 0.0@F) != (m < 0.0@F))) ? q - 1.0@F : q;
  @V r = @{floor}(q);
  r = q - r > 0.5@F ? r + 1.0@F : r;
  r = q == 0.0@F ? @{copysign}(@K(0.0@F), x / y) : r;
  return y == 0.0@F ? x / y : r;
}
)"},
};

}  // namespace

std::string index_list(int first, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + std::to_string(first + i);
  return text;
}

std::string basic_fragment(const PreludeTarget& target, std::string_view name, Shape shape) {
  if (name == "splat") return splat_text(shape.lanes);
  if (name == "iota") return iota_text(shape.lanes);
  if (name == "first_lanes") return first_lanes_text(shape);
  if (name == "any_mask") return any_fragment(target, shape);
  if (name == "transpose") return transpose_text(shape.lanes);
  if (name.starts_with("reduce_")) {
    return reduce_text("@{" + std::string(name.substr(7)) + "}", shape.lanes);
  }
  if (name == "from_mask") {
    if (shape.scalar()) return "\nLITZ_INLINE @V @N(bool m) { return (@V)m; }\n";
    return "\nLITZ_INLINE @V @N(@M m) { return __builtin_bit_cast(@V, m & "
           "__builtin_bit_cast(@M, @K((@S)1))); }\n";
  }
  if (!is_floating(shape.dtype)) return "";
  if (name == "lesser") return extreme_fragment(shape, true);
  if (name == "greater") return extreme_fragment(shape, false);
  if (name == "fma") return fma_fragment(target, shape);
  if (name == "sqrt") return sqrt_fragment(shape);
  if (name == "round") return round_fragment(target, shape, 0);
  if (name == "floor") return round_fragment(target, shape, 1);
  if (name == "ceil") return round_fragment(target, shape, 2);
  if (name == "trunc") return round_fragment(target, shape, 3);
  if (name == "from_int") {
    return shape.scalar()
               ? "\nLITZ_INLINE @V @N(@I x) { return (@V)x; }\n"
               : "\nLITZ_INLINE @V @N(@I x) { return __builtin_convertvector(x, @V); }\n";
  }
  return find(kFloat, name);
}

}  // namespace litz::prelude
