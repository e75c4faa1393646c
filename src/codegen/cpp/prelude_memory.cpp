#include "codegen/cpp/prelude_fragments.h"

#include <optional>

// Loads, stores and conversions of native values. Memory is read and written through types of
// alignment 1 that may alias anything.
namespace litz::prelude {
namespace {

constexpr std::string_view kLoad = R"(
LITZ_INLINE @V @N(const void* p) {
  typedef @V W __attribute__((aligned(1), may_alias));
  return *(const W*)p;
}
)";
constexpr std::string_view kStore = R"(
LITZ_INLINE void @N(void* p, @V v) {
  typedef @V W __attribute__((aligned(1), may_alias));
  *(W*)p = v;
}
)";

// Copies n elements, fewer than the lanes, as a sum of powers of two.
std::string tail_steps(Shape shape, std::string_view to, std::string_view from) {
  const int bytes = static_cast<int>(size_of(shape.dtype));
  std::string text = "  i64 k = 0;\n";
  for (int step = shape.lanes / 2; step >= 1; step /= 2) {
    const std::string size = std::to_string(step * bytes);
    text += "  if (n & " + std::to_string(step) + ") {\n    __builtin_memcpy(" + std::string(to) +
            ", " + std::string(from) + ", " + size + ");\n    k += " + size + ";\n  }\n";
  }
  return text;
}

// Masked moves of bytes and of words of two bytes.
struct NarrowMove {
  std::string text;  // the start of a function: types W of the vector and P of what lies in memory
  std::string suffix;  // of the builtin
  std::string mask;    // of the first n lanes
};
std::optional<NarrowMove> narrow_move(const PreludeTarget& target, Shape shape) {
  const int64_t bytes = size_of(shape.dtype);
  if (!target.avx512 || bytes > 2 || shape.bytes() < 16) return std::nullopt;
  const std::string type = bytes == 2 ? "short" : "char";
  const std::string width = std::to_string(shape.bytes());
  NarrowMove move;
  move.text = "  typedef " + type + " W __attribute__((vector_size(" + width +
              ")));\n#ifdef __clang__\n  typedef W P;\n#else\n  typedef " + type + " P;\n#endif\n";
  move.suffix = (bytes == 2 ? "hi" : "qi") + std::to_string(8 * shape.bytes()) + "_mask";
  move.mask = shape.lanes == 64 ? "n == 64 ? ~0ull : (1ull << n) - 1" : "(1ull << n) - 1";
  return move;
}

// How a masked move is called: q for 8-byte lanes, d for 4-byte ones.
std::string load_tail_text(const PreludeTarget& target, Shape shape) {
  const int bytes = static_cast<int>(size_of(shape.dtype));
  if (bytes >= 4 && shape.bytes() == 64) {
    const std::string lane = bytes == 4 ? "si" : "di";
    const std::string type = bytes == 4 ? "int" : "long long";
    return "\nLITZ_INLINE @V @N(const void* p, i64 n) {\n  typedef " + type +
           " W __attribute__((vector_size(64)));\n  return __builtin_bit_cast(@V, "
           "__builtin_ia32_loaddqu" +
           lane + "512_mask((const " + type + "*)p, W{}, (1u << n) - 1));\n}\n";
  }
  if (bytes >= 4 && target.avx2 && shape.bytes() >= 16) {
    const std::string type = bytes == 4 ? "int" : "long long";
    const std::string width = std::to_string(shape.bytes());
    return "\nLITZ_INLINE @V @N(const void* p, i64 n) {\n  typedef " + type +
           " W __attribute__((vector_size(" + width +
           ")));\n  const W m = __builtin_bit_cast(W, @{first_lanes}(n));\n  return "
           "__builtin_bit_cast(@V, __builtin_ia32_maskload" +
           (bytes == 4 ? "d" : "q") + (shape.bytes() == 32 ? "256" : "") +
           "((const W*)p, m));\n}\n";
  }
  if (const auto move = narrow_move(target, shape))
    return "\nLITZ_INLINE @V @N(const void* p, i64 n) {\n" + move->text +
           "  return __builtin_bit_cast(@V, __builtin_ia32_loaddqu" + move->suffix +
           "((const P*)p, W{}, " + move->mask + "));\n}\n";
  return "\nLITZ_INLINE @V @N(const void* p, i64 n) {\n  if (n == " + std::to_string(shape.lanes) +
         ") return @{load}(p);\n  @V r = {};\n" +
         tail_steps(shape, "(char*)&r + k", "(const char*)p + k") + "  return r;\n}\n";
}

