#include <map>

#include "codegen/cpp/prelude.h"

// The inner loops of sums over windows (codegen/cpp/cpp_window.h).
namespace litz {
namespace {

std::string number(int64_t value) { return std::to_string(value); }

// An offset of so many elements; in front of it another one.
std::string plus(int64_t elements) { return elements == 0 ? "" : " + " + number(elements); }

}  // namespace

std::string Prelude::window_tile(const PreludeWindow& window) {
  const int lanes = native_lanes(4);
  std::string own = "window_" + number(window.pixels) + "x" + number(window.taps);
  for (int64_t stride :
       {window.step, window.gap, window.row, window.weight_row, window.weight_gap, window.width})
    own += "_" + number(stride);
  if (window.rows_ahead > 0) own += "_ahead" + number(window.rows_ahead);
  bool is_whole = true;
  std::string inside = "_";
  for (bool counts : window.counts) {
    inside += counts ? '1' : '0';
    is_whole = is_whole && counts;
  }
  if (!is_whole) own += inside;
  if (!defined_.insert(own).second) return own;
  const std::string vector = type(DType::kFloat32, lanes);
  const std::string load_vector = load(DType::kFloat32, lanes);
  const std::string store_vector = store(DType::kFloat32, lanes);
  const std::string fused = function(PreludeFn::kFma, DType::kFloat32, lanes);
  const std::string n = number(lanes);
  const auto counts = [&](int64_t pixel, int64_t tap) {
    return window.counts[static_cast<size_t>(pixel * window.taps + tap)];
  };

  std::string t = "\nstatic __attribute__((noinline, unused)) void " + own +
                  "(const f32* x, const f32* w, i64 rows, i64 channels, f32* to) {\n" +
                  "  for (i64 c = 0;;) {\n    const f32* a = x + c;\n    const f32* b = w + c;\n";
  for (int64_t p = 0; p < window.pixels; ++p) t += "    " + vector + " s" + number(p) + " = {};\n";
  t += "    for (i64 i = 0; i < rows; ++i, a += " + number(window.row) +
       ", b += " + number(window.weight_row) + ") {\n";
  for (int64_t k = 0; k < window.taps; ++k)
    t += "      const " + vector + " w" + number(k) + " = " + load_vector + "(b" +
         plus(k * window.weight_gap) + ");\n";
  t += "      " + vector + " e;\n";
  // An element of the input, and all pixels that it counts for.
  std::map<int64_t, std::string> by_element;
  for (int64_t p = 0; p < window.pixels; ++p) {
    for (int64_t k = 0; k < window.taps; ++k) {
      if (!counts(p, k)) continue;
      const std::string s = "s" + number(p);
      by_element[p * window.step + k * window.gap] +=
          "      " + s + " = " + fused + "(e, w" + number(k) + ", " + s + ");\n";
    }
  }
  for (const auto& [element, sums] : by_element)
    t += "      e = " + load_vector + "(a" + plus(element) + ");\n" + sums;
  t += "    }\n";
  if (window.rows_ahead > 0) {
    // In the order of memory, a part beside each 16 channels.
    const int64_t lines = window.pixels * window.step / window.gap;
    t += "    if (c % 16 == 0) {\n";
    for (int64_t row = 0; row < window.rows_ahead; ++row) {
      t += "      " + std::string(row == 0 ? "const f32* " : "") + "ahead = x + (rows" + plus(row) +
           ") * " + number(window.row) + " + c * " + number(lines) + ";\n";
      for (int64_t j = 0; j < lines; ++j)
        t += "      __builtin_prefetch(ahead" + plus(16 * j) + ");\n";
    }
    t += "    }\n";
  }
  for (int64_t p = 0; p < window.pixels; ++p)
    t += "    " + store_vector + "(to + c" + plus(p * window.width) + ", s" + number(p) + ");\n";
  // The last vector may lie over the one before: both have the same sums.
  t += "    if (c + " + n + " >= channels) break;\n    c = c + " + number(2 * lanes) +
       " <= channels ? c + " + n + " : channels - " + n + ";\n  }\n}\n";
  body_ += t;
  return own;
}

}  // namespace litz
