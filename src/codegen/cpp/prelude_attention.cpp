#include "codegen/cpp/prelude.h"

// What an attention does with rows of scores and sums, in whole vectors.
namespace litz {
namespace {

constexpr const char* kFunction = "\nstatic __attribute__((noinline, unused)) void ";

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
           (is_half(memory) ? "u16" : "f32") + "* a = (const " +
           (is_half(memory) ? "u16" : "f32") + "*)from;\n  i64 k = 0;\n  for (; k + " + n +
           " <= columns; k += " + n + ") " + store_vector + "(to + k, " + load_vector +
           "(a + k));\n  if (k < columns) " + store_part + "(to + k, " + load_part +
           "(a + k, columns - k), columns - k);\n}\n";
  return own;
}

std::string Prelude::fill_row() {
  const int lanes = native_lanes(4);
  const std::string own = "fill_row";
  if (!defined_.insert(own).second) return own;
  const std::string spread = splat(DType::kFloat32, lanes);
  const std::string store_vector = store(DType::kFloat32, lanes);
  body_ += kFunction + own + "(f32* x, i64 columns, f32 value) {\n  for (i64 k = 0; k < columns; k += " +
           std::to_string(lanes) + ") " + store_vector + "(x + k, " + spread + "(value));\n}\n";
  return own;
}

std::string Prelude::scale_row() {
  const int lanes = native_lanes(4);
  const std::string own = "scale_row";
  if (!defined_.insert(own).second) return own;
  const std::string load_vector = load(DType::kFloat32, lanes);
  const std::string store_vector = store(DType::kFloat32, lanes);
  body_ += kFunction + own + "(f32* x, i64 columns, f32 by) {\n  for (i64 k = 0; k < columns; k += " +
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
           " x, y, t0 = " + load_vector + "(total), t1 = {};\n  i64 j = 0;\n  for (; j + " +
           std::to_string(2 * lanes) + " <= keys; j += " + std::to_string(2 * lanes) + ") {\n" +
           step("j", "t0") + step("j + " + n, "t1") + "  }\n  for (; j < keys; j += " + n + ") {\n" +
           step("j", "t0") + "  }\n  for (; j < end; j += " + n + ") " + store_vector + "(s + j, " +
           vector + "{});\n  " + store_vector + "(total, t0 + t1);\n}\n";
  return own;
}

}  // namespace litz
