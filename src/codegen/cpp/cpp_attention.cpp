#include "codegen/cpp/cpp_attention.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "codegen/common/key_bounds.h"
#include "codegen/cpp/attention_tiles.h"
#include "codegen/cpp/cpp_body.h"
#include "codegen/cpp/cpp_function.h"
#include "codegen/cpp/cpp_text.h"
#include "codegen/cpp/score_bounds.h"
#include "support/error.h"

namespace litz {
namespace {

constexpr double kTaskNanoseconds = 6000;  // least work worth handing to a thread
constexpr int64_t kGuessedLength = 512;    // of keys whose number is not known
// A row's greatest score may be so much above what weights are relative to, in powers of e: the
// weights and their sums stay far from overflow, and sums are seldom scaled down.
constexpr double kSlack = 8;
// Constants that such a score may be a product's multiple by.
constexpr double kLeastScale = 1e-6;
constexpr double kMostScale = 1e6;

std::string text(int64_t value) { return std::to_string(value); }

// Row `number` of a matrix in memory is at base + number * stride, if there is a stride.
struct Rows {
  Index at;  // of the row that the loop variable names
  std::optional<LinearIn> in_order;
};

Rows rows_of(Expr load, Index along, Index number) {
  const std::optional<LinearIn> row = linear_in(load.coordinates()[0], along);
  LITZ_CHECK(row && row->stride.is_constant(1),
             "neighbours of an attention's operand are not neighbours in memory");
  return {row->rest, linear_in(row->rest, number)};
}

constexpr int64_t kFactors = 128;  // of which one term after the other is added up

// Of an attention of one query how many iterations of the last batch loop, heads next to each
// other, have the same keys and values; at most `most`.
int64_t queries_that_share_keys(const Program& program, const Kernel& kernel, int64_t most) {
  const KernelAttention& attention = *kernel.attention;
  if (!attention.one_query || kernel.outer.size() < 2) return 1;
  const KernelLoop& heads = kernel.outer[kernel.outer.size() - 2];
  if (!heads.extent.is_constant()) return 1;
  const int64_t count = heads.extent.constant();
  IndexContext& context = program.indices();
  const auto first = static_cast<uint32_t>(kernel.outer.size() + 2);
  for (int64_t shared = std::min(count, most); shared > 1; --shared) {
    if (count % shared != 0) continue;
    const Index within = context.variable(first, context.constant(shared));
    Substitution split;
    split.set(heads.variable,
              context.variable(first + 1, context.constant(count / shared)) * shared + within);
    const auto is_same = [&](Expr load) {
      return !split.apply(load.coordinates()[0]).depends_on(within);
    };
    if (is_same(attention.key) && is_same(attention.value)) return shared;
  }
  return 1;
}

class AttentionPrinter {
 public:
  AttentionPrinter(const Program& program, const Kernel& kernel, Prelude& prelude, int vector_bytes)
      : attention_(*kernel.attention),
        prelude_(prelude),
        analysis_(kernel),
        arguments_(program),
        body_(analysis_, prelude, arguments_),
        feature_loop_(kernel.outer.size() - 1),
        shared_(queries_that_share_keys(program, kernel, most_tile_rows(vector_bytes))),
        has_query_loop_(!attention_.one_query || shared_ > 1),
        query_loop_(has_query_loop_ ? feature_loop_ - 1 : CppBody::kNoLoop),
        batch_loops_(has_query_loop_ ? feature_loop_ - 1 : feature_loop_),
        key_loop_(kernel.outer.size()),
        query_(variable(has_query_loop_ ? query_loop_ : feature_loop_)),
        score_(bounded_score(attention_.score, query_, variable(key_loop_))),
        keys_(rows_of(attention_.key, attention_.factors.variable, variable(key_loop_))),
        values_(rows_of(attention_.value, variable(feature_loop_), variable(key_loop_))),
        size_(size_of_attention()),
        tiles_(plan_attention_tiles(size_, vector_bytes)),
        pairs_(size_.pairs && !tiles_.in_place),
        factors_(tiles_.matrix_unit ? whole((size_.factors + 1) / 2, kTilePairs)
                 : pairs_           ? (size_.factors + 1) / 2
                                    : size_.factors),
        scale_(pairs_ ? scale_of_product() : std::nullopt) {
    for (DType dtype : {DType::kInt32, DType::kInt64, DType::kUInt8}) prelude_.type(dtype, 1);
  }

