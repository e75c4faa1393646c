#include <algorithm>

#include "codegen/cpp/prelude_fragments.h"

// Random words (ir/expr_ops.h). One block is four words of one counter; in a vector the words of a
// block are neighbours, as elements are, and one multiplication of the even words by constants is
// both products of a round.
namespace litz::prelude {
namespace {

constexpr std::string_view kWords = R"(
typedef struct {
  u32 a, b, c, d;
} philox_words;

LITZ_INLINE philox_words philox_block(i64 seed, u64 counter) {
  u32 a = (u32)counter, b = (u32)(counter >> 32), c = 0, d = 0;
  u32 k = (u32)seed, l = (u32)((u64)seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const u64 p = (u64)a * 0xD2511F53u, q = (u64)c * 0xCD9E8D57u;
    a = (u32)(q >> 32) ^ b ^ k;
    b = (u32)q;
    c = (u32)(p >> 32) ^ d ^ l;
    d = (u32)p;
    k += 0x9E3779B9u;
    l += 0xBB67AE85u;
  }
  philox_words w = {a, b, c, d};
  return w;
}
)";

constexpr std::string_view kScalar32 = R"(
LITZ_INLINE i32 philox32_i32(i64 seed, i64 index) {
  const philox_words w = philox_block(seed, (u64)index >> 2);
  const u32 low = index & 1 ? w.b : w.a, high = index & 1 ? w.d : w.c;
  return (i32)(index & 2 ? high : low);
}
)";
constexpr std::string_view kScalar64 = R"(
LITZ_INLINE i64 philox64_i64(i64 seed, i64 index) {
  const philox_words w = philox_block(seed, (u64)index >> 1);
  return (i64)(index & 1 ? (u64)w.d << 32 | w.c : (u64)w.b << 32 | w.a);
}
)";

// A device's pack of neighbours: of one block, or of two.
constexpr std::string_view kPack32x4 = R"(
LITZ_INLINE i32x4 philox32_i32x4(i64 seed, i64 index) {
  const philox_words w = philox_block(seed, (u64)index >> 2);
  const i32 a = (i32)w.a, b = (i32)w.b, c = (i32)w.c, d = (i32)w.d;
  if ((index & 3) == 0) return {{a, b}, {c, d}};
  const philox_words v = philox_block(seed, ((u64)index >> 2) + 1);
  const i32 e = (i32)v.a, f = (i32)v.b, g = (i32)v.c;
  if ((index & 3) == 1) return {{b, c}, {d, e}};
  if ((index & 3) == 2) return {{c, d}, {e, f}};
  return {{d, e}, {f, g}};
}
)";
constexpr std::string_view kPack64x2 = R"(
LITZ_INLINE i64x2 philox64_i64x2(i64 seed, i64 index) {
  const philox_words w = philox_block(seed, (u64)index >> 1);
  const i64 a = (i64)((u64)w.b << 32 | w.a), b = (i64)((u64)w.d << 32 | w.c);
  if ((index & 1) == 0) return {a, b};
  const philox_words v = philox_block(seed, ((u64)index >> 1) + 1);
  return {b, (i64)((u64)v.b << 32 | v.a)};
}
)";

// a, b, a, b, ...
std::string pairs(std::string_view a, std::string_view b, int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += (i == 0 ? "" : ", ") + std::string(a) + ", " + std::string(b);
  return "{" + text + "}";
}

}  // namespace

std::string_view philox_words_text() { return kWords; }

std::string_view philox_scalar_text(DType result) {
  return result == DType::kInt32 ? kScalar32 : kScalar64;
}

std::string_view philox_pack_text(DType result, int lanes) {
  if (lanes * size_of(result) != 16) return "";
  return result == DType::kInt32 ? kPack32x4 : kPack64x2;
}

std::string philox_blocks_text(int bytes) {
  const int blocks = bytes / 16;
  const std::string wide = "u64x" + std::to_string(2 * blocks);
  const std::string narrow = "u32x" + std::to_string(4 * blocks);
  std::string counters;
  std::string reversed;
  for (int i = 0; i < blocks; ++i) {
    counters += (i == 0 ? "counter, 0" : ", counter + " + std::to_string(i) + ", 0");
    for (int k = 3; k >= 0; --k)
      reversed += (reversed.empty() ? "" : ", ") + std::to_string(4 * i + k);
  }
  const std::string builtin = bytes == 64   ? "__builtin_ia32_pmuludq512_mask"
                              : bytes == 32 ? "__builtin_ia32_pmuludq256"
                                            : "__builtin_ia32_pmuludq128";
  const std::string register_type = std::to_string(bytes);
  std::string text =
      "\nLITZ_INLINE " + wide + " philox_round_" + wide + "(" + wide + " s, " + wide +
      " k) {\n  const " + wide + " m = " + pairs("0xD2511F53u", "0xCD9E8D57u", blocks) +
      ";\n#if defined(__clang__) || !defined(__x86_64__)\n  const " + wide +
      " p = (s & 0xFFFFFFFFu) * m;\n#else\n  typedef int W __attribute__((vector_size(" +
      register_type + ")));\n";
  text += "  const " + wide + " p = (" + wide + ")" + builtin + "((W)s, (W)m" +
          (bytes == 64 ? ", (long long __attribute__((vector_size(64)))){}, -1" : "") +
          ");\n#endif\n  const " + narrow + " q = (" + narrow + ")p;\n  return (" + wide +
          ")__builtin_shufflevector(q, q, " + reversed + ") ^ (s >> 32) ^ k;\n}\n";
  text += "\nLITZ_INLINE " + wide + " philox_blocks_" + wide + "(i64 seed, u64 counter) {\n  " +
          wide + " s = {" + counters + "};\n  " + narrow + " k = (" + narrow + ")" + wide +
          pairs("(u32)seed", "(u64)seed >> 32", blocks) + ";\n  const " + narrow + " w = (" +
          narrow + ")" + wide + pairs("0x9E3779B9u", "0xBB67AE85u", blocks) + ";\n";
  for (int round = 0; round < 10; ++round) {
    text += "  s = philox_round_" + wide + "(s, (" + wide + ")k);\n";
    if (round < 9) text += "  k += w;\n";
  }
  return text + "  return s;\n}\n";
}

std::string philox_vector_text(DType result, int lanes) {
  const int element = static_cast<int>(size_of(result));
  const int bytes = std::max(16, lanes * element);
  const std::string wide = "u64x" + std::to_string(bytes / 8);
  const std::string blocks = "philox_blocks_" + wide;
  const std::string in_block = std::to_string(16 / element - 1);
  const std::string shift = element == 4 ? "2" : "1";
  const std::string value = std::string(to_string(result)) + "x" + std::to_string(lanes);
  std::string text = "\nLITZ_INLINE " + value + " " + philox_name(result) + "_" + value +
                     "(i64 seed, i64 index) {\n  const u64 first = (u64)index >> " + shift + ";\n";
  if (lanes * element == bytes)
    text += "  if ((index & " + in_block + ") == 0) return (" + value + ")" + blocks +
            "(seed, first);\n";
  return text + "  const " + wide + " both[2] = {" + blocks + "(seed, first), " + blocks +
         "(seed, first + " + std::to_string(bytes / 16) + ")};\n  " + value +
         " r;\n  __builtin_memcpy(&r, (const char*)both + (index & " + in_block + ") * " +
         std::to_string(element) + ", sizeof(r));\n  return r;\n}\n";
}

}  // namespace litz::prelude
