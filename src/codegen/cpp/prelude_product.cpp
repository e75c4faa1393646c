#include "codegen/cpp/prelude.h"

// The inner loops of matrix products, and what brings operands into the order that they read.
namespace litz {
namespace {

std::string number(int64_t value) { return std::to_string(value); }

constexpr const char* kFunction = "\nstatic __attribute__((noinline, unused)) void ";

}  // namespace

std::string Prelude::product_tile(const PreludeTile& tile) {
  using Left = PreludeTile::Left;
  const int lanes = native_lanes(4);
  const bool by_rows = tile.left != Left::kFactors;
  const bool copies = tile.left == Left::kFarRows;
  const std::string own = std::string(tile.pairs ? "pair_product_" : "product_") +
                          number(tile.rows) + "x" + number(tile.vectors * lanes) +
                          (copies    ? "_far_rows"
                           : by_rows ? "_rows"
                                     : "_factors") +
                          (tile.join_rows ? "_joined" : "") + (tile.prefetches ? "_ahead" : "") +
                          (tile.brings_source ? "_source" : "") +
                          (tile.next_rows > 0 ? "_next" + number(tile.next_rows) : "");
  if (!defined_.insert(own).second) return own;
  const std::string vector = type(DType::kFloat32, lanes);
  const std::string load_vector = load(DType::kFloat32, lanes);
  const std::string store_vector = store(DType::kFloat32, lanes);
  const std::string spread = splat(DType::kFloat32, lanes);
  const std::string fused =
      tile.pairs ? add_pairs() : function(PreludeFn::kFma, DType::kFloat32, lanes);
  const std::string load_pair = tile.pairs && by_rows ? load(DType::kFloat32, 1) : "";
  const std::string load_joined = tile.join_rows ? load_joined_rows() : "";
  const auto sum = [](int64_t i, int j) { return "c" + number(i) + "_" + number(j); };
  const auto for_each_sum = [&](const auto& print) {
    for (int64_t i = 0; i < tile.rows; ++i) {
      for (int j = 0; j < tile.vectors; ++j)
        print(sum(i, j), "c + " + number(i) + " * width + " + number(j * lanes));
    }
  };
  // A pointer for three rows each, whose addresses an instruction adds up by itself.
  const auto pointer = [](int64_t i) { return "a" + number(i / 3); };
  const auto in_row = [&](int64_t i) { return pointer(i) + " + " + number(i % 3) + " * a_stride"; };
  const std::string left = tile.pairs && by_rows ? "u16" : "f32";
  const std::string right = tile.join_rows ? "u16" : "f32";
  // Of a factor: its place in a row, and the rows of the right operand.
  const std::string width = tile.pairs ? "2" : "1";
  const auto move_left = [&](const std::string& factors) {
    std::string t;
    for (int64_t i = 0; i < tile.rows; i += 3)
      t += "    " + (factors == "1" ? "++" + pointer(i) : pointer(i) + " += " + factors) + ";\n";
    return t;
  };
  // One factor, of which the left operand's value in a row is `at(row)`.
  const auto multiply_add = [&](const auto& at) {
    std::string t;
    for (int j = 0; j < tile.vectors; ++j) {
      const std::string place = "b + " + number(j * lanes);
      t += "    const " + vector + " b" + number(j) + " = " +
           (tile.join_rows ? load_joined + "(" + place + ", b_stride)"
                           : load_vector + "(" + place + ")") +
           ";\n";
    }
    for (int j = 0; tile.prefetches && j < tile.vectors; ++j) {
      if (j * lanes % 16 == 0)
        t += "    __builtin_prefetch(b + ahead + " + number(j * lanes) + ");\n";
    }
    for (int j = 0; tile.brings_source && j < tile.vectors * lanes; j += 16)
      t += "    __builtin_prefetch(source + " + number(j) + ", 0, 2);\n";
    if (tile.brings_source) t += "    source += source_stride;\n";
    t += "    " + vector + " x;\n";
    for (int64_t i = 0; i < tile.rows; ++i) {
      t += "    x = " + spread + "(" + at(i) + ");\n";
      for (int j = 0; j < tile.vectors; ++j)
        t += "    " + sum(i, j) + " = " + fused + "(x, b" + number(j) + ", " + sum(i, j) + ");\n";
    }
    return t;
  };
  const std::string next_right =
      std::string("    b += ") + (tile.join_rows ? "2 * b_stride" : "b_stride") + ";\n";
  std::string t = kFunction + own + "(const " + left + "* a, i64 a_stride, const " + right +
                  "* b, i64 b_stride, i64 steps, f32* c, i64 width, bool adds" +
                  (tile.prefetches ? ", i64 ahead" : "") +
                  (tile.brings_source ? ", const f32* source, i64 source_stride" : "") +
                  (tile.next_rows > 0 ? ", const " + left + "* next" : "") + ") {\n";
  for (int64_t i = 0; by_rows && i < tile.rows; i += 3)
    t += "  const " + left + "* " + pointer(i) + " = a + " + number(i) + " * a_stride;\n";
  for_each_sum([&](const std::string& name, const std::string&) {
    t += "  " + vector + " " + name + " = {};\n";
  });
  const auto in_rows = [&](int64_t i) -> std::string {
    if (!by_rows) return "a[" + number(i) + "]";
    if (tile.pairs) return load_pair + "(" + in_row(i) + ")";
    return pointer(i) + "[" + number(i % 3) + " * a_stride]";
  };
  const std::string move = by_rows ? move_left(width) : "    a += a_stride;\n";
  // Of a line of the next rows.
  const std::string floats = number(copies ? lanes : 16);
  std::string bring_next;
  for (int64_t i = 0; i < tile.next_rows; ++i)
    bring_next += "    __builtin_prefetch(next + " + number(i) + " * a_stride, 0, 2);\n";
  if (tile.next_rows > 0) bring_next += "    next += " + floats + ";\n";
  const std::string open_lines =
      "  for (; k + " + floats + " <= steps; k += " + floats + ") {\n" + bring_next;
  const std::string open_line = "    for (i64 q = 0; q < " + floats + "; ++q) {\n";
  t += "  i64 k = 0;\n";
  if (copies) {
    t += open_lines + "    alignas(64) f32 near[" + number(tile.rows * lanes) + "];\n";
    for (int64_t i = 0; i < tile.rows; ++i) {
      t += "    " + store_vector + "(near + " + number(i * lanes) + ", " + load_vector + "(" +
           in_row(i) + "));\n";
    }
    t += move_left(number(lanes * (tile.pairs ? 2 : 1))) + open_line +
         multiply_add([&](int64_t i) { return "near[" + number(i * lanes) + " + q]"; }) +
         next_right + "    }\n  }\n";
  } else if (tile.next_rows > 0) {
    t += open_lines + open_line + multiply_add(in_rows) + move + next_right + "    }\n  }\n";
  }
  t += "  for (; k < steps; ++k) {\n" + multiply_add(in_rows) + move + next_right +
       "  }\n  if (adds) {\n";
  for_each_sum([&](const std::string& name, const std::string& at) {
    t += "    " + name + " = " + load_vector + "(" + at + ") + " + name + ";\n";
  });
  t += "  }\n";
  for_each_sum([&](const std::string& name, const std::string& at) {
    t += "  " + store_vector + "(" + at + ", " + name + ");\n";
  });
  body_ += t + "}\n";
  return own;
}

std::string Prelude::pack_rows(DType memory, int vectors) {
  const int lanes = native_lanes(4);
  const std::string width = number(vectors * lanes);
  const std::string own = "pack_rows_" + std::string(to_string(memory)) + "x" + width;
  if (!defined_.insert(own).second) return own;
  const std::string vector = type(DType::kFloat32, lanes);
  const std::string load_vector = load(memory, lanes);
  const std::string load_part = load_tail(memory, lanes);
  const std::string store_vector = store(DType::kFloat32, lanes);
  const std::string element = is_half(memory) ? "u16" : "f32";
  std::string whole;
  std::string part;
  for (int i = 0; i < vectors; ++i) {
    const std::string at = number(i * lanes);
    const std::string from = "b + j + " + at;
    if (i * lanes * static_cast<int>(size_of(memory)) % 64 == 0)
      whole += "      __builtin_prefetch(" + from + " + 8 * stride, 0, 2);\n";
    whole += "      " + store_vector + "(panel + " + at + ", " + load_vector + "(" + from + "));\n";
    part += "      " + store_vector + "(panel + " + at +
            ", columns - j >= " + number((i + 1) * lanes) + " ? " + load_vector + "(" + from +
            ") : columns - j > " + at + " ? " + load_part + "(" + from + ", columns - j - " + at +
            ") : " + vector + "{});\n";
  }
  body_ += kFunction + own + "(const void* from, i64 stride, i64 rows, i64 columns, f32* to) {\n" +
           "  const " + element + "* b = (const " + element + "*)from;\n" +
           "  for (i64 k = 0; k < rows; ++k, b += stride, to += " + width + ") {\n" +
           "    f32* panel = to;\n    i64 j = 0;\n" + "    for (; j + " + width +
           " <= columns; j += " + width + ", panel += rows * " + width + ") {\n" + whole +
           "    }\n    if (j < columns) {\n" + part + "    }\n  }\n}\n";
  return own;
}

std::string Prelude::pack_columns(DType memory, int vectors) {
  const std::string own =
      "pack_columns_" + std::string(to_string(memory)) + "x" + number(vectors * native_lanes(4));
  if (!defined_.insert(own).second) return own;
  print_packing_of_columns(own, memory, vectors, 1);
  return own;
}

std::string Prelude::pack_pairs(int vectors, bool whole_tiles) {
  const std::string own =
      "pack_pairs_x" + number(vectors * native_lanes(4)) + (whole_tiles ? "_tiles" : "");
  if (!defined_.insert(own).second) return own;
  print_packing_of_columns(own, DType::kBFloat16, vectors, 2, whole_tiles);
  return own;
}

// Squares of the panel's words are turned, of `elements` of the memory each.
void Prelude::print_packing_of_columns(const std::string& own, DType memory, int vectors,
                                       int elements, bool whole_tiles) {
  const int lanes = native_lanes(4);
  const bool pairs = elements == 2;
  const std::string width = number(vectors * lanes);
  const std::string vector = type(DType::kFloat32, lanes);
  const std::string load_vector = load(pairs ? DType::kFloat32 : memory, lanes);
  const std::string load_part = pairs ? load_part_of_pairs() : load_tail(memory, lanes);
  const std::string store_vector = store(DType::kFloat32, lanes);
  const std::string turn = transpose(DType::kFloat32, lanes);
  const std::string element = is_half(memory) ? "u16" : "f32";
  const std::string n = number(lanes);
  const std::string depth = number(lanes * elements);
  const std::string words = whole_tiles ? pairs_of_whole_tiles("rows")
                            : pairs     ? "(rows + 1) / 2"
                                        : "rows";
  const std::string left_words = pairs ? "(left + 1) / 2" : "left";
  const std::string word = pairs ? "k / 2" : "k";
  std::string t = kFunction + own +
                  "(const void* from, i64 stride, i64 rows, i64 columns, f32* to) {\n"
                  "  const i64 end = (columns + " +
                  number(vectors * lanes - 1) + ") / " + width + " * " + width +
                  ";\n  for (i64 j = 0; j < end; j += " + n + ") {\n    const " + element +
                  "* b = (const " + element + "*)from + j * stride;\n    f32* panel = to + j / " +
                  width + " * (" + words + ") * " + width + " + j % " + width +
                  ";\n    const i64 whole = columns - j < " + n + " ? columns - j : " + n +
                  ";\n    i64 k = 0;\n    for (; whole == " + n + " && k + " + depth +
                  " <= rows; k += " + depth + ") {\n      " + vector + " tile[" + n + "];\n";
  // One by one, so that they are registers for every compiler.
  for (int i = 0; i < lanes; ++i) {
    t += "      __builtin_prefetch(b + " + number(lanes + i) +
         " * stride + k, 0, 2);\n      tile[" + number(i) + "] = " + load_vector + "(b + " +
         number(i) + " * stride + k);\n";
  }
  t += "      " + turn + "(tile);\n";
  for (int i = 0; i < lanes; ++i) {
    t += "      " + store_vector + "(panel + (" + word + " + " + number(i) + ") * " + width +
         ", tile[" + number(i) + "]);\n";
  }
  t += "    }\n    for (; k < rows; k += " + depth + ") {\n      const i64 left = rows - k < " +
       depth + " ? rows - k : " + depth + ";\n      " + vector + " tile[" + n + "] = {};\n" +
       "      for (i64 i = 0; i < whole; ++i)\n        tile[i] = left == " + depth + " ? " +
       load_vector + "(b + i * stride + k) : " + load_part + "(b + i * stride + k, left);\n      " +
       turn + "(tile);\n      for (i64 i = 0; i < " + left_words + "; ++i) " + store_vector +
       "(panel + (" + word + " + i) * " + width + ", tile[i]);\n    }\n";
  if (whole_tiles)
    t += "    for (i64 i = (rows + 1) / 2; i < " + words + "; ++i) " + store_vector +
         "(panel + i * " + width + ", " + vector + "{});\n";
  body_ += t + "  }\n}\n";
}

std::string Prelude::dot_tile(int64_t rows, int64_t columns, bool pairs) {
  const int lanes = native_lanes(4);
  const std::string own =
      std::string(pairs ? "pair_dots_" : "dots_") + number(rows) + "x" + number(columns);
  if (!defined_.insert(own).second) return own;
  const std::string vector = type(DType::kFloat32, lanes);
  const std::string load_vector = load(DType::kFloat32, lanes);
  const std::string load_part = pairs ? load_part_of_pairs() : load_tail(DType::kFloat32, lanes);
  const std::string fused = pairs ? add_pairs() : function(PreludeFn::kFma, DType::kFloat32, lanes);
  const std::string add_lanes = reduce(PreludeFn::kAdd, DType::kFloat32, lanes);
  const std::string n = number(pairs ? 2 * lanes : lanes);
  const std::string element = pairs ? "u16" : "f32";
  const auto sum = [](int64_t i, int64_t j) { return "c" + number(i) + "_" + number(j); };
  const auto for_each_sum = [&](const auto& print) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) print(i, j);
    }
  };
  const auto multiply_add = [&](const std::string& load, const std::string& rest) {
    const auto loaded = [&](const std::string& at) { return load + "(" + at + rest + ")"; };
    std::string t;
    for (int64_t j = 0; j < columns; ++j) {
      t += "    const " + vector + " b" + number(j) + " = " +
           loaded("b + k + " + number(j) + " * b_stride") + ";\n";
    }
    t += "    " + vector + " x;\n";
    for (int64_t i = 0; i < rows; ++i) {
      t += "    x = " + loaded("a + k + " + number(i) + " * a_stride") + ";\n";
      for (int64_t j = 0; j < columns; ++j)
        t += "    " + sum(i, j) + " = " + fused + "(x, b" + number(j) + ", " + sum(i, j) + ");\n";
    }
    return t;
  };
  std::string t = kFunction + own + "(const " + element + "* a, i64 a_stride, const " + element +
                  "* b, i64 b_stride, i64 steps, f32* c, i64 width, bool adds) {\n";
  for_each_sum([&](int64_t i, int64_t j) { t += "  " + vector + " " + sum(i, j) + " = {};\n"; });
  t += "  i64 k = 0;\n  for (; k + " + n + " <= steps; k += " + n + ") {\n" +
       multiply_add(load_vector, "") + "  }\n  if (k < steps) {\n" +
       multiply_add(load_part, ", steps - k") + "  }\n";
  for_each_sum([&](int64_t i, int64_t j) {
    const std::string at = "c[" + number(i) + " * width + " + number(j) + "]";
    t += "  " + at + " = (adds ? " + at + " : 0) + " + add_lanes + "(" + sum(i, j) + ");\n";
  });
  body_ += t + "}\n";
  return own;
}

std::string Prelude::widen_rows(DType memory) {
  const int lanes = native_lanes(4);
  const std::string own = "widen_rows_" + std::string(to_string(memory));
  if (!defined_.insert(own).second) return own;
  const std::string load_vector = load(memory, lanes);
  const std::string load_part = load_tail(memory, lanes);
  const std::string store_vector = store(DType::kFloat32, lanes);
  const std::string store_part = store_tail(DType::kFloat32, lanes);
  const std::string n = number(lanes);
  body_ += kFunction + own +
           "(const void* from, i64 stride, i64 rows, i64 columns, f32* to, i64 width) {\n"
           "  const u16* a = (const u16*)from;\n"
           "  for (i64 i = 0; i < rows; ++i, a += stride, to += width) {\n    i64 k = 0;\n"
           "    for (; k + " +
           n + " <= columns; k += " + n + ") " + store_vector + "(to + k, " + load_vector +
           "(a + k));\n    if (k < columns) " + store_part + "(to + k, " + load_part +
           "(a + k, columns - k), columns - k);\n  }\n}\n";
  return own;
}

}  // namespace litz