  CppKernel print() {
    body_.push_scope(CppBody::kNoLoop, "");
    declare_arrays();
    if (tiles_.matrix_unit)
      out().line(prelude_.configure_tiles() + "(" + text(tiles_.strip_rows) + ", " +
                 text(kTilePairs) + ");");
    body_.push_iteration_scope();
    print_places();
    for (size_t i = 0; i < batch_loops_; ++i) body_.push_scope(i, name_of(i));
    read_queries();
    if (tiles_.packs_all) print_packing_of_all();
    print_steps();
    print_stores();
    for (size_t i = 0; i < batch_loops_; ++i) body_.pop_scope("");
    body_.pop_scope("for (i64 it = begin; it < end; ++it)");

    if (tiles_.matrix_unit) out().line(prelude_.release_tiles() + "();");
    CppFunction function;
    function.body = body_.take_text();
    const int64_t keys = size_.keys > 0 ? size_.keys : kGuessedLength;
    const double nanoseconds =
        attention_nanoseconds(size_, tiles_) * static_cast<double>(keys * tiles_.block_rows());
    function.total = row_blocks();
    for (size_t i = 0; i < batch_loops_; ++i) function.total += " * " + length(i);
    function.grain =
        text(static_cast<int64_t>(std::ceil(kTaskNanoseconds / std::max(1.0, nanoseconds))));
    return print_cpp_function(arguments_, function);
  }

 private:
  IndentedBuffer& out() { return body_.out(); }
  Index variable(size_t loop) const { return analysis_.variable(loop); }
  static std::string name_of(size_t loop) { return "d" + text(static_cast<int64_t>(loop)); }
  std::string length(size_t loop) { return body_.index(analysis_.extent(loop)); }
  std::string query_name() const { return has_query_loop_ ? name_of(query_loop_) : "row"; }
  static int64_t constant_or_0(Index extent) {
    return extent.is_constant() ? extent.constant() : 0;
  }
  int64_t lanes() const { return tiles_.lanes; }
  int64_t whole(int64_t n, int64_t unit) const { return (n + unit - 1) / unit * unit; }
  int64_t panels_of_features() const { return whole(size_.features, tiles_.panel()); }
  int64_t sums_width() const { return whole(size_.features, lanes()); }
  int64_t scores_width() const { return tiles_.keys + lanes(); }  // rows in other sets of the cache

  AttentionSize size_of_attention() {
    AttentionSize size;
    for (size_t i = 0; i < batch_loops_; ++i)
      size.items *= static_cast<double>(std::max<int64_t>(1, constant_or_0(analysis_.extent(i))));
    size.queries = has_query_loop_ ? constant_or_0(analysis_.extent(query_loop_)) : 1;
    if (shared_ > 1) size.rows = shared_;
    size.keys = constant_or_0(analysis_.extent(key_loop_));
    size.factors = attention_.factors.extent.constant();
    size.features = analysis_.extent(feature_loop_).constant();
    size.is_in_order = keys_.in_order && values_.in_order;
    size.pairs =
        prelude_.has_pairs() && attention_.key.dtype() == DType::kBFloat16 && size.is_in_order;
    size.matrix_unit = size.pairs && prelude_.has_tiles();
    return size;
  }

  // ---- places ----

