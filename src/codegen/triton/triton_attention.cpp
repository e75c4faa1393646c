#include "codegen/triton/triton_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_set>

#include "codegen/common/iteration_space.h"
#include "codegen/common/key_bounds.h"
#include "codegen/cpp/cpp_run.h"
#include "codegen/triton/tile_plan.h"
#include "codegen/triton/triton_body.h"
#include "support/error.h"

namespace litz {
namespace {

constexpr int64_t kMostShort = int64_t{1} << 30;
constexpr int kMostDepth = 8;  // of choices in a score
constexpr int64_t kMostBytes = 200 * 1024;
constexpr double kLog2OfE = 1.44269504088896340736;

std::string text(int64_t value) { return std::to_string(value); }

// A score as a positive factor and the rest.
struct FactoredScore {
  double factor = 1;
  Expr rest;
};

FactoredScore factor_score(Expr score) {
  if (score.op() == ExprOp::kMul && score.operand(1).op() == ExprOp::kConstant) {
    const double constant = score.operand(1).scalar().real;
    FactoredScore inner = factor_score(score.operand(0));
    if (constant > 0 && std::isfinite(constant)) return {inner.factor * constant, inner.rest};
  }
  if (score.op() == ExprOp::kWhere) {
    ExprContext& exprs = score.context();
    for (const size_t side : {1, 2}) {
      if (!is_minus_infinity(score.operand(3 - side))) continue;
      const FactoredScore inner = factor_score(score.operand(side));
      return {inner.factor, side == 1
                                ? exprs.where(score.operand(0), inner.rest, score.operand(2))
                                : exprs.where(score.operand(0), score.operand(1), inner.rest)};
    }
  }
  return {1, score};
}

// Sums of products are rounded once, which takes one instruction instead of two.
Expr fuse_sums(Expr score, int depth = 0) {
  if (score.op() == ExprOp::kWhere && depth < kMostDepth)
    return score.context().where(score.operand(0), fuse_sums(score.operand(1), depth + 1),
                                 fuse_sums(score.operand(2), depth + 1));
  if (score.op() != ExprOp::kAdd || score.dtype() != DType::kFloat32) return score;
  for (const size_t side : {0, 1}) {
    const Expr product = score.operand(side);
    if (product.op() != ExprOp::kMul) continue;
    return score.context().fma(product.operand(0), product.operand(1), score.operand(1 - side));
  }
  return score;
}

// Whether the score can be multiplied by log2(e) without passing the greatest float32: it holds no
// such number as masks have for -inf.
bool is_far_from_overflow(Expr score) {
  constexpr double kFar = 1e37;
  std::vector<Expr> pending = {score};
  std::unordered_set<Expr> seen;
  while (!pending.empty()) {
    const Expr e = pending.back();
    pending.pop_back();
    if (!seen.insert(e).second) continue;
    switch (e.op()) {
      case ExprOp::kConstant:
        if (!std::isinf(e.scalar().real) && std::abs(e.scalar().real) > kFar) return false;
        break;
      case ExprOp::kReduced:
        break;
      case ExprOp::kCast:
        if (is_floating(e.operand(0).dtype()) && e.operand(0).dtype() != DType::kFloat16)
          pending.push_back(e.operand(0));
        break;
      case ExprOp::kWhere:
        pending.push_back(e.operand(1));
        pending.push_back(e.operand(2));
        break;
      case ExprOp::kAdd:
      case ExprOp::kSub:
      case ExprOp::kMul:
      case ExprOp::kFma:
        pending.insert(pending.end(), e.operands().begin(), e.operands().end());
        break;
      default:
        return false;
    }
  }
  return true;
}

// Of a multiprocessor's shared memory: the query, and the operands and masks of some steps.
int64_t bytes_of(const Kernel& kernel, const AttentionTile& tile) {
  const int64_t width = power_of_two(kernel.attention->factors.extent.constant());
  const int64_t features = power_of_two(kernel.outer.back().extent.constant());
  int64_t mask = 0;
  visit_postorder({&kernel.attention->score, 1}, [&](Expr e) {
    if (e.op() == ExprOp::kLoad && e.coordinates()[0].depends_on(kernel.inner[0].variable))
      mask += size_of(e.dtype());
  });
  return tile.rows * width * 2 +
         tile.stages * tile.keys * (2 * (width + features) + mask * tile.rows);
}

class AttentionPrinter {
 public:
  AttentionPrinter(const Plan& plan, const Kernel& kernel, const AttentionTile& tile,
                   TritonPrelude& prelude)
      : kernel_(kernel),
        attention_(*kernel.attention),
        tile_(tile),
        analysis_(kernel),
        arguments_(*plan.program),
        narrow_(has_short_positions(plan)),
        body_(analysis_, prelude, arguments_, narrow_),
        context_(plan.program->indices()),
        query_loop_(kernel.outer.size() - 2),
        feature_loop_(kernel.outer.size() - 1),
        key_loop_(kernel.outer.size()),
        bounds_(find_key_bounds(attention_.score, variable(query_loop_), variable(key_loop_))) {}

