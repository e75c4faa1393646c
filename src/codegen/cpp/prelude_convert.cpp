#include "codegen/cpp/prelude_fragments.h"

namespace litz::prelude {
namespace {

constexpr std::string_view kByLane = R"(
LITZ_INLINE @T{TO} @N(@V x) {
  @T{TO} r = {};
  for (int i = 0; i < @n; ++i) r[i] = @{self:lane}(x[i]);
  return r;
}
)";

// Bits of a float16 to float32. Multiplying by 2^112 moves the exponent and makes denormals right.
constexpr std::string_view kHalfToFloat = R"(
LITZ_INLINE @T{f32} @N(@V x) {
  const @T{u32} h = @{to_u32}(x);
  const @T{f32} a = __builtin_bit_cast(@T{f32}, (h & 0x7fff) << 13) * 5.19229686e33f;
  const @T{u32} e = a >= 65536.0f ? @T{u32}{} + 0x7f800000u : @T{u32}{} + 0u;
  return __builtin_bit_cast(@T{f32}, __builtin_bit_cast(@T{u32}, a) | e | (h & 0x8000) << 16);
}
)";
// Below 2^-14, adding 1/2 rounds to a multiple of 2^-24 and leaves the result in the low bits.
constexpr std::string_view kFloatToHalf = R"(
LITZ_INLINE @T{u16} @N(@V x) {
  const @T{u32} u = __builtin_bit_cast(@T{u32}, x);
  const @T{u32} a = u & 0x7fffffff;
  const @T{u32} normal = (a - 0x38000000 + 0xfff + ((a >> 13) & 1)) >> 13;
  const @V moved = __builtin_bit_cast(@V, a) + 0.5f;
  const @T{u32} small = __builtin_bit_cast(@T{u32}, moved) - 0x3f000000;
  @T{u32} h = a < 0x38800000u ? small : normal;
  h = a >= 0x477ff000u ? @T{u32}{} + 0x7c00u : h;
  h = a > 0x7f800000u ? @T{u32}{} + 0x7e00u : h;
  return @{to_u16:u32}(h | ((u >> 16) & 0x8000));
}
)";
constexpr std::string_view kBrainToFloat = R"(
LITZ_INLINE @T{f32} @N(@V x) { return __builtin_bit_cast(@T{f32}, @{to_u32}(x) << 16); }
)";
constexpr std::string_view kFloatToBrain = R"(
LITZ_INLINE @T{u16} @N(@V x) {
  const @T{u32} u = __builtin_bit_cast(@T{u32}, x);
  const @T{u32} r = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  return @{to_u16:u32}(x != x ? (u >> 16) | 0x40 : r);
}
)";

// Of a value that is a bfloat16.
constexpr std::string_view kHighBits = R"(
LITZ_INLINE @T{u16} @N(@V x) { return @{to_u16:u32}(__builtin_bit_cast(@T{u32}, x) >> 16); }
)";

// Of 16 lanes.
constexpr std::string_view kFlushedBits = R"(
LITZ_INLINE @T{u16} @N(@V x) {
  @T{u16} r;
  __asm__("vcvtneps2bf16 %1, %0" : "=v"(r) : "v"(x));
  return r;
}
)";

std::string half_to_float(const PreludeTarget& target, Shape shape) {
  if (!target.f16c || (!shape.scalar() && shape.bytes() < 8)) return std::string(kHalfToFloat);
  std::string head =
      "\nLITZ_INLINE @T{f32} @N(@V x) {\n  typedef short W __attribute__((vector_size(16)));\n";
  switch (shape.lanes) {
    case 1:
      return head + "  return __builtin_ia32_vcvtph2ps(W{(short)x})[0];\n}\n";
    case 4:
      return head +
             "  return __builtin_ia32_vcvtph2ps(__builtin_bit_cast(W, "
             "__builtin_shufflevector(x, x, 0, 1, 2, 3, 0, 1, 2, 3)));\n}\n";
    case 8:
      return head + "  return __builtin_ia32_vcvtph2ps256(__builtin_bit_cast(W, x));\n}\n";
    default:
      return "\nLITZ_INLINE @T{f32} @N(@V x) {\n  typedef short W "
             "__attribute__((vector_size(32)));\n  return "
             "__builtin_ia32_vcvtph2ps512_mask(__builtin_bit_cast(W, x), @T{f32}{}, -1, 4);\n}\n";
  }
}