  std::string queries() { return has_query_loop_ ? length(query_loop_) : "1"; }
  std::string strips() {
    if (tiles_.strips > 0) return text(tiles_.strips);
    return "((" + queries() + " + " + text(tiles_.strip_rows - 1) + ") / " +
           text(tiles_.strip_rows) + ")";
  }
  std::string row_blocks() {
    if (tiles_.strips > 0)
      return text((tiles_.strips + tiles_.block_strips - 1) / tiles_.block_strips);
    return "((" + strips() + " + " + text(tiles_.block_strips - 1) + ") / " +
           text(tiles_.block_strips) + ")";
  }
  // Where a strip begins; strips of full height come first.
  std::string row_of(const std::string& strip) {
    const std::string rows = strip + " * " + text(tiles_.strip_rows);
    if (tiles_.strips == 0 || tiles_.tall_strips == tiles_.strips) return rows;
    const std::string tall = text(tiles_.tall_strips);
    return rows + " - (" + strip + " > " + tall + " ? " + strip + " - " + tall + " : 0)";
  }
  static std::string least(const std::string& a, const std::string& b) {
    return a + " < " + b + " ? " + a + " : " + b;
  }

  void declare_arrays() {
    const auto declare = [&](const std::string& name, int64_t elements) {
      out().line("alignas(64) f32 " + name + "[" + text(elements) + "];");
    };
    if (!tiles_.in_place) {
      const int64_t keys = tiles_.packs_all ? whole(size_.keys, tiles_.panel()) : tiles_.keys;
      const int64_t rows = tiles_.packs_all ? size_.keys : tiles_.keys;
      declare("keys", keys * factors_);
      declare("values", (tiles_.matrix_unit ? keys / 2
                         : pairs_           ? (rows + 1) / 2
                                            : rows) *
                            panels_of_features());
    }
    if (!size_.is_in_order) declare("rows", tiles_.keys * std::max(size_.factors, size_.features));
    declare("queries", tiles_.block_rows() * factors_);
    declare("scores", tiles_.strip_rows * scores_width());
    declare("sums", tiles_.block_rows() * sums_width());
    declare("totals", tiles_.block_rows() * lanes());
    declare("tops", whole(tiles_.block_rows(), lanes()));
    if (!tiles_.packs_all) return;
    out().line("i64 packed_keys = -1;");
    out().line("i64 packed_values = -1;");
  }

  // The item's queries, from `top` to `bottom`.
  void print_places() {
    const std::string blocks = row_blocks();
    std::string rest = blocks == "1" ? "it" : "it / " + blocks;
    const std::string strip =
        blocks == "1" ? "0" : "it % " + blocks + " * " + text(tiles_.block_strips);
    for (size_t i = batch_loops_; i-- > 0;) {
      out().line("const i64 " + name_of(i) + " = " + rest + (i == 0 ? "" : " % " + length(i)) +
                 ";");
      rest += " / " + length(i);
    }
    const std::string all = strips();
    out().line("const i64 strip = " + strip + ";");
    out().line("const i64 last = " + least("strip + " + text(tiles_.block_strips), all) + ";");
    out().line("const i64 top = " + row_of("strip") + ";");
    if (!tiles_.ends_short) {
      out().line("const i64 bottom = " + row_of("last") + ";");
    } else {
      out().line("const i64 bottom = " + least(row_of("last"), queries()) + ";");
    }
  }

  void open_rows() { body_.push_scope(query_loop_, query_name()); }
  void close_rows(const std::string& from, const std::string& to) {
    const std::string row = query_name();
    body_.pop_scope("for (i64 " + row + " = " + from + "; " + row + " < " + to + "; ++" + row +
                    ")");
  }

  std::string pointer(Expr load, const std::string& offset) {
    return "((const " + std::string(is_half(load.dtype()) ? "u16" : "f32") + "*)" +
           arguments_.pointer(load.buffer()) + " + " + offset + ")";
  }