  TritonKernel print() {
    LITZ_CHECK(!attention_.logsumexp.valid(), "an attention with gradients is the library's");
    const Index rows = analysis_.extent(query_loop_);
    const Index down = ceil_div(rows, context_.constant(tile_.rows));
    open_program(down);
    load_query();
    out().line("acc = tl.full([" + text(tile_.rows) + ", " + text(block_of(feature())) +
               "], 0.0, tl.float32)");
    out().line("total = tl.full([" + text(tile_.rows) + ", 1], 0.0, tl.float32)");
    out().line("top = tl.full([" + text(tile_.rows) + ", 1], float(\"-inf\"), tl.float32)");
    print_steps();
    store();

    TritonKernel printed;
    Index programs = down;
    for (size_t loop = 0; loop < query_loop_; ++loop) programs = programs * analysis_.extent(loop);
    printed.functions.push_back({"", programs, 1, tile_.warps, tile_.stages});
    printed.checks = body_.checks();
    printed.buffers = arguments_.buffers();
    printed.symbols = arguments_.symbols();
    printed.tile = text(tile_.rows) + " queries by " + text(tile_.keys) + " keys, " +
                   text(tile_.stages) + " stages, " + text(tile_.warps) + " warps";
    printed.text = triton_header(printed, printed.functions[0], narrow_) + body_.take_text();
    return printed;
  }

 private:
  IndentedBuffer& out() { return body_.out(); }
  Index variable(size_t loop) const { return analysis_.variable(loop); }
  Index feature() const { return analysis_.extent(feature_loop_); }
  Index factors() const { return attention_.factors.extent; }
  // An axis of tl.dot has 16 elements or more.
  static int block_of(Index extent) { return std::max(16, power_of_two(extent.constant())); }

  bool has_short_positions(const Plan& plan) {
    bool narrow = true;
    for_each_access(analysis_, *plan.program, [&](Index offset, int64_t, bool) {
      narrow = narrow && offset.range().lo >= 0 && offset.range().hi < kMostShort;
    });
    visit_postorder(analysis_.all_roots(), [&](Expr e) {
      if (e.op() != ExprOp::kIndexValue) return;
      narrow = narrow && e.index().range().lo > -kMostShort && e.index().range().hi < kMostShort;
    });
    return narrow;
  }

  std::string range_of(int block) const {
    return "tl.arange(0, " + text(block) + ")" + (narrow_ ? "" : ".to(tl.int64)");
  }

  // ---- the program's part ----

  // Those that see more keys come first.
  void open_program(Index down) {
    const std::string tiles = body_.index(down).text;
    out().line("tile = tl.program_id(0)" + std::string(narrow_ ? "" : ".to(tl.int64)"));
    const bool grows = std::any_of(bounds_.begin(), bounds_.end(),
                                   [](const KeyBound& b) { return b.is_upper && b.step > 0; });
    out().line(
        "row = " + (grows ? "(" + tiles + " - 1 - tile % " + tiles + ")" : "tile % " + tiles) +
        " * " + text(tile_.rows));
    std::string rest = "tile // " + tiles;
    for (size_t loop = query_loop_; loop-- > 0;) {
      if (loop == 0) {
        body_.bind(loop, body_.define(rest, kNoAxes, "b"));
        break;
      }
      const std::string length = body_.index(analysis_.extent(loop)).text;
      const std::string before = body_.define(rest, kNoAxes, "rest").text;
      body_.bind(loop, body_.define(before + " % " + length, kNoAxes, "b"));
      rest = before + " // " + length;
    }
    body_.bind_iteration();
    const std::string length = body_.index(analysis_.extent(query_loop_)).text;
    out().line("x = row + " + range_of(tile_.rows) + "[:, None]");
    std::string mask;
    if (!divides(tile_.rows, analysis_.extent(query_loop_))) {
      mask = "x_mask";
      out().line("x_mask = x < " + length);
    }
    body_.set_axis(kRows, tile_.rows, mask);
    body_.set_axis(kColumns, tile_.keys, "");
    body_.bind(query_loop_, {"x", kRows, ""});
    row_mask_ = mask;
  }

