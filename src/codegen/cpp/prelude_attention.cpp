#include "codegen/cpp/prelude.h"

// What an attention does with rows of scores and sums, in whole vectors.
namespace litz {
namespace {

constexpr const char* kFunction = "\nstatic __attribute__((noinline, unused)) void ";

// A loop over the keys of a row, j, two vectors at a time.
std::string two_by_two(const std::string& first, const std::string& second, int lanes) {
  const std::string two = std::to_string(2 * lanes);
  return "  i64 j = 0;\n  for (; j + " + two + " <= keys; j += " + two + ") {\n" + first + second +
         "  }\n";
}

}  // namespace

std::string Prelude::read_row(DType memory) {
  const int lanes = native_lanes(4);
  const std::string own = "read_row_" + std::string(to_string(memory));
  if (!defined_.insert(own).second) return own;
  const std::string load_vector = load(memory, lanes);
  const std::string load_part = load_tail(memory, lanes);
  const std::string store_vector = store(DType::kFloat32, lanes);
  const std::string store_part = store_tail(DType::kFloat32, lanes);
  const std::string n = std::to_string(lanes);
  body_ += kFunction + own + "(const void* from, i64 columns, f32* to) {\n  const " +
           (is_half(memory) ? "u16" : "f32") + "* a = (const " + (is_half(memory) ? "u16" : "f32") +
           "*)from;\n  i64 k = 0;\n  for (; k + " + n + " <= columns; k += " + n + ") " +
           store_vector + "(to + k, " + load_vector + "(a + k));\n  if (k < columns) " +
           store_part + "(to + k, " + load_part + "(a + k, columns - k), columns - k);\n}\n";
  return own;
}

std::string Prelude::fill_row() {
  const int lanes = native_lanes(4);
  const std::string own = "fill_row";
  if (!defined_.insert(own).second) return own;
  const std::string spread = splat(DType::kFloat32, lanes);
  const std::string store_vector = store(DType::kFloat32, lanes);
  body_ += kFunction + own +
           "(f32* x, i64 columns, f32 value) {\n  for (i64 k = 0; k < columns; k += " +
           std::to_string(lanes) + ") " + store_vector + "(x + k, " + spread + "(value));\n}\n";
  return own;
}

std::string Prelude::scale_row() {
  const int lanes = native_lanes(4);
  const std::string own = "scale_row";
  if (!defined_.insert(own).second) return own;
  const std::string load_vector = load(DType::kFloat32, lanes);
  const std::string store_vector = store(DType::kFloat32, lanes);
  body_ += kFunction + own +
           "(f32* x, i64 columns, f32 by) {\n  for (i64 k = 0; k < columns; k += " +
           std::to_string(lanes) + ") " + store_vector + "(x + k, " + load_vector +
           "(x + k) * by);\n}\n";
  return own;
}

std::string Prelude::weigh_row() {
  const int lanes = native_lanes(4);
  const std::string own = "weigh_row";
  if (!defined_.insert(own).second) return own;
  const std::string vector = type(DType::kFloat32, lanes);
  const std::string load_vector = load(DType::kFloat32, lanes);
  const std::string store_vector = store(DType::kFloat32, lanes);
  const std::string spread = splat(DType::kFloat32, lanes);
  const std::string least = require("greater", DType::kFloat32, lanes);
  const std::string power = require("exp_inner", DType::kFloat32, lanes);
  const std::string n = std::to_string(lanes);
  const auto step = [&](const std::string& at, const std::string& sum) {
    return "    x = " + load_vector + "(s + " + at + ") - base;\n    y = " + power + "(" + least +
           "(" + spread + "(-87.0f), x));\n    y = x < -87.0f ? " + vector + "{} : y;\n    " +
           store_vector + "(s + " + at + ", y);\n    " + sum + " = " + sum + " + y;\n";
  };
  body_ += kFunction + own + "(f32* s, i64 keys, i64 end, f32 base, f32* total) {\n  " + vector +
           " x, y, t0 = " + load_vector + "(total), t1 = {};\n" +
           two_by_two(step("j", "t0"), step("j + " + n, "t1"), lanes) +
           "  for (; j < keys; j += " + n + ") {\n" + step("j", "t0") +
           "  }\n  for (; j < end; j += " + n + ") " + store_vector + "(s + j, " + vector +
           "{});\n  " + store_vector + "(total, t0 + t1);\n}\n";
  return own;
}

// 2^x by the part of x behind its floor; the polynomial is from tools/fit_polynomials.py. Below
// -126 it is 0: vscalefps takes a hundred cycles for a result that is denormal.
std::string Prelude::power_of_two() {
  const int lanes = native_lanes(4);
  const std::string own = "power_of_two";
  const std::string vector = type(DType::kFloat32, lanes);
  const std::string spread = splat(DType::kFloat32, lanes);
  const std::string fused = function(PreludeFn::kFma, DType::kFloat32, lanes);
  type(DType::kUInt16, 1);
  std::string sums;
  for (const char* coefficient : {"0.0520107374f", "0.241443783f", "0.693003416f", "1.00000262f"})
    sums += "  p = " + fused + "(p, r, " + spread + "(" + coefficient + "));\n";
  return define(
      own,
      vector + " " + own + "(" + vector + " x) {\n  " + vector +
          " r, y;\n  u16 counts;\n  __asm__(\"vreduceps $1, %1, %0\" : \"=v\"(r) : \"v\"(x));\n  " +
          vector + " p = " + spread + "(0.0135342432f);\n" + sums +
          "  __asm__(\"vcmpnltps %3, %2, %1\\n\\tvscalefps %2, %4, %0 "
          "%{%1%}%{z%}\"\n          : \"=v\"(y), \"=&Yk\"(counts) : \"v\"(x), \"v\"(" +
          spread + "(-126.0f)), \"v\"(p));\n  return y;\n}");
}

std::string Prelude::weigh_row_in_pairs() {
  const int lanes = native_lanes(4);
  const std::string own = "weigh_row_in_pairs";
  if (!defined_.insert(own).second) return own;
  const std::string vector = type(DType::kFloat32, lanes);
  const std::string load_vector = load(DType::kFloat32, lanes);
  const std::string store_vector = store(DType::kFloat32, lanes);
  const std::string spread = splat(DType::kFloat32, lanes);
  const std::string power = power_of_two();
  const std::string store_weight = store_flushed(DType::kBFloat16, lanes);
  const std::string n = std::to_string(lanes);
  const auto step = [&](const std::string& at, const std::string& sum) {
    return "    y = " + power + "((" + load_vector + "(s + " + at + ") - top) * by);\n    " +
           store_weight + "(w + " + at + ", y);\n    " + sum + " = " + sum + " + y;\n";
  };
  body_ += kFunction + own +
           "(f32* s, i64 keys, i64 end, f32 factor, f32 base, f32* total) {\n"
           "  u16* const w = (u16*)s;\n  const " +
           vector + " by = " + spread + "(factor), top = " + spread + "(base);\n  " + vector +
           " y, t0 = " + load_vector + "(total), t1 = {};\n" +
           two_by_two(step("j", "t0"), step("j + " + n, "t1"), lanes) +
           "  for (; j < keys; j += " + n + ") {\n" + step("j", "t0") +
           "  }\n  for (; j < end; j += " + n + ") " + store_weight + "(w + j, " + vector +
           "{});\n  " + store_vector + "(total, t0 + t1);\n}\n";
  return own;
}

std::string Prelude::greatest_of_row() {
  const int lanes = native_lanes(4);
  const std::string own = "greatest_of_row";
  if (!defined_.insert(own).second) return own;
  const std::string vector = type(DType::kFloat32, lanes);
  const std::string load_vector = load(DType::kFloat32, lanes);
  const std::string store_vector = store(DType::kFloat32, lanes);
  const std::string spread = splat(DType::kFloat32, lanes);
  const std::string first = first_lanes(4, lanes);
  const std::string greatest = reduce(PreludeFn::kMax, DType::kFloat32, lanes);
  const std::string n = std::to_string(lanes);
  const auto take = [&](const std::string& top) {
    return "    " + top + " = x > " + top + " ? x : " + top + ";\n";
  };
  const auto step = [&](const std::string& at, const std::string& top) {
    return "    x = " + load_vector + "(s + " + at + ");\n" + take(top);
  };
  body_ += "\nstatic __attribute__((noinline, unused)) f32 " + own + "(f32* s, i64 keys) {\n  " +
           "const " + vector + " none = " + spread + "(-__builtin_inff());\n  " + vector +
           " x, t0 = none, t1 = none;\n" +
           two_by_two(step("j", "t0"), step("j + " + n, "t1"), lanes) + "  if (j + " + n +
           " <= keys) {\n" + step("j", "t0") + "    j += " + n + ";\n  }\n  if (j < keys) {\n" +
           "    x = " + first + "(keys - j) ? " + load_vector + "(s + j) : none;\n    " +
           store_vector + "(s + j, x);\n" + take("t1") + "  }\n  return " + greatest +
           "(t1 > t0 ? t1 : t0);\n}\n";
  return own;
}

std::string Prelude::dot_rows(DType memory) {
  const int lanes = native_lanes(4);
  const std::string own = "dot_rows_" + std::string(to_string(memory));
  if (!defined_.insert(own).second) return own;
  const std::string vector = type(DType::kFloat32, lanes);
  const std::string load_vector = load(memory, lanes);
  const std::string load_part = load_tail(memory, lanes);
  const std::string load_query = load(DType::kFloat32, lanes);
  const std::string load_query_part = load_tail(DType::kFloat32, lanes);
  const std::string store_vector = store(DType::kFloat32, lanes);
  const std::string fused = function(PreludeFn::kFma, DType::kFloat32, lanes);
  const std::string turn = transpose(DType::kFloat32, lanes);
  const std::string element = is_half(memory) ? "u16" : "f32";
  const std::string n = std::to_string(lanes);
  std::string declared;
  std::string starts;
  std::string whole;
  std::string part;
  std::string turned;
  for (int j = 0; j < lanes; ++j) {
    const std::string number = std::to_string(j);
    const std::string sum = "c" + number;
    starts += "    const " + element + "* const b" + number + " = b + (j + " + number +
              " < keys ? j + " + number + " : keys - 1) * b_stride;\n";
    declared += "      " + vector + " " + sum + " = {};\n";
    whole += "        " + sum + " = " + fused + "(x, " + load_vector + "(b" + number + " + k), " +
             sum + ");\n";
    part += "        " + sum + " = " + fused + "(x, " + load_part + "(b" + number +
            " + k, factors - k), " + sum + ");\n";
    turned += (j == 0 ? "" : ", ") + sum;
  }
  std::string sum = "tile[0]";
  std::string adds;
  for (int half = lanes / 2; half > 0; half /= 2)
    adds += "      for (int l = 0; l < " + std::to_string(half) +
            "; ++l) tile[l] = tile[l] + tile[l + " + std::to_string(half) + "];\n";
  body_ +=
      kFunction + own +
      "(const f32* a, i64 rows, i64 factors, const void* from, i64 b_stride, i64 keys, f32* c, "
      "i64 width) {\n  const " +
      element + "* b = (const " + element + "*)from;\n  for (i64 j = 0; j < keys; j += " + n +
      ") {\n" + starts +
      "    for (i64 i = 0; i < rows; ++i) {\n      const f32* const r = a + i * factors;\n" +
      declared + "      " + vector + " x;\n      i64 k = 0;\n      for (; k + " + n +
      " <= factors; k += " + n + ") {\n        x = " + load_query + "(r + k);\n" + whole +
      "      }\n      if (k < factors) {\n        x = " + load_query_part +
      "(r + k, factors - k);\n" + part + "      }\n      " + vector + " tile[" + n + "] = {" +
      turned + "};\n      " + turn + "(tile);\n" + adds + "      " + store_vector +
      "(c + i * width + j, " + sum + ");\n    }\n  }\n}\n";
  return own;
}

std::string Prelude::sum_rows(DType memory, int64_t features) {
  constexpr int kVectors = 8;          // sums that registers hold
  constexpr const char* kStep = "32";  // rows that the first level cache holds
  const int lanes = native_lanes(4);
  const std::string own =
      "sum_rows_" + std::string(to_string(memory)) + "x" + std::to_string(features);
  if (!defined_.insert(own).second) return own;
  const std::string vector = type(DType::kFloat32, lanes);
  const std::string load_vector = load(memory, lanes);
  const std::string load_sum = load(DType::kFloat32, lanes);
  const std::string store_vector = store(DType::kFloat32, lanes);
  const std::string spread = splat(DType::kFloat32, lanes);
  const std::string fused = function(PreludeFn::kFma, DType::kFloat32, lanes);
  const std::string element = is_half(memory) ? "u16" : "f32";
  const auto block = [&](int64_t vectors) {
    std::string declared;
    std::string adds;
    std::string stores;
    for (int64_t j = 0; j < vectors; ++j) {
      const std::string sum = "c" + std::to_string(j);
      const std::string at = "f + " + std::to_string(j * lanes);
      declared += "        " + vector + " " + sum + " = " + load_sum + "(r + " + at + ");\n";
      adds += "          " + sum + " = " + fused + "(x, " + load_vector + "(v + " + at + "), " +
              sum + ");\n";
      stores += "        " + store_vector + "(r + " + at + ", " + sum + ");\n";
    }
    return declared + "        const " + element +
           "* v = b + j * b_stride;\n"
           "        for (i64 l = j; l < end; ++l, v += b_stride) {\n          const " +
           vector + " x = " + spread + "(a[i * a_stride + l]);\n" + adds + "        }\n" + stores;
  };
  const int64_t vectors = features / lanes;
  std::string blocks;
  if (vectors >= kVectors)
    blocks += "      for (; f + " + std::to_string(kVectors * lanes) +
              " <= " + std::to_string(features) + "; f += " + std::to_string(kVectors * lanes) +
              ") {\n" + block(kVectors) + "      }\n";
  if (vectors % kVectors != 0) blocks += "      {\n" + block(vectors % kVectors) + "      }\n";
  body_ +=
      kFunction + own +
      "(const f32* a, i64 a_stride, i64 rows, const void* from, i64 b_stride, i64 keys, f32* c, "
      "i64 width) {\n  const " +
      element + "* b = (const " + element + "*)from;\n  for (i64 j = 0; j < keys; j += " + kStep +
      ") {\n    const i64 end = j + " + kStep + " < keys ? j + " + kStep +
      " : keys;\n    for (i64 i = 0; i < rows; ++i) {\n      f32* const r = c + i * width;\n"
      "      i64 f = 0;\n" +
      blocks + "    }\n  }\n}\n";
  return own;
}

}  // namespace litz
