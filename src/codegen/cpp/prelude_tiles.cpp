#include "codegen/cpp/prelude.h"

// Matrix products of pairs of bfloat16 (prelude_pairs.cpp) in the tiles of AMX. Registers 0 to 3
// hold the sums, two tiles down and two across; 4 and 5 the left operand's rows, 6 and 7 the right
// one's columns. Compilers neither use these registers nor know what changes them, so that the
// statements are volatile and keep their order.
namespace litz {
namespace {

constexpr const char* kFunction = "\nstatic __attribute__((noinline, unused)) void ";

std::string number(int64_t value) { return std::to_string(value); }

std::string statement(const std::string& instructions, const std::string& inputs) {
  return "  __asm__ volatile(\"" + instructions + "\" : : " + inputs + " : \"memory\");\n";
}

}  // namespace

// The layout is Intel's palette 1: byte 0 its number, from byte 16 on the bytes of a row of each
// register, in 16 bits, from byte 48 on the rows of each.
std::string Prelude::configure_tiles() {
  const std::string own = "configure_tiles";
  if (!defined_.insert(own).second) return own;
  const std::string high = number(kTileRows);
  print_configuration(own, "rows < " + high + " ? (u8)rows : " + high, "(u8)(rows - top)");
  return own;
}

std::string Prelude::configure_tiles_of_two() {
  const std::string own = "configure_tiles_of_two";
  if (defined_.insert(own).second) print_configuration(own, "(u8)rows", "top");
  return own;
}

void Prelude::print_configuration(const std::string& own, const std::string& top,
                                  const std::string& low) {
  type(DType::kUInt8, 1);
  type(DType::kInt64, 1);
  body_ +=
      kFunction + own +
      "(i64 rows, i64 pairs) {\n  alignas(64) u8 sizes[64] = {1};\n  const u8 top = " + top +
      ";\n  const u8 low = " + low + ";\n" +
      "  const u8 rows_of[8] = {top, top, low, low, top, low, (u8)pairs, (u8)pairs};\n" +
      "  for (int i = 0; i < 8; ++i) {\n    if (rows_of[i] == 0) continue;\n" +
      "    sizes[16 + 2 * i] = i == 4 || i == 5 ? (u8)(4 * pairs) : " + number(4 * kTileColumns) +
      ";\n    sizes[48 + i] = rows_of[i];\n  }\n" +
      "  __asm__ volatile(\"ldtilecfg %0\" : : \"m\"(sizes));\n}\n";
}

std::string Prelude::pairs_of_whole_tiles(const std::string& rows) {
  return "(" + rows + " + " + number(2 * kTilePairs - 1) + ") / " + number(2 * kTilePairs) + " * " +
         number(kTilePairs);
}

std::string Prelude::release_tiles() {
  const std::string own = "release_tiles";
  if (!defined_.insert(own).second) return own;
  body_ += kFunction + own + "() { __asm__ volatile(\"tilerelease\"); }\n";
  return own;
}

std::string Prelude::matrix_tile(const MatrixTile& tile) {
  const int down = tile.more_rows ? 2 : 1;
  const int vectors = tile.vectors;
  const std::string own = "matrix_product_" + number(down) + "x" + number(vectors) +
                          (tile.has_parts ? "_of_parts" : "") + (tile.is_of_two ? "_of_two" : "");
  if (!defined_.insert(own).second) return own;
  type(DType::kUInt16, 1);
  type(DType::kFloat32, 1);
  const auto sum = [&](int i, int j) { return "%%tmm" + number(2 * i + j); };
  const auto left = [](int i) { return "%%tmm" + number(4 + i); };
  const auto right = [](int j) { return "%%tmm" + number(6 + j); };
  // Places of the sums and their stride: operands 0, 1, ... and the last one.
  std::string places;
  for (int i = 0; i < down; ++i) {
    for (int j = 0; j < vectors; ++j) {
      places += "\"r\"(c + " + number(i) + " * c_next + " + number(j * kTileColumns) + "), ";
    }
  }
  places += "\"r\"(4 * width)";
  const std::string stride = "%" + number(down * vectors);
  std::string loads;
  std::string zeros;
  std::string stores;
  for (int i = 0; i < down; ++i) {
    for (int j = 0; j < vectors; ++j) {
      const std::string at = "(%" + number(i * vectors + j) + "," + stride + ",1)";
      loads += "tileloadd " + at + ", " + sum(i, j) + "\\n\\t";
      zeros += "tilezero " + sum(i, j) + "\\n\\t";
      stores += "tilestored " + sum(i, j) + ", " + at + "\\n\\t";
    }
  }
  // Operands: the left one's places, the right one's, both strides.
  std::string inputs;
  for (int i = 0; i < down; ++i) inputs += "\"r\"(a" + number(i) + "), ";
  for (int j = 0; j < vectors; ++j) inputs += "\"r\"(b + " + number(j * kTileColumns) + "), ";
  inputs += "\"r\"(2 * a_stride), \"r\"(4 * b_stride)";
  const std::string left_stride = "%" + number(down + vectors);
  const std::string right_stride = "%" + number(down + vectors + 1);
  std::string step;
  for (int i = 0; i < down; ++i) {
    step += "tileloadd (%" + number(i) + "," + left_stride + ",1), " + left(i) + "\\n\\t";
    for (int j = 0; j < vectors; ++j) {
      if (i == 0) {
        step +=
            "tileloadd (%" + number(down + j) + "," + right_stride + ",1), " + right(j) + "\\n\\t";
      }
      step += "tdpbf16ps " + right(j) + ", " + left(i) + ", " + sum(i, j) + "\\n\\t";
    }
  }
  std::string t = kFunction + own +
                  "(const u16* a, i64 a_stride, const f32* b, i64 b_stride, i64 steps, f32* c, "
                  "i64 width, bool adds" +
                  (tile.has_parts ? ", i64 parts, i64 a_part, i64 b_part" : "") +
                  (tile.is_of_two ? ", i64 a_next, i64 c_next) {\n"
                                  : ") {\n  const i64 a_next = " + number(kTileRows) +
                                        " * a_stride, c_next = " + number(kTileRows) +
                                        " * width;\n  (void)a_next, (void)c_next;\n") +
                  "  if (adds) {\n  " + statement(loads, places) + "  } else {\n  " +
                  "  __asm__ volatile(\"" + zeros + "\" ::);\n  }\n";
  if (tile.has_parts) {
    t +=
        "  const f32* const b_of_all = b;\n  for (i64 part = 0; part < parts; ++part, a += a_part) "
        "{\n  b = b_of_all + part * b_part;\n";
  }
  for (int i = 0; i < down; ++i)
    t += "  const u16* a" + number(i) + " = a + " + number(i) + " * a_next;\n";
  t += "  for (i64 k = 0; k < steps; k += " + number(kTilePairs) + ") {\n  " +
       statement(step, inputs);
  for (int i = 0; i < down; ++i) t += "    a" + number(i) + " += " + number(2 * kTilePairs) + ";\n";
  t += "    b += " + number(kTilePairs) + " * b_stride;\n  }\n";
  if (tile.has_parts) t += "  }\n";
  t += statement(stores, places);
  body_ += t + "}\n";
  return own;
}

std::string Prelude::turn_pairs() {
  const int lanes = native_lanes(4);
  const std::string own = "turn_pairs";
  if (!defined_.insert(own).second) return own;
  const std::string vector = type(DType::kFloat32, lanes);
  const std::string load_both = load_joined_rows();
  const std::string load_part = load_part_of_joined_rows();
  const std::string store_vector = store(DType::kFloat32, lanes);
  const std::string store_part = store_tail(DType::kFloat32, lanes);
  const std::string turn = transpose(DType::kFloat32, lanes);
  const std::string n = number(lanes);
  body_ += kFunction + own +
           "(const void* from, i64 stride, i64 rows, i64 columns, f32* to, i64 width) {\n"
           "  for (i64 k = 0; k < rows; k += 2 * " +
           n + ") {\n    const i64 some = rows - k < 2 * " + n + " ? rows - k : 2 * " + n +
           ";\n    for (i64 j = 0; j < columns; j += " + n +
           ") {\n      const i64 left = columns - j < " + n + " ? columns - j : " + n +
           ";\n      const u16* p = (const u16*)from + k * stride + j;\n      " + vector +
           " tile[" + n + "] = {};\n      for (i64 i = 0; i < some; i += 2, p += 2 * stride) {\n" +
           "        if (left == " + n +
           " && i + 1 < some) {\n          tile[i / 2] = " + load_both +
           "(p, stride);\n        } else {\n          tile[i / 2] = " + load_part +
           "(p, stride, left, i + 1 < some);\n        }\n      }\n      " + turn +
           "(tile);\n      f32* row = to + j * width + k / 2;\n" +
           "      for (i64 i = 0; i < left; ++i, row += width) {\n        if (some == 2 * " + n +
           ") " + store_vector + "(row, tile[i]);\n        else " + store_part +
           "(row, tile[i], (some + 1) / 2);\n      }\n    }\n  }\n}\n";
  return own;
}

}  // namespace litz