  static bool divides(int block, Index length) {
    return length.is_constant() && length.constant() % block == 0;
  }

  // A tile of what `load` names: rows as `name` says, which stands for loop `loop`, by `along`.
  std::string tile_of(Expr load, size_t loop, const std::string& name, const std::string& row_mask,
                      Index along, Index length) {
    const std::optional<LinearIn> linear = linear_in(load.coordinates()[0], along);
    LITZ_CHECK(linear && linear->stride.is_constant(1),
               "neighbours of an attention's operand are not neighbours in memory");
    body_.bind(loop, {name, kRows, ""});
    const std::string at = body_.index(linear->rest).text;
    const int block = block_of(length);
    std::string mask = row_mask;
    if (length.constant() != block)
      mask += (mask.empty() ? "(" : " & (") + range_of(block) + "[None, :] < " +
              text(length.constant()) + ")";
    return "tl.load(" + arguments_.pointer(load.buffer()) + " + (" + at + " + " + range_of(block) +
           "[None, :])" + (mask.empty() ? "" : ", mask=" + mask + ", other=0.0") + ")";
  }

  void load_query() {
    out().line("query = " + tile_of(attention_.query, query_loop_, "x", row_mask_,
                                    attention_.factors.variable, factors()));
  }

  // ---- keys ----

  // What a bound is for the program's first or last row; one past an upper bound.
  std::string bound_text(const KeyBound& bound) {
    const Index first = bound.first + (bound.is_upper ? 1 : 0);
    if (bound.step == 0) return body_.index(first).text;
    const bool at_last = (bound.step > 0) == bound.is_upper;
    const int64_t more = at_last ? (tile_.rows - 1) * bound.step : 0;
    const std::string value = body_.index(first + more).text;
    return "row" + (bound.step == 1 ? "" : " * (" + text(bound.step) + ")") +
           (value == "0" ? "" : " + " + value);
  }

  void print_steps() {
    const Index length = kernel_.inner[0].extent;
    std::string from = "0";
    std::string to = body_.index(length).text;
    for (const KeyBound& bound : bounds_) {
      if (bound.is_upper) {
        to = "tl.minimum(" + to + ", " + bound_text(bound) + ")";
      } else {
        from = "tl.maximum(" + from + ", " + bound_text(bound) + ")";
      }
    }
    if (from != "0") {
      out().line("first = " + from + " // " + text(tile_.keys) + " * " + text(tile_.keys));
      from = "first";
    }
    if (to != body_.index(length).text) {
      out().line("last = " + to);
      to = "last";
    }
    body_.open_loop();
    std::string key_mask;
    out().line("y = step + " + range_of(tile_.keys) + "[None, :]");
    out().line("z = step + " + range_of(tile_.keys) + "[:, None]");
    if (!divides(tile_.keys, length)) {
      key_mask = "z_mask";
      const std::string end = body_.index(length).text;
      out().line("y_mask = y < " + end);
      out().line("z_mask = z < " + end);
    }
    out().line("key = " + tile_of(attention_.key, key_loop_, "z", key_mask,
                                  attention_.factors.variable, factors()));
    body_.set_axis(kColumns, tile_.keys, key_mask.empty() ? "" : "y_mask");
    body_.bind(key_loop_, {"y", kColumns, ""});
    out().line("product = tl.dot(query, key.T)");
    body_.define_reduced(0, {"product", kRows | kColumns, ""});
    weigh(key_mask);
    out().line("value = " + tile_of(attention_.value, key_loop_, "z", key_mask,
                                    variable(feature_loop_), feature()));
    out().line("acc = tl.dot(weight.to(" + triton_type(attention_.value.dtype()) +
               "), value, acc * less)");
    body_.close_loop("for step in range(" + from + ", " + to + ", " + text(tile_.keys) + ")");
  }

