#include "codegen/cpp/prelude.h"

// The inner loops of matrix products, and what brings operands into the order that they read.
namespace litz {
namespace {

std::string number(int64_t value) { return std::to_string(value); }

constexpr const char* kFunction = "\nstatic __attribute__((noinline, unused)) void ";

}  // namespace

std::string Prelude::product_tile(int64_t rows, int vectors, bool rows_apart) {
  const int lanes = native_lanes(4);
  const std::string own = "product_" + number(rows) + "x" + number(vectors * lanes) +
                          (rows_apart ? "_rows" : "_factors");
  if (!defined_.insert(own).second) return own;
  const std::string vector = type(DType::kFloat32, lanes);
  const std::string load_vector = load(DType::kFloat32, lanes);
  const std::string store_vector = store(DType::kFloat32, lanes);
  const std::string spread = splat(DType::kFloat32, lanes);
  const std::string fused = function(PreludeFn::kFma, DType::kFloat32, lanes);
  const auto sum = [](int64_t i, int j) { return "c" + number(i) + "_" + number(j); };
  const auto for_each_sum = [&](const auto& print) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int j = 0; j < vectors; ++j)
        print(sum(i, j), "c + " + number(i) + " * width + " + number(j * lanes));
    }
  };
  // A pointer for three rows each, whose addresses an instruction adds up by itself.
  const auto pointer = [](int64_t i) { return "a" + number(i / 3); };
  std::string t = kFunction + own +
                  "(const f32* a, i64 a_stride, const f32* b, i64 b_stride, i64 steps, f32* c, "
                  "i64 width, bool adds) {\n";
  for (int64_t i = 0; rows_apart && i < rows; i += 3)
    t += "  const f32* " + pointer(i) + " = a + " + number(i) + " * a_stride;\n";
  for_each_sum([&](const std::string& name, const std::string&) {
    t += "  " + vector + " " + name + " = {};\n";
  });
  t += "  for (i64 k = 0; k < steps; ++k) {\n";
  for (int j = 0; j < vectors; ++j) {
    t += "    const " + vector + " b" + number(j) + " = " + load_vector + "(b + " +
         number(j * lanes) + ");\n";
  }
  t += "    " + vector + " x;\n";
  for (int64_t i = 0; i < rows; ++i) {
    const std::string at =
        rows_apart ? pointer(i) + "[" + number(i % 3) + " * a_stride]" : "a[" + number(i) + "]";
    t += "    x = " + spread + "(" + at + ");\n";
    for (int j = 0; j < vectors; ++j)
      t += "    " + sum(i, j) + " = " + fused + "(x, b" + number(j) + ", " + sum(i, j) + ");\n";
  }
  for (int64_t i = 0; rows_apart && i < rows; i += 3) t += "    ++" + pointer(i) + ";\n";
  if (!rows_apart) t += "    a += a_stride;\n";
  t += "    b += b_stride;\n  }\n  if (adds) {\n";
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
  const int lanes = native_lanes(4);
  const std::string width = number(vectors * lanes);
  const std::string own = "pack_columns_" + std::string(to_string(memory)) + "x" + width;
  if (!defined_.insert(own).second) return own;
  const std::string vector = type(DType::kFloat32, lanes);
  const std::string load_vector = load(memory, lanes);
  const std::string load_part = load_tail(memory, lanes);
  const std::string store_vector = store(DType::kFloat32, lanes);
  const std::string turn = transpose(DType::kFloat32, lanes);
  const std::string element = is_half(memory) ? "u16" : "f32";
  const std::string n = number(lanes);
  body_ += kFunction + own + "(const void* from, i64 stride, i64 rows, i64 columns, f32* to) {\n" +
           "  const i64 end = (columns + " + number(vectors * lanes - 1) + ") / " + width + " * " +
           width + ";\n" + "  for (i64 j = 0; j < end; j += " + n + ") {\n" + "    const " +
           element + "* b = (const " + element + "*)from + j * stride;\n" +
           "    f32* panel = to + j / " + width + " * rows * " + width + " + j % " + width + ";\n" +
           "    const i64 whole = columns - j < " + n + " ? columns - j : " + n + ";\n" +
           "    for (i64 k = 0; k < rows; k += " + n + ") {\n" +
           "      const i64 left = rows - k < " + n + " ? rows - k : " + n + ";\n" + "      " +
           vector + " tile[" + n + "];\n" + "      for (i64 i = 0; i < " + n + "; ++i)\n" +
           "        tile[i] = i >= whole ? " + vector + "{} : left == " + n + " ? " + load_vector +
           "(b + i * stride + k) : " + load_part + "(b + i * stride + k, left);\n" + "      " +
           turn + "(tile);\n" + "      for (i64 i = 0; i < left; ++i) " + store_vector +
           "(panel + (k + i) * " + width + ", tile[i]);\n    }\n  }\n}\n";
  return own;
}

std::string Prelude::dot_tile(int64_t rows, int64_t columns) {
  const int lanes = native_lanes(4);
  const std::string own = "dots_" + number(rows) + "x" + number(columns);
  if (!defined_.insert(own).second) return own;
  const std::string vector = type(DType::kFloat32, lanes);
  const std::string load_vector = load(DType::kFloat32, lanes);
  const std::string load_part = load_tail(DType::kFloat32, lanes);
  const std::string fused = function(PreludeFn::kFma, DType::kFloat32, lanes);
  const std::string add_lanes = reduce(PreludeFn::kAdd, DType::kFloat32, lanes);
  const std::string n = number(lanes);
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
  std::string t = kFunction + own +
                  "(const f32* a, i64 a_stride, const f32* b, i64 b_stride, i64 steps, f32* c, "
                  "i64 width, bool adds) {\n";
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