std::string float_to_half(const PreludeTarget& target, Shape shape) {
  if (!target.f16c || shape.lanes == 2) return std::string(kFloatToHalf);
  switch (shape.lanes) {
    case 1:
      return "\nLITZ_INLINE u16 @N(f32 x) {\n  typedef float W __attribute__((vector_size(16)));\n"
             "  return (u16)__builtin_ia32_vcvtps2ph(W{x}, 0)[0];\n}\n";
    case 4:
      return "\nLITZ_INLINE @T{u16} @N(@V x) {\n  const auto h = __builtin_ia32_vcvtps2ph(x, 0);\n"
             "  return __builtin_bit_cast(@T{u16}, __builtin_shufflevector(h, h, 0, 1, 2, "
             "3));\n}\n";
    case 8:
      return "\nLITZ_INLINE @T{u16} @N(@V x) { return __builtin_bit_cast(@T{u16}, "
             "__builtin_ia32_vcvtps2ph256(x, 0)); }\n";
    default:
      return "\nLITZ_INLINE @T{u16} @N(@V x) {\n  typedef short W "
             "__attribute__((vector_size(32)));\n  return __builtin_bit_cast(@T{u16}, "
             "__builtin_ia32_vcvtps2ph512_mask(x, 0, W{}, -1));\n}\n";
  }
}

// Conversions that C++ leaves undefined out of range: the instruction of the scalar, and of the
// vectors that have one.
std::string float_to_int(const PreludeTarget& target, Shape from, DType to) {
  const bool is_f32 = from.dtype == DType::kFloat32;
  const std::string source = is_f32 ? "ps" : "pd";
  if (from.scalar()) {
    const std::string wide = to == DType::kInt64 ? "64" : "";
    return "\nLITZ_INLINE @T{" + std::string(to_string(to)) +
           "} @N(@V x) {\n  typedef @V W __attribute__((vector_size(16)));\n  return "
           "__builtin_ia32_cvtt" +
           (is_f32 ? "ss2si" : "sd2si") + wide + "(W{x});\n}\n";
  }
  std::string call;
  if (to == DType::kInt32) {
    if (from.bytes() == 64) call = "cvtt" + source + "2dq512_mask(x, @T{i32}{}, -1, 4)";
    if (from.bytes() == 32 && target.avx2) call = "cvtt" + source + "2dq256(x)";
    if (from.bytes() == 16 && is_f32) call = "cvttps2dq(x)";
  } else if (target.avx512 && from.lanes == 8) {
    call = "cvtt" + source + "2qq512_mask(x, W{}, -1, 4)";
  }
  if (call.empty()) return std::string(kByLane);
  const std::string type = std::string(to_string(to));
  return "\nLITZ_INLINE @T{" + type + "} @N(@V x) {\n" +
         (to == DType::kInt64 ? "  typedef long long W __attribute__((vector_size(64)));\n" : "") +
         "  return __builtin_bit_cast(@T{" + type + "}, __builtin_ia32_" + call + ");\n}\n";
}

// g++ 12 converts integers of different widths one lane at a time, so it gets the instructions;
// clang finds them by itself.
std::string for_gcc(DType to, std::string_view statements) {
  return replace_to(
      "\nLITZ_INLINE @T{TO} @N(@V x) {\n#ifdef __clang__\n  return "
      "__builtin_convertvector(x, @T{TO});\n#else\n" +
          std::string(statements) + "#endif\n}\n",
      to);
}

char width_letter(int bytes) {
  return bytes == 1 ? 'b' : bytes == 2 ? 'w' : bytes == 4 ? 'd' : 'q';
}

std::string_view lane_type(int bytes) {
  switch (bytes) {
    case 1:
      return "char";
    case 2:
      return "short";
    case 4:
      return "int";
    default:
      return "long long";
  }
}

std::string vector_typedef(std::string_view name, int lane_bytes, int bytes) {
  return "  typedef " + std::string(lane_type(lane_bytes)) + " " + std::string(name) +
         " __attribute__((vector_size(" + std::to_string(bytes) + ")));\n";
}

std::string widen_text(Shape from, DType to) {
  const int lane = static_cast<int>(size_of(from.dtype));
  const int to_lane = static_cast<int>(size_of(to));
  const int to_bytes = to_lane * from.lanes;
  const int operand_bytes = from.bytes() < 16 ? 16 : from.bytes();
  std::string text = vector_typedef("W", lane, operand_bytes);
  std::string operand = "__builtin_bit_cast(W, x)";
  if (from.bytes() < 16) {
    text += vector_typedef("Q", 8, 16);
    operand = "__builtin_bit_cast(W, Q{(long long)__builtin_bit_cast(u" +
              std::to_string(8 * from.bytes()) + ", x)})";
  }
  std::string call = "__builtin_ia32_pmov" + std::string(is_signed(from.dtype) ? "s" : "z") + "x" +
                     width_letter(lane) + width_letter(to_lane) + std::to_string(8 * to_bytes);
  if (to_bytes == 64) {
    text += vector_typedef("R", to_lane, 64);
    call += "_mask(" + operand + ", R{}, -1)";
  } else {
    call += "(" + operand + ")";
  }
  return for_gcc(to, text + "  return __builtin_bit_cast(@T{TO}, " + call + ");\n");
}