  void read_queries() {
    const std::optional<LinearIn> row =
        linear_in(attention_.query.coordinates()[0], attention_.factors.variable);
    LITZ_CHECK(row && row->stride.is_constant(1),
               "neighbours of an attention's query are not neighbours in memory");
    const std::string fill = prelude_.fill_row();
    if (factors_ > (size_.factors + 1) / 2 && tiles_.matrix_unit)
      out().line(fill + "(queries, (last - strip) * " + text(tiles_.strip_rows * factors_) +
                 ", 0.0f);");
    open_rows();
    const std::string from = pointer(attention_.query, body_.index(row->rest));
    const std::string to = "queries + (" + query_name() + " - top) * " + text(factors_);
    if (pairs_) {
      out().line(prelude_.copy_pairs() + "(" + from + ", 0, 1, " + text(size_.factors) + ", " + to +
                 ", " + text(factors_) + ");");
    } else {
      out().line(prelude_.read_row(attention_.query.dtype()) + "(" + from + ", " +
                 text(size_.factors) + ", " + to + ");");
    }
    close_rows("top", "bottom");
    // Rows of a strip that there are not.
    if (tiles_.ends_short)
      out().line("for (i64 i = (bottom - top) * " + text(factors_) + "; i < (last - strip) * " +
                 text(tiles_.strip_rows * factors_) + "; ++i) queries[i] = 0;");
    const std::string rows = "(last - strip) * " + text(tiles_.strip_rows) + " * ";
    out().line(fill + "(sums, " + rows + text(sums_width()) + ", 0.0f);");
    out().line(fill + "(totals, " + rows + text(lanes()) + ", 0.0f);");
    out().line(fill + "(tops, bottom - top, -__builtin_inff());");
  }

  // ---- packing ----

  void print_packing_of_all() {
    const auto print = [&](const std::string& name, const Rows& rows, const auto& pack) {
      const std::string at = name + "_at";
      out().line("const i64 " + at + " = " + shared_index(rows.in_order->rest) + ";");
      out().open("if (packed_" + name + " != " + at + ") {");
      out().line("packed_" + name + " = " + at + ";");
      pack(at, shared_index(rows.in_order->stride), text(size_.keys));
      out().close();
    };
    print("keys", keys_, [&](const auto&... place) { pack_keys(attention_.key, place...); });
    print("values", values_,
          [&](const auto&... place) { pack_values(attention_.value, place...); });
  }

  // Of keys or values, which those that share them have from the first one.
  std::string shared_index(Index index) {
    if (shared_ == 1) return body_.index(index);
    body_.push_scope(query_loop_, "top");
    const std::string at = body_.index(index);
    body_.pop_scope("");
    return at;
  }

  void pack_keys(Expr load, const std::string& at, const std::string& stride,
                 const std::string& count) {
    pack_keys(load.dtype(), pointer(load, at), stride, count);
  }
  void pack_keys(DType memory, const std::string& from, const std::string& stride,
                 const std::string& count) {
    out().line(
        (pairs_ ? prelude_.pack_pairs(2, tiles_.matrix_unit) : prelude_.pack_columns(memory, 2)) +
        "(" + from + ", " + stride + ", " + text(size_.factors) + ", " + count + ", keys);");
  }
  void pack_values(Expr load, const std::string& at, const std::string& stride,
                   const std::string& count) {
    pack_values(load.dtype(), pointer(load, at), stride, count);
  }
  void pack_values(DType memory, const std::string& from, const std::string& stride,
                   const std::string& count) {
    out().line((pairs_ ? prelude_.join_rows(tiles_.matrix_unit) : prelude_.pack_rows(memory, 2)) +
               "(" + from + ", " + stride + ", " + count + ", " + text(size_.features) +
               ", values" + (pairs_ ? ", " + text(tiles_.panel()) : "") + ");");
  }

  // From the key `k` on.
  std::string step_of(const Rows& rows, Expr load) {
    return pointer(
        load, shared_index(rows.in_order->rest) + " + k * " + shared_index(rows.in_order->stride));
  }

