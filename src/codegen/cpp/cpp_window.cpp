#include "codegen/cpp/cpp_window.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "codegen/cpp/cpp_body.h"
#include "codegen/cpp/cpp_function.h"

namespace litz {
namespace {

constexpr double kTaskNanoseconds = 6000;  // least work worth handing to a thread
constexpr int64_t kMostPixels = 8;         // of a strip: with the taps of a row in 16 registers
constexpr int64_t kMostChannels = 256;     // of a strip in the first level cache
constexpr int64_t kMostTaps = 16;          // of a row
constexpr size_t kMostStripKinds = 8;
constexpr int64_t kLargeInput = 1 << 21;  // elements
constexpr int64_t kMostRowsAhead = 2;

std::string text(int64_t value) { return std::to_string(value); }
int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// base + the sum of outer[i] * its loop + taps[i] * its loop.
struct WindowLayout {
  Index base;
  std::vector<int64_t> outer;
  std::array<int64_t, 2> taps = {};
};

std::optional<WindowLayout> layout_of(const Kernel& kernel, Index offset) {
  WindowLayout layout;
  const auto take = [&](Index variable) -> std::optional<int64_t> {
    const auto linear = linear_in(offset, variable);
    if (!linear || !linear->stride.is_constant()) return std::nullopt;
    offset = linear->rest;
    return linear->stride.constant();
  };
  for (const KernelLoop& loop : kernel.outer) {
    const std::optional<int64_t> stride = take(loop.variable);
    if (!stride) return std::nullopt;
    layout.outer.push_back(*stride);
  }
  for (size_t i = 0; i < 2; ++i) {
    const std::optional<int64_t> stride = take(kernel.inner[i].variable);
    if (!stride) return std::nullopt;
    layout.taps[i] = *stride;
  }
  layout.base = offset;
  return layout;
}

// The bound's position is pixel * step + tap * gap + first in one dimension: 0 of rows, 1 of
// pixels.
struct Line {
  size_t dimension = 0;
  int64_t step = 0;
  int64_t gap = 0;
  int64_t first = 0;
};

std::optional<Line> line_of(const Kernel& kernel, Index at) {
  for (size_t d = 0; d < 2; ++d) {
    const auto by_pixel = linear_in(at, kernel.outer[kernel.outer.size() - 3 + d].variable);
    if (!by_pixel || !by_pixel->stride.is_constant()) continue;
    const auto by_tap = linear_in(by_pixel->rest, kernel.inner[d].variable);
    if (!by_tap || !by_tap->stride.is_constant() || !by_tap->rest.is_constant()) continue;
    return Line{d, by_pixel->stride.constant(), by_tap->stride.constant(), by_tap->rest.constant()};
  }
  return std::nullopt;
}

// Strips of equally many pixels at the same taps.
struct Strips {
  int64_t first = 0;
  int64_t count = 0;
  int64_t pixels = 0;
  std::vector<bool> counts;  // [pixel][tap]: whether the tap is inside
};

// The strips of a row, left to right.
std::vector<Strips> plan_strips(const Kernel& kernel, const WindowSum& sum) {
  const int64_t width = kernel.outer[kernel.outer.size() - 2].extent.constant();
  const int64_t taps = kernel.inner[1].extent.constant();
  const auto is_inside = [&](int64_t pixel, int64_t tap) {
    return std::all_of(sum.bounds.begin(), sum.bounds.end(), [&](const WindowSum::Bound& bound) {
      const std::optional<Line> line = line_of(kernel, bound.at);
      if (line->dimension != 1) return true;
      const int64_t at = pixel * line->step + tap * line->gap + line->first;
      return at >= bound.least && at < bound.end;
    });
  };
  const int64_t strips = ceil_div(width, kMostPixels);
  const int64_t most = ceil_div(width, strips);
  const int64_t tall = width - strips * (most - 1);
  std::vector<Strips> plan;
  int64_t first = 0;
  for (int64_t i = 0; i < strips; ++i) {
    Strips strip{first, 1, i < tall ? most : most - 1, {}};
    for (int64_t p = 0; p < strip.pixels; ++p) {
      for (int64_t t = 0; t < taps; ++t) strip.counts.push_back(is_inside(first + p, t));
    }
    first += strip.pixels;
    if (!plan.empty() && plan.back().pixels == strip.pixels && plan.back().counts == strip.counts) {
      ++plan.back().count;
    } else {
      plan.push_back(std::move(strip));
    }
  }
  return plan;
}

// Whole vectors, so many that no block is less than a vector.
int64_t channels_at_once(int64_t channels, int64_t lanes) {
  const auto whole = [&](int64_t n) { return ceil_div(n, lanes) * lanes; };
  int64_t block = whole(ceil_div(channels, ceil_div(channels, kMostChannels)));
  while (block > 0 && channels % block != 0 && channels % block < lanes) block -= lanes;
  return block > 0 ? block : whole(channels);
}

class WindowPrinter {
 public:
  WindowPrinter(const Program& program, const Kernel& kernel, const WindowSum& sum,
                Prelude& prelude)
      : kernel_(kernel),
        sum_(sum),
        prelude_(prelude),
        analysis_(kernel),
        arguments_(program),
        body_(analysis_, prelude, arguments_),
        channels_loop_(kernel.outer.size() - 1),
        pixels_loop_(channels_loop_ - 1),
        rows_loop_(channels_loop_ - 2),
        lanes_(prelude.native_lanes(4)),
        channels_(extent(channels_loop_)),
        block_(channels_at_once(channels_, lanes_)),
        input_(*layout_of(kernel, sum.input.coordinates()[0])),
        weight_(*layout_of(kernel, sum.weight.coordinates()[0])),
        strips_(plan_strips(kernel, sum)) {
    for (DType dtype : {DType::kInt32, DType::kInt64, DType::kUInt8}) prelude_.type(dtype, 1);
    result_ = plain_result();
  }