// To lanes of half the width: the low halves of the lanes, packed without saturation. Sources of 16
// bytes leave the result in the low 8.
std::string narrow_text(Shape from, DType to) {
  const int lane = static_cast<int>(size_of(from.dtype));
  std::string text = vector_typedef("W", lane, 16);
  std::string low = "__builtin_bit_cast(W, x)";
  std::string high = low;
  if (from.bytes() == 32) {
    const int half = from.lanes / 2;
    low = "__builtin_bit_cast(W, __builtin_shufflevector(x, x, " + index_list(0, half) + "))";
    high = "__builtin_bit_cast(W, __builtin_shufflevector(x, x, " + index_list(half, half) + "))";
  }
  std::string packed;
  if (lane == 8) {
    text += vector_typedef("D", 4, 16);
    packed = "__builtin_shufflevector(__builtin_bit_cast(D, " + low + "), __builtin_bit_cast(D, " +
             high + "), 0, 2, 4, 6)";
  } else {
    const std::string mask = lane == 4 ? "0xffff" : "0xff";
    packed = std::string("__builtin_ia32_packus") + (lane == 4 ? "dw128(" : "wb128(") + low +
             " & " + mask + ", " + high + " & " + mask + ")";
  }
  if (from.bytes() == 16) {
    text += vector_typedef("Q", 8, 16);
    packed = "__builtin_bit_cast(Q, " + packed + ")[0]";
  }
  return for_gcc(to, text + "  return __builtin_bit_cast(@T{TO}, " + packed + ");\n");
}

std::string narrow512_text(Shape from, DType to) {
  const int lane = static_cast<int>(size_of(from.dtype));
  const int to_lane = static_cast<int>(size_of(to));
  const int to_bytes = to_lane * from.lanes;
  std::string text =
      vector_typedef("W", lane, 64) + vector_typedef("R", to_lane, to_bytes < 16 ? 16 : to_bytes);
  std::string result = std::string("__builtin_ia32_pmov") + width_letter(lane) +
                       width_letter(to_lane) + "512_mask(__builtin_bit_cast(W, x), R{}, -1)";
  if (to_bytes == 8) {
    text += vector_typedef("Q", 8, 16);
    result = "__builtin_bit_cast(Q, " + result + ")[0]";
  }
  return for_gcc(to, text + "  return __builtin_bit_cast(@T{TO}, " + result + ");\n");
}

// Empty where __builtin_convertvector serves.
std::string integer_conversion(const PreludeTarget& target, Shape from, DType to) {
  const int64_t lane = size_of(from.dtype);
  const int64_t to_lane = size_of(to);
  const int64_t to_bytes = to_lane * from.lanes;
  if (!target.avx2 || !is_integral(from.dtype)) return "";
  if (is_floating(to)) {
    if (lane > 2) return "";
    return replace_to("\nLITZ_INLINE @T{TO} @N(@V x) { return @{to_TO:i32}(@{to_i32}(x)); }\n", to);
  }
  if (to_lane > lane) return to_bytes >= 16 ? widen_text(from, to) : "";
  if (to_lane == lane || from.bytes() < 16) return "";
  if (from.bytes() == 64) return narrow512_text(from, to);
  if (lane == 2 * to_lane) return narrow_text(from, to);
  const std::string middle = lane == 8 ? "i32" : "i16";
  return replace_to("\nLITZ_INLINE @T{TO} @N(@V x) { return @{to_TO:" + middle + "}(@{to_" +
                        middle + "}(x)); }\n",
                    to);
}

}  // namespace

std::string convert_fragment(const PreludeTarget& target, std::string_view name, Shape from,
                             DType to) {
  if (name == "from_f16") return half_to_float(target, from);
  if (name == "from_bf16") return std::string(kBrainToFloat);
  if (name == "bits_f16") return float_to_half(target, from);
  if (name == "bits_bf16") return std::string(kFloatToBrain);
  if (name == "high_bf16") return std::string(kHighBits);
  if (name == "flushed_bf16") return std::string(kFlushedBits);
  if (is_floating(from.dtype) && is_integral(to)) {
    if (to == DType::kInt32 || to == DType::kInt64) {
      return replace_to(float_to_int(target, from, to), to);
    }
    // Through the integer that eager goes through.
    const bool wide = to == DType::kUInt32 || to == DType::kUInt64 ||
                      (to == DType::kUInt8 && from.dtype == DType::kFloat64);
    const std::string middle = wide ? "i64" : "i32";
    return replace_to("\nLITZ_INLINE @T{TO} @N(@V x) { return @{to_TO:" + middle + "}(@{to_" +
                          middle + "}(x)); }\n",
                      to);
  }
  if (from.scalar()) return replace_to("\nLITZ_INLINE @T{TO} @N(@V x) { return (@T{TO})x; }\n", to);
  const std::string by_instruction = integer_conversion(target, from, to);
  if (!by_instruction.empty()) return by_instruction;
  return replace_to(
      "\nLITZ_INLINE @T{TO} @N(@V x) { return __builtin_convertvector(x, @T{TO}); }\n", to);
}

}  // namespace litz::prelude