  // Of the keys from `k` to `end`.
  void print_packing_of_step() {
    const auto print = [&](const Rows& rows, Expr load, int64_t width, const auto& pack) {
      if (rows.in_order) {
        pack(load.dtype(), step_of(rows, load), shared_index(rows.in_order->stride));
        return;
      }
      body_.push_scope(key_loop_, "v");
      out().line(prelude_.read_row(load.dtype()) + "(" + pointer(load, shared_index(rows.at)) +
                 ", " + text(width) + ", rows + (v - k) * " + text(width) + ");");
      body_.pop_scope("for (i64 v = k; v < step_end; ++v)");
      pack(DType::kFloat32, "rows", text(width));
    };
    print(keys_, attention_.key, size_.factors,
          [&](const auto&... place) { pack_keys(place..., "step_end - k"); });
    print(values_, attention_.value, size_.features,
          [&](const auto&... place) { pack_values(place..., "step_end - k"); });
  }

  // ---- keys ----

  // What a bound is for a row; one past an upper bound.
  std::string bound_at(const KeyBound& bound, const std::string& row) {
    const std::string first = body_.index(bound.first + (bound.is_upper ? 1 : 0));
    if (bound.step == 0) return first;
    return first + " + " + row + " * " + text(bound.step);
  }
  // The row of a stretch whose bound is the loosest.
  static std::string loosest(const KeyBound& bound, const std::string& from,
                             const std::string& to) {
    return (bound.step > 0) == bound.is_upper ? "(" + to + " - 1)" : from;
  }

  // Declares a position that comes to `start`, or to less where an upper bound of the rows says so.
  void declare_end(const std::string& name, const std::string& start, const std::string& from,
                   const std::string& to, bool of_row) {
    std::string value = start;
    for (const KeyBound& bound : of_row ? score_.upper : score_.all) {
      if (!bound.is_upper) continue;
      const std::string limit = body_.fresh("limit");
      out().line("const i64 " + limit + " = " +
                 bound_at(bound, of_row ? from : loosest(bound, from, to)) + ";");
      out().line("const i64 " + limit + "_ = " + least(limit, value) + ";");
      value = limit + "_";
    }
    out().line("const i64 " + name + " = " + value + ";");
  }

  void print_steps() {
    declare_end("keys_end", length(key_loop_), "top", "bottom", false);
    std::string first = "0";
    for (const KeyBound& bound : score_.all) {
      if (bound.is_upper) continue;
      const std::string limit = body_.fresh("limit");
      out().line("const i64 " + limit + " = " + bound_at(bound, loosest(bound, "top", "bottom")) +
                 ";");
      out().line("const i64 " + limit + "_ = " + limit + " > " + first + " ? " + limit + " : " +
                 first + ";");
      first = limit + "_";
    }
    const std::string step = text(tiles_.keys);
    if (first != "0") first += " / " + step + " * " + step;
    body_.push_scope(CppBody::kNoLoop, "");
    out().line("const i64 step_end = " + least("k + " + step, "keys_end") + ";");
    if (!tiles_.packs_all && !tiles_.in_place) print_packing_of_step();
    body_.push_scope(CppBody::kNoLoop, "");
    print_strip();
    body_.pop_scope("for (i64 m = strip; m < last; ++m)");
    body_.pop_scope("for (i64 k = " + first + "; k < keys_end; k += " + step + ")");
  }

