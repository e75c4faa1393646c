#include "codegen/cpp/prelude.h"

// What matrix products of bfloat16 need where the target multiplies pairs of them: a word of 32
// bits is a pair, the factor with the even number in its low half.
namespace litz {
namespace {

constexpr const char* kFunction = "\nstatic __attribute__((noinline, unused)) void ";

}  // namespace

// The compilers' builtins differ in the types that they take: their assemblers agree.
std::string Prelude::add_pairs() {
  const std::string vector = type(DType::kFloat32, native_lanes(4));
  return define("add_pairs",
                vector + " add_pairs(" + vector + " x, " + vector + " y, " + vector +
                    " sum) {\n  __asm__(\"vdpbf16ps %2, %1, %0\" : \"+v\"(sum) : \"v\"(x), "
                    "\"v\"(y));\n  return sum;\n}");
}

std::string Prelude::load_joined_rows() {
  const int lanes = native_lanes(4);
  const std::string vector = type(DType::kFloat32, lanes);
  const std::string words = type(DType::kUInt32, lanes);
  const std::string load_row = load(DType::kUInt16, lanes);
  const std::string widen = convert(DType::kUInt16, DType::kUInt32, lanes);
  return define("load_joined_rows",
                vector + " load_joined_rows(const u16* p, i64 stride) {\n  const " + words +
                    " low = " + widen + "(" + load_row + "(p));\n  return __builtin_bit_cast(" +
                    vector + ", low | " + widen + "(" + load_row + "(p + stride)) << 16);\n}");
}

std::string Prelude::load_part_of_joined_rows() {
  const int lanes = native_lanes(4);
  const std::string own = "load_part_of_joined_rows";
  const std::string vector = type(DType::kFloat32, lanes);
  const std::string words = type(DType::kUInt32, lanes);
  const std::string load_part = load_tail(DType::kUInt16, lanes);
  const std::string widen = convert(DType::kUInt16, DType::kUInt32, lanes);
  return define(own, vector + " " + own + "(const u16* p, i64 stride, i64 n, bool both) {\n  " +
                         words + " bits = " + widen + "(" + load_part +
                         "(p, n));\n  if (both) bits = bits | " + widen + "(" + load_part +
                         "(p + stride, n)) << 16;\n  return __builtin_bit_cast(" + vector +
                         ", bits);\n}");
}

std::string Prelude::load_part_of_pairs() {
  const int lanes = native_lanes(4);
  const std::string vector = type(DType::kFloat32, lanes);
  const std::string load_part = load_tail(DType::kUInt16, 2 * lanes);
  return define("load_part_of_pairs",
                vector + " load_part_of_pairs(const u16* p, i64 n) { return __builtin_bit_cast(" +
                    vector + ", " + load_part + "(p, n)); }");
}

std::string Prelude::join_rows(bool whole_tiles) {
  const int lanes = native_lanes(4);
  const std::string own = whole_tiles ? "join_rows_tiles" : "join_rows";
  if (!defined_.insert(own).second) return own;
  const std::string vector = type(DType::kFloat32, lanes);
  const std::string load_both = load_joined_rows();
  const std::string load_part = load_part_of_joined_rows();
  const std::string store_vector = store(DType::kFloat32, lanes);
  const std::string n = std::to_string(lanes);
  std::string pairs = "(rows + 1) / 2";
  std::string rest;
  if (whole_tiles) {
    pairs = pairs_of_whole_tiles("rows");
    rest =
        "  for (i64 k = (rows + 1) / 2; k < pairs; ++k, to += width) {\n    f32* panel = to;\n"
        "    for (i64 j = 0; j < columns; j += width, panel += pairs * width) {\n"
        "      for (i64 i = 0; i < width; i += " +
        n + ") " + store_vector + "(panel + i, " + vector + "{});\n    }\n  }\n";
  }
  body_ += kFunction + own +
           "(const void* from, i64 stride, i64 rows, i64 columns, f32* to, i64 width) {\n"
           "  const u16* b = (const u16*)from;\n  const i64 pairs = " +
           pairs +
           ";\n"
           "  for (i64 k = 0; k < rows; k += 2, b += 2 * stride, to += width) {\n"
           "    f32* panel = to;\n"
           "    for (i64 j = 0; j < columns; j += width, panel += pairs * width) {\n"
           "      for (i64 i = 0; i < width; i += " +
           n +
           ") {\n        const i64 left = columns - j - i;\n        const u16* p = b + j + i;\n    "
           "    " +
           vector + " joined = {};\n        if (left >= " + n +
           " && k + 1 < rows) {\n          "
           "__builtin_prefetch(p + 8 * stride, 0, 2);\n          "
           "__builtin_prefetch(p + 9 * stride, 0, 2);\n          joined = " +
           load_both +
           "(p, stride);\n        } else if (left > 0) {\n          joined = " + load_part +
           "(p, stride, left < " + n + " ? left : " + n + ", k + 1 < rows);\n        }\n        " +
           store_vector + "(panel + i, joined);\n      }\n    }\n  }\n" + rest + "}\n";
  return own;
}

std::string Prelude::copy_pairs() {
  const int lanes = native_lanes(4);
  const std::string own = "copy_pairs";
  if (!defined_.insert(own).second) return own;
  const std::string load_vector = load(DType::kFloat32, lanes);
  const std::string load_part = load_part_of_pairs();
  const std::string store_vector = store(DType::kFloat32, lanes);
  const std::string store_part = store_tail(DType::kFloat32, lanes);
  const std::string all = std::to_string(2 * lanes);
  body_ += kFunction + own +
           "(const void* from, i64 stride, i64 rows, i64 columns, f32* to, i64 width) {\n"
           "  const u16* a = (const u16*)from;\n"
           "  for (i64 i = 0; i < rows; ++i, a += stride, to += width) {\n    i64 k = 0;\n"
           "    for (; k + " +
           all + " <= columns; k += " + all + ") " + store_vector + "(to + k / 2, " + load_vector +
           "(a + k));\n    const i64 left = columns - k;\n    if (left > 0) " + store_part +
           "(to + k / 2, " + load_part + "(a + k, left), (left + 1) / 2);\n  }\n}\n";
  return own;
}

}  // namespace litz