std::string store_tail_text(const PreludeTarget& target, Shape shape) {
  const int bytes = static_cast<int>(size_of(shape.dtype));
  if (bytes >= 4 && shape.bytes() == 64) {
    const std::string lane = bytes == 4 ? "si" : "di";
    const std::string type = bytes == 4 ? "int" : "long long";
    return "\nLITZ_INLINE void @N(void* p, @V v, i64 n) {\n  typedef " + type +
           " W __attribute__((vector_size(64)));\n  __builtin_ia32_storedqu" + lane + "512_mask((" +
           type + "*)p, __builtin_bit_cast(W, v), (1u << n) - 1);\n}\n";
  }
  if (bytes >= 4 && target.avx2 && shape.bytes() >= 16) {
    const std::string type = bytes == 4 ? "int" : "long long";
    const std::string width = std::to_string(shape.bytes());
    return "\nLITZ_INLINE void @N(void* p, @V v, i64 n) {\n  typedef " + type +
           " W __attribute__((vector_size(" + width +
           ")));\n  const W m = __builtin_bit_cast(W, @{first_lanes}(n));\n  "
           "__builtin_ia32_maskstore" +
           (bytes == 4 ? "d" : "q") + (shape.bytes() == 32 ? "256" : "") +
           "((W*)p, m, __builtin_bit_cast(W, v));\n}\n";
  }
  if (const auto move = narrow_move(target, shape))
    return "\nLITZ_INLINE void @N(void* p, @V v, i64 n) {\n" + move->text +
           "  __builtin_ia32_storedqu" + move->suffix + "((P*)p, __builtin_bit_cast(W, v), " +
           move->mask + ");\n}\n";
  return "\nLITZ_INLINE void @N(void* p, @V v, i64 n) {\n  if (n == " +
         std::to_string(shape.lanes) + ") return @{store}(p, v);\n" +
         tail_steps(shape, "(char*)p + k", "(const char*)&v + k") + "}\n";
}

std::string store_stream_text(Shape shape) {
  if (shape.scalar() || shape.bytes() < 16) {
    return "\nLITZ_INLINE void @N(void* p, @V v) { @{store}(p, v); }\n";
  }
  const std::string width = std::to_string(shape.bytes());
  const std::string suffix = shape.bytes() == 64 ? "512" : shape.bytes() == 32 ? "256" : "";
  return "\nLITZ_INLINE void @N(void* p, @V v) {\n  typedef float W "
         "__attribute__((vector_size(" +
         width + "), may_alias));\n  if ((u64)p % " + width +
         ") return @{store}(p, v);\n#if LITZ_HAS(__builtin_nontemporal_store)\n  "
         "__builtin_nontemporal_store(__builtin_bit_cast(W, v), (W*)p);\n#else\n  "
         "__builtin_ia32_movntps" +
         suffix + "((float*)p, __builtin_bit_cast(W, v));\n#endif\n}\n";
}

}  // namespace

std::string memory_fragment(const PreludeTarget& target, std::string_view name, Shape shape) {
  if (name == "load") return std::string(kLoad);
  if (name == "store") return std::string(kStore);
  if (name == "load_tail") return load_tail_text(target, shape);
  if (name == "store_tail") return store_tail_text(target, shape);
  if (name == "store_stream") return store_stream_text(shape);
  return "";
}

}  // namespace litz::prelude