  void print_strip() {
    out().line("const i64 from = " + row_of("m") + ";");
    if (!tiles_.ends_short) {
      out().line("const i64 to = " + row_of("(m + 1)") + ";");
    } else {
      out().line("const i64 to = " + least(row_of("(m + 1)"), queries()) + ";");
    }
    declare_end("stop", "step_end", "from", "to", false);
    out().line("if (stop <= k) continue;");
    if (tiles_.in_place) {
      const std::string rows = "to - from, ";
      const std::string sums = "sums + (from - top) * " + text(sums_width());
      const auto place = [&](const Rows& of, Expr load) {
        return step_of(of, load) + ", " + shared_index(of.in_order->stride) + ", stop - k, ";
      };
      const std::string width = text(scores_width());
      out().line(prelude_.dot_rows(attention_.key.dtype()) + "(queries + (from - top) * " +
                 text(size_.factors) + ", " + rows + text(size_.factors) + ", " +
                 place(keys_, attention_.key) + "scores, " + width + ");");
      print_rows();
      out().line(prelude_.sum_rows(attention_.value.dtype(), size_.features) + "(scores, " + width +
                 ", " + rows + place(values_, attention_.value) + sums + ", " + text(sums_width()) +
                 ");");
      return;
    }
    const std::string at = tiles_.packs_all ? "k" : "0";
    const std::string rows_before = "(from - top) * ";
    const std::string panel = text(tiles_.panel());
    const std::string factors = text(factors_);
    // Rows of an array of words, as the left operand of a product; how far they are apart.
    const auto left = [&](const std::string& rows) {
      return pairs_ ? "(const u16*)(" + rows + ")" : rows;
    };
    const int64_t halves = pairs_ ? 2 : 1;
    // The products of a strip with panels, or with a half of one behind the last whole one.
    const auto product = [&](int vectors, const std::string& arguments) {
      const auto tile = [&](int64_t rows) {
        if (tiles_.matrix_unit)
          return prelude_.matrix_tile({.more_rows = rows > kTileRows, .vectors = vectors});
        return prelude_.product_tile({.rows = rows, .vectors = vectors, .pairs = pairs_});
      };
      const std::string call = "(" + arguments + ");";
      if (tiles_.strips == 0 || tiles_.tall_strips == tiles_.strips)
        return tile(tiles_.strip_rows) + call;
      return "(m < " + text(tiles_.tall_strips) + " ? " + tile(tiles_.strip_rows) + " : " +
             tile(tiles_.strip_rows - 1) + ")" + call;
    };
    const auto score = [&](int vectors, int64_t first) {
      return product(vectors, left("queries + " + rows_before + factors + " + " + text(first)) +
                                  ", " + text(halves * factors_) + ", keys + (" + at + " + j) * " +
                                  factors + " + " + text(first * tiles_.panel()) + ", " + panel +
                                  ", " + text(std::min(kFactors, factors_ - first)) +
                                  ", scores + j, " + text(scores_width()) +
                                  (first == 0 ? ", false" : ", true"));
    };
    for (int64_t first = 0; first < factors_; first += kFactors) {
      out().line(first == 0 ? "i64 j = 0;" : "j = 0;");
      out().line("for (; j + " + text(lanes()) + " < stop - k; j += " + panel + ") " +
                 score(2, first));
      out().line("if (j < stop - k) " + score(1, first));
    }

    print_rows();
    const auto of_pairs = [&](const std::string& keys) {
      return tiles_.matrix_unit ? Prelude::pairs_of_whole_tiles(keys)
             : pairs_           ? "(" + keys + " + 1) / 2"
                                : "(" + keys + ")";
    };
    const std::string keys = !tiles_.packs_all    ? "(" + of_pairs("step_end - k") + ")"
                             : tiles_.matrix_unit ? text(whole(size_.keys, 2 * kTilePairs) / 2)
                             : pairs_             ? text((size_.keys + 1) / 2)
                                                  : text(size_.keys);
    const std::string first = !tiles_.packs_all ? ""
                              : pairs_          ? " + k / 2 * " + panel
                                                : " + k * " + panel;
    const auto sum = [&](int vectors, const std::string& feature) {
      return product(vectors, left("scores") + ", " + text(halves * scores_width()) +
                                  ", values + " + feature + " * " + keys + first + ", " + panel +
                                  ", " + of_pairs("stop - k") + ", sums + " + rows_before +
                                  text(sums_width()) + " + " + feature + ", " + text(sums_width()) +
                                  ", true");
    };
    const int64_t panels = sums_width() / tiles_.panel();
    if (panels > 0)
      out().line("for (i64 f = 0; f < " + text(panels * tiles_.panel()) + "; f += " + panel + ") " +
                 sum(2, "f"));
    if (panels * tiles_.panel() < sums_width()) out().line(sum(1, text(panels * tiles_.panel())));
  }

  void print_rows() {
    open_rows();
    print_row();
    close_rows("from", "to");
  }