  CppKernel print() {
    body_.push_scope(CppBody::kNoLoop, "");
    if (!result_) out().line("alignas(64) f32 block[" + text(strips_[0].pixels * block_) + "];");
    body_.push_iteration_scope();
    print_places();
    for (size_t i = 0; i < pixels_loop_; ++i) body_.push_scope(i, name_of(i));
    out().open("for (i64 first = 0; first < " + text(channels_) + "; first += " + text(block_) +
               ") {");
    out().line("const i64 channels = " + text(channels_) + " - first < " + text(block_) + " ? " +
               text(channels_) + " - first : " + text(block_) + ";");
    for (const Strips& strips : strips_) print_strips(strips);
    out().close();
    for (size_t i = 0; i < pixels_loop_; ++i) body_.pop_scope("");
    body_.pop_scope("for (i64 it = begin; it < end; ++it)");

    int64_t rows = 1;
    for (size_t i = 0; i < pixels_loop_; ++i) rows *= extent(i);
    const double nanoseconds = 0.25 / lanes_ * static_cast<double>(channels_ * taps(0) * taps(1)) *
                               static_cast<double>(extent(pixels_loop_));
    CppFunction function;
    function.body = body_.take_text();
    function.total = text(rows);
    function.grain = text(static_cast<int64_t>(std::ceil(kTaskNanoseconds / nanoseconds)));
    return print_cpp_function(arguments_, function);
  }

 private:
  int64_t extent(size_t loop) const { return analysis_.extent(loop).constant(); }
  int64_t taps(size_t dimension) const { return kernel_.inner[dimension].extent.constant(); }
  static std::string name_of(size_t loop) { return "d" + text(static_cast<int64_t>(loop)); }
  IndentedBuffer& out() { return body_.out(); }

  // The strides of the result, if the sum is stored and nothing else is done with it.
  std::optional<WindowLayout> plain_result() const {
    if (kernel_.stores.size() != 1) return std::nullopt;
    const KernelStore& store = kernel_.stores[0];
    if (store.value.op() != ExprOp::kReduced || store.mode != StoreMode::kStore ||
        !store.runtime_indices.empty() ||
        arguments_.program().buffer(store.buffer).dtype != DType::kFloat32)
      return std::nullopt;
    const std::optional<WindowLayout> layout = layout_of(kernel_, store.offset);
    return layout && layout->outer[channels_loop_] == 1 ? layout : std::nullopt;
  }

  void print_places() {
    std::string rest = "it";
    for (size_t i = pixels_loop_; i-- > 0;) {
      const std::string e = text(extent(i));
      out().line("const i64 " + name_of(i) + " = " + (i == 0 ? rest : rest + " % " + e) + ";");
      rest += " / " + e;
    }
    // Rows of taps from `low` to `high` are inside.
    out().line("i64 low = 0;");
    out().line("i64 high = " + text(taps(0)) + ";");
    for (const WindowSum::Bound& bound : sum_.bounds) {
      const Line line = *line_of(kernel_, bound.at);
      if (line.dimension != 0) continue;
      const std::string step = " - " + text(line.step) + " * " + name_of(rows_loop_);
      const std::string gap = text(line.gap);
      body_.push_scope(CppBody::kNoLoop, "");
      if (bound.least != INT64_MIN) {
        out().line("const i64 missing = " + text(bound.least - line.first) + step + ";");
        out().line("const i64 least = missing > 0 ? (missing + " + text(line.gap - 1) + ") / " +
                   gap + " : 0;");
        out().line("low = low > least ? low : least;");
      } else {
        out().line("const i64 room = " + text(bound.end - line.first) + step + ";");
        out().line("const i64 most = room > 0 ? (room + " + text(line.gap - 1) + ") / " + gap +
                   " : 0;");
        out().line("high = high < most ? high : most;");
      }
      body_.pop_scope(std::string(CppBody::kBlock));
    }
  }

  std::string sum_over(const std::vector<int64_t>& strides, size_t loops) const {
    std::string t;
    for (size_t i = 0; i < loops; ++i) t += " + " + name_of(i) + " * " + text(strides[i]);
    return t;
  }