  // From the product the weights of this step, relative to the greatest score so far.
  void weigh(const std::string& key_mask) {
    const Expr whole = fuse_sums(compare_positions(attention_.score));
    const FactoredScore factored = factor_score(whole);
    const bool scales_first = is_far_from_overflow(factored.rest);
    const Expr rest = scales_first ? factored.rest : whole;
    const TileAxes axes = kRows | kColumns;
    std::string score = body_.block(body_.value(rest), axes, DType::kFloat32);
    if (!key_mask.empty()) score = "tl.where(y_mask, " + score + ", float(\"-inf\"))";
    out().line("score = " + score);
    const double factor = factored.factor * kLog2OfE;
    const std::string factor_text =
        triton_literal(false, 0, scales_first ? factor : kLog2OfE, DType::kFloat32);
    const std::string by = " * " + factor_text;
    const std::string greatest = "tl.max(score, 1)[:, None]";
    out().line("higher = tl.maximum(top, " + greatest + (scales_first ? by : "") + ")");
    // Of nothing but masked keys the differences would be those of infinities.
    out().line("base = tl.where(higher == float(\"-inf\"), 0.0, higher)");
    if (scales_first) {
      out().line("weight = tl.exp2(tl.fma(score, " + factor_text + ", -base))");
      out().line("less = tl.exp2(top - base)");
    } else {
      out().line("weight = tl.exp2((score - base)" + by + ")");
      out().line("less = tl.exp2((top - base)" + by + ")");
    }
    out().line("total = total * less + tl.sum(weight, 1)[:, None]");
    out().line("top = higher");
  }

  // ---- behind the loop ----

  void store() {
    const int block = block_of(feature());
    out().line("result = acc / tl.where(total == 0.0, 1.0, total)");
    out().line("w = " + range_of(block) + "[None, :]");
    std::string mask;
    if (feature().constant() != block) {
      mask = "w_mask";
      out().line("w_mask = w < " + text(feature().constant()));
    }
    body_.set_axis(kColumns, block, mask);
    body_.bind(query_loop_, {"x", kRows, ""});
    body_.bind(feature_loop_, {"w", kColumns, ""});
    body_.define_reduced(1, {"result", kRows | kColumns, ""});
    std::vector<const KernelStore*> stores;
    for (const KernelStore& s : kernel_.stores) stores.push_back(&s);
    body_.store(stores, kRows | kColumns, false);
  }

  const Kernel& kernel_;
  const KernelAttention& attention_;
  const AttentionTile tile_;
  KernelAnalysis analysis_;
  KernelArguments arguments_;
  const bool narrow_;
  TritonBody body_;
  IndexContext& context_;
  const size_t query_loop_;
  const size_t feature_loop_;
  const size_t key_loop_;
  const std::vector<KeyBound> bounds_;
  std::string row_mask_;
};

}  // namespace

AttentionTile plan_attention(const Kernel& kernel, const TritonDevice& device) {
  AttentionTile tile;
  const Index rows = kernel.outer[kernel.outer.size() - 2].extent;
  const int64_t widest =
      std::max(kernel.outer.back().extent.constant(), kernel.attention->factors.extent.constant());
  int64_t batch = 1;
  for (size_t loop = 0; loop + 2 < kernel.outer.size(); ++loop) {
    const Index extent = kernel.outer[loop].extent;
    batch *= extent.is_constant() ? extent.constant() : 1;
  }
  if (widest > 64) tile.warps = 8;
  // Enough programs for all multiprocessors.
  const bool is_small =
      rows.is_constant() && (rows.constant() <= 64 ||
                             batch * ((rows.constant() + 127) / 128) < 2 * device.multiprocessors);
  if (is_small || widest > 128) {
    tile.rows = 64;
    tile.warps = 4;
  }
  while (tile.stages > 1 && bytes_of(kernel, tile) > kMostBytes) --tile.stages;
  return tile;
}

std::vector<AttentionTile> other_attention_tiles(const Kernel& kernel, const AttentionTile& tile) {
  constexpr std::array<AttentionTile, 10> kTiles = {{{128, 64, 4, 3},
                                                     {128, 64, 8, 3},
                                                     {128, 128, 8, 2},
                                                     {128, 128, 8, 3},
                                                     {128, 64, 8, 2},
                                                     {128, 32, 4, 4},
                                                     {64, 64, 4, 3},
                                                     {64, 64, 4, 2},
                                                     {64, 128, 4, 2},
                                                     {64, 32, 4, 3}}};
  std::vector<AttentionTile> others;
  for (const AttentionTile& other : kTiles) {
    if (other != tile && bytes_of(kernel, other) <= kMostBytes) others.push_back(other);
  }
  return others;
}

TritonKernel print_triton_attention(const Plan& plan, const Kernel& kernel,
                                    const AttentionTile& tile, TritonPrelude& prelude) {
  return AttentionPrinter(plan, kernel, tile, prelude).print();
}

}  // namespace litz