  // Of a score that is the product times a positive constant, or the product itself.
  std::optional<double> scale_of_product() const {
    const auto is_product = [](Expr e) { return e.op() == ExprOp::kReduced; };
    if (is_product(score_.rest)) return 1.0;
    if (score_.rest.op() != ExprOp::kMul) return std::nullopt;
    for (const size_t side : {0, 1}) {
      const Expr factor = score_.rest.operand(side);
      if (!is_product(score_.rest.operand(1 - side)) || factor.op() != ExprOp::kConstant) continue;
      const double scale = factor.scalar().real;
      if (scale >= kLeastScale && scale <= kMostScale) return scale;
    }
    return std::nullopt;
  }

  // From the products of a row the weights, relative to about the greatest score so far. What the
  // rows of scores and `tops` have is the score, or the product where the score is scale_ times it.
  void print_row() {
    const std::string row = query_name();
    const std::string lanes = text(this->lanes());
    const std::string infinity = "-__builtin_inff()";
    out().line("f32* const s = scores + (" + row + " - from) * " + text(scores_width()) + ";");
    declare_end("row_stop", "stop", row, "", true);
    if (scale_) {
      out().line("f32 higher = " + prelude_.greatest_of_row() + "(s, row_stop - k);");
    } else {
      print_scores();
    }
    const std::string place = "(" + row + " - top)";
    out().line("const f32 top_score = tops[" + row + " - top];");
    out().line("higher = higher " +
               (pairs_ ? "- top_score > " + literal(kSlack / scale_.value_or(1))
                       : std::string("> top_score")) +
               " ? higher : top_score;");
    out().open("if (higher > top_score) {");
    out().open("if (top_score > " + infinity + ") {");
    out().line("const f32 less = " + prelude_.function(PreludeFn::kExp, DType::kFloat32, 1) + "(" +
               scaled("top_score - higher") + ");");
    const std::string scale = prelude_.scale_row();
    out().line(scale + "(totals + " + place + " * " + lanes + ", " + lanes + ", less);");
    out().line(scale + "(sums + " + place + " * " + text(sums_width()) + ", " + text(sums_width()) +
               ", less);");
    out().close();
    out().line("tops[" + row + " - top] = higher;");
    out().close();
    // Of nothing but masked keys the differences would be those of infinities.
    const std::string totals = ", totals + " + place + " * " + lanes + ");";
    if (!pairs_) {
      out().line(prelude_.weigh_row() + "(s, row_stop - k, stop - k, higher > " + infinity +
                 " ? higher : 0.0f" + totals);
      return;
    }
    const std::string factor = literal(scale_.value_or(1) * std::numbers::log2e);
    const std::string end = tiles_.matrix_unit
                                ? "2 * (" + Prelude::pairs_of_whole_tiles("stop - k") + ")"
                                : "stop - k + 1";
    out().line(prelude_.weigh_row_in_pairs() + "(s, row_stop - k, " + end + ", " + factor +
               ", higher > " + infinity + " ? higher : 0.0f" + totals);
  }

  static std::string literal(double value) { return cpp_float_literal(value, false); }

  // What the rows of scores and `tops` have, as a score.
  std::string scaled(const std::string& value) const {
    return scale_ && *scale_ != 1 ? "(" + value + ") * " + literal(*scale_) : value;
  }

  // Scores from the products of a row; declares `higher`, their greatest.
  void print_scores() {
    const std::string lanes = text(this->lanes());
    out().line(prelude_.type(DType::kFloat32, tiles_.lanes) + " greatest = " +
               prelude_.splat(DType::kFloat32, tiles_.lanes) + "(-__builtin_inff());");
    out().line("i64 v = k;");
    const Index length = analysis_.extent(key_loop_);
    const bool has_rest = !score_.upper.empty() || !length.is_constant() ||
                          length.constant() % tiles_.lanes != 0 || has_other_upper_bound();
    print_scores("", "for (; v + " + lanes + " <= row_stop; v += " + lanes + ")");
    if (has_rest) print_scores("(row_stop - v)", "if (v < row_stop)");
    out().line("f32 higher = " + prelude_.reduce(PreludeFn::kMax, DType::kFloat32, tiles_.lanes) +
               "(greatest);");
  }