  void print_strips(const Strips& strips) {
    const std::string tile = window_tile(strips);
    const std::string end = text(strips.first + strips.count * strips.pixels);
    out().open("for (i64 left = " + text(strips.first) + "; left < " + end +
               "; left += " + text(strips.pixels) + ") {");
    const std::string x = "(const f32*)" + arguments_.pointer(sum_.input.buffer()) + " + (" +
                          body_.index(input_.base) + sum_over(input_.outer, pixels_loop_) +
                          " + left * " + text(input_.outer[pixels_loop_]) + " + low * " +
                          text(input_.taps[0]) + " + first)";
    const std::string w = "(const f32*)" + arguments_.pointer(sum_.weight.buffer()) + " + (" +
                          body_.index(weight_.base) + " + low * " + text(weight_.taps[0]) +
                          " + first)";
    std::string to = "block";
    if (result_)
      to = "(f32*)" + arguments_.pointer(kernel_.stores[0].buffer) + " + (" +
           body_.index(result_->base) + sum_over(result_->outer, pixels_loop_) + " + left * " +
           text(result_->outer[pixels_loop_]) + " + first)";
    out().line(tile + "(" + x + ", " + w + ", high - low, channels, " + to + ");");
    if (!result_) print_stores(strips);
    out().close();
  }

  void print_stores(const Strips& strips) {
    out().line("const i64 right = left + " + text(strips.pixels) + ";");
    out().line("const i64 to = first + channels;");
    const std::string pixel = name_of(pixels_loop_);
    body_.push_scope(pixels_loop_, pixel);
    body_.set_accumulator_array(0, "(block + (" + pixel + " - left) * " + text(block_) + ")",
                                channels_loop_, "first");
    out().line("i64 v = first;");
    store_vectors(body_, analysis_, channels_loop_, lanes_, channels_);
    body_.pop_scope("for (i64 " + pixel + " = left; " + pixel + " < right; ++" + pixel + ")");
  }

  // Of an image that is not in the caches the next row of pixels begins that many rows further on.
  int64_t rows_ahead() const {
    int64_t elements = 1;
    for (size_t i = 0; i < rows_loop_; ++i) elements *= extent(i);
    elements *= extent(rows_loop_) * input_.outer[rows_loop_];
    const bool is_dense = input_.taps[1] == channels_ && block_ >= channels_;
    if (elements < kLargeInput || !is_dense) return 0;
    return std::min<int64_t>(kMostRowsAhead,
                             std::max<int64_t>(1, input_.outer[rows_loop_] / input_.taps[0]));
  }

  std::string window_tile(const Strips& strips) {
    PreludeWindow window;
    window.pixels = strips.pixels;
    window.taps = taps(1);
    window.counts = strips.counts;
    window.step = input_.outer[pixels_loop_];
    window.gap = input_.taps[1];
    window.row = input_.taps[0];
    window.weight_row = weight_.taps[0];
    window.weight_gap = weight_.taps[1];
    window.rows_ahead = rows_ahead();
    window.width = result_ ? result_->outer[pixels_loop_] : block_;
    return prelude_.window_tile(window);
  }

  const Kernel& kernel_;
  const WindowSum sum_;
  Prelude& prelude_;
  KernelAnalysis analysis_;
  KernelArguments arguments_;
  CppBody body_;
  const size_t channels_loop_;
  const size_t pixels_loop_;
  const size_t rows_loop_;
  const int lanes_;
  const int64_t channels_;
  const int64_t block_;  // channels of a strip, whole vectors
  const WindowLayout input_;
  const WindowLayout weight_;
  const std::vector<Strips> strips_;
  std::optional<WindowLayout> result_;
};

}  // namespace

std::optional<WindowSum> cpp_window(const Kernel& kernel, const PreludeTarget& target) {
  const std::optional<WindowSum> sum = window_sum(kernel);
  if (!sum) return std::nullopt;
  const auto is_sized = [](const KernelLoop& loop) {
    return loop.extent.is_constant() && loop.extent.constant() > 0;
  };
  if (!std::all_of(kernel.outer.begin(), kernel.outer.end(), is_sized) ||
      !std::all_of(kernel.inner.begin(), kernel.inner.end(), is_sized) ||
      kernel.inner[1].extent.constant() > kMostTaps ||
      kernel.outer.back().extent.constant() < target.vector_bytes / 4)
    return std::nullopt;
  const auto input = layout_of(kernel, sum->input.coordinates()[0]);
  const auto weight = layout_of(kernel, sum->weight.coordinates()[0]);
  if (!input || !weight || input->outer.back() != 1 || weight->outer.back() != 1)
    return std::nullopt;
  for (const WindowSum::Bound& bound : sum->bounds) {
    const std::optional<Line> line = line_of(kernel, bound.at);
    if (!line || line->step < 1 || line->gap < 1) return std::nullopt;
  }
  if (plan_strips(kernel, *sum).size() > kMostStripKinds) return std::nullopt;
  return sum;
}

CppKernel print_cpp_window(const Program& program, const Kernel& kernel, const WindowSum& sum,
                           Prelude& prelude, const PreludeTarget&) {
  return WindowPrinter(program, kernel, sum, prelude).print();
}

}  // namespace litz