  // Bounds that are not taken out of the score may end a step anywhere.
  bool has_other_upper_bound() const {
    return std::any_of(score_.all.begin(), score_.all.end(),
                       [](const KeyBound& bound) { return bound.is_upper; });
  }

  void print_scores(const std::string& valid, const std::string& header) {
    const int lanes = tiles_.lanes;
    const std::string vector = prelude_.type(DType::kFloat32, lanes);
    body_.push_vector_scope(key_loop_, "v", lanes, valid);
    out().line("const " + vector + " product = " + prelude_.load(DType::kFloat32, lanes) +
               "(s + v - k);");
    body_.define_reduced(0, "product", true);
    std::string score = body_.vector(score_.rest);
    if (!valid.empty())
      score = prelude_.first_lanes(4, lanes) + "(" + valid + ") ? " + score + " : " +
              prelude_.splat(DType::kFloat32, lanes) + "(-__builtin_inff())";
    out().line("const " + vector + " score = " + score + ";");
    out().line(prelude_.store(DType::kFloat32, lanes) + "(s + v - k, score);");
    out().line("greatest = score > greatest ? score : greatest;");
    body_.pop_scope(header);
  }

  // ---- behind the keys ----

  void print_stores() {
    open_rows();
    const std::string row = query_name();
    const std::string sums = "(sums + (" + row + " - top) * " + text(sums_width()) + ")";
    out().line(
        "const f32 total = " + prelude_.reduce(PreludeFn::kAdd, DType::kFloat32, tiles_.lanes) +
        "(" + prelude_.load(DType::kFloat32, tiles_.lanes) + "(totals + (" + row + " - top) * " +
        text(lanes()) + "));");
    out().line(prelude_.scale_row() + "(" + sums + ", " + text(sums_width()) +
               ", 1.0f / (total == 0.0f ? 1.0f : total));");
    if (attention_.logsumexp.valid())
      out().line("((f32*)" + arguments_.pointer(attention_.logsumexp) + ")[" +
                 body_.index(attention_.logsumexp_offset) +
                 "] = total == 0.0f ? 0.0f : " + scaled("tops[" + row + " - top]") + " + " +
                 prelude_.function(PreludeFn::kLog, DType::kFloat32, 1) + "(total);");
    body_.set_accumulator_array(1, sums, feature_loop_, "0");
    out().line("const i64 to = " + text(size_.features) + ";");
    out().line("i64 v = 0;");
    store_vectors(body_, analysis_, feature_loop_, tiles_.lanes, size_.features);
    close_rows("top", "bottom");
  }

  const KernelAttention& attention_;
  Prelude& prelude_;
  KernelAnalysis analysis_;
  KernelArguments arguments_;
  CppBody body_;
  const size_t feature_loop_;
  const int64_t shared_;  // queries next to each other that share their keys and values
  const bool has_query_loop_;
  const size_t query_loop_;  // with one query, but shared keys, that of heads
  const size_t batch_loops_;
  const size_t key_loop_;
  const Index query_;  // the loop's variable; where there is none, one that no score has
  const BoundedScore score_;
  const Rows keys_;
  const Rows values_;
  const AttentionSize size_;
  const AttentionTiles tiles_;
  const bool pairs_;       // of bfloat16, the factors of both products
  const int64_t factors_;  // of queries and keys, or pairs of them
  // Scores in pairs that are the product times a constant are not computed by themselves.
  const std::optional<double> scale_;
};

}  // namespace

CppKernel print_cpp_attention(const Program& program, const Kernel& kernel, Prelude& prelude,
                              const PreludeTarget& target) {
  return AttentionPrinter(program, kernel, prelude, target.vector_bytes).print();
}

}  // namespace litz
