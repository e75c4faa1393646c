#include "codegen/cpp/cpp_product.h"

#include <algorithm>
#include <cmath>

#include "codegen/cpp/cpp_body.h"
#include "codegen/cpp/cpp_function.h"
#include "codegen/cpp/product_tiles.h"

namespace litz {
namespace {

constexpr double kTaskNanoseconds = 6000;  // least work worth handing to a thread

std::string text(int64_t value) { return std::to_string(value); }

// A matrix in memory: element [outer, k] lies at base + outer_stride * outer + k_stride * k.
struct Layout {
  Index base;
  int64_t outer_stride = 0;
  int64_t k_stride = 0;
};

std::optional<Layout> layout_of(Index offset, Index outer, Index k) {
  const auto by_outer = linear_in(offset, outer);
  if (!by_outer || !by_outer->stride.is_constant()) return std::nullopt;
  const auto by_k = linear_in(by_outer->rest, k);
  if (!by_k || !by_k->stride.is_constant()) return std::nullopt;
  return Layout{by_k->rest, by_outer->stride.constant(), by_k->stride.constant()};
}

bool has_neighbours(const Layout& layout) {
  return layout.outer_stride == 1 || layout.k_stride == 1;
}

// The right operand, as the kernel would pack it.
bool is_packed(const Kernel& kernel, const MatrixProduct& product, const PreludeTarget& target) {
  if (kernel.outer.size() != 2 || kernel.inner.size() != 1) return false;
  const bool pairs = target.bf16_pairs && product.dtype == DType::kBFloat16;
  return (pairs || product.dtype == DType::kFloat32) &&
         lies_in_panels(product.right.coordinates()[0], kernel.outer[1].variable,
                        kernel.inner[0].variable, target.vector_bytes / 2, pairs ? 2 : 1);
}

class ProductPrinter {
 public:
  ProductPrinter(const Program& program, const Kernel& kernel, const MatrixProduct& product,
                 Prelude& prelude, const PreludeTarget& target)
      : kernel_(kernel),
        product_(product),
        prelude_(prelude),
        analysis_(kernel),
        arguments_(program),
        body_(analysis_, prelude, arguments_),
        columns_loop_(kernel.outer.size() - 1),
        rows_loop_(columns_loop_ - 1),
        left_(*layout_of(product.left.coordinates()[0], variable(rows_loop_), factor())),
        in_panels_(is_packed(kernel, product, target)),
        right_(in_panels_
                   ? Layout{}
                   : *layout_of(product.right.coordinates()[0], variable(columns_loop_), factor())),
        pairs_(prelude.has_pairs() && product.dtype == DType::kBFloat16),
        size_(size_of_product()),
        tiles_(plan_product_tiles(size_, target.vector_bytes)) {
    for (DType dtype : {DType::kInt32, DType::kInt64, DType::kUInt8}) prelude_.type(dtype, 1);
    if (tiles_.form != Form::kDots) result_ = plain_result();
    shares_right_ = size_.batches > 1 && shares_right();
    if (shares_right_ && !copies_left())
      together_ = batches_of_item(size_, tiles_, extent(rows_loop_ - 1));
    if (product_.right.dtype() == DType::kFloat32)
      rows_ahead_ = rows_ahead(tiles_, right_.k_stride);
    if (product_.left.dtype() == DType::kFloat32 && left_.k_stride == 1 && together_ == 1)
      next_rows_ = next_rows(size_, tiles_);
    merges_parts_ = can_merge_parts();
    turns_block_ = size_.along_rows && together_ == 1;
    brings_source_ =
        product_.right.dtype() == DType::kFloat32 && packs_steps() && brings_source(size_, tiles_);
  }

  CppKernel print() {
    if (pairs_) body_.flush_denormals();
    body_.push_scope(CppBody::kNoLoop, "");
    declare_arrays();
    body_.push_iteration_scope();
    print_places();
    const size_t bound = together_ > 1 ? rows_loop_ - 1 : rows_loop_;
    for (size_t i = 0; i < bound; ++i) body_.push_scope(i, name_of(i));
    if (packs_all()) print_panels();
    print_tiles();
    print_stores();
    for (size_t i = 0; i < bound; ++i) body_.pop_scope("");
    body_.pop_scope("for (i64 it = begin; it < end; ++it)");

    CppFunction function;
    if (uses_tiles()) out().line(prelude_.release_tiles() + "();");
    function.body = body_.take_text();
    const double nanoseconds = item_nanoseconds(size_, tiles_) * static_cast<double>(together_);
    function.total = text(batch_items() * column_blocks(size_, tiles_) * tiles_.row_blocks());
    function.grain =
        text(static_cast<int64_t>(std::ceil(kTaskNanoseconds / std::max(1.0, nanoseconds))));
    return print_cpp_function(arguments_, function);
  }

 private:
  using Form = ProductTiles::Form;

  Index variable(size_t loop) const { return analysis_.variable(loop); }
  Index factor() const { return variable(analysis_.num_loops() - 1); }
  int64_t extent(size_t loop) const { return analysis_.extent(loop).constant(); }
  static std::string name_of(size_t loop) { return "d" + text(static_cast<int64_t>(loop)); }
  IndentedBuffer& out() { return body_.out(); }

  ProductSize size_of_product() {
    ProductSize size;
    size.along_rows = stores_along_rows();
    for (size_t i = 0; i < rows_loop_; ++i) size.batches *= extent(i);
    size.rows = extent(rows_loop_);
    size.columns = extent(columns_loop_);
    const int64_t factors = extent(analysis_.num_loops() - 1);
    size.factors = pairs_ ? (factors + 1) / 2 : factors;
    for (size_t i = columns_loop_ + 1; i + 1 < analysis_.num_loops(); ++i) size.parts *= extent(i);
    size.in_panels = in_panels_;
    size.matrix_unit = pairs_ && prelude_.has_tiles();
    if (!in_panels_ && (product_.right.dtype() == DType::kFloat32 || pairs_)) {
      size.has_rows = right_.outer_stride == 1 && (!pairs_ || factors % 2 == 0);
      size.has_dots = right_.k_stride == 1 && left_.k_stride == 1;
    }
    return size;
  }

  // Where the product is stored, if that is all that is done with it.
  std::optional<Layout> plain_result() const {
    if (kernel_.stores.size() != 1) return std::nullopt;
    const KernelStore& store = kernel_.stores[0];
    if (store.value.op() != ExprOp::kReduced || store.mode != StoreMode::kStore ||
        !store.runtime_indices.empty() ||
        arguments_.program().buffer(store.buffer).dtype != DType::kFloat32)
      return std::nullopt;
    const std::optional<Layout> layout =
        layout_of(store.offset, variable(rows_loop_), variable(columns_loop_));
    return layout && layout->k_stride == 1 ? layout : std::nullopt;
  }

  bool shares_right() const {
    for (size_t i = 0; i < rows_loop_; ++i) {
      if (right_.base.depends_on(variable(i))) return false;
    }
    return true;
  }

  // Of a batch loop; of the last one several iterations may be one item.
  int64_t steps_of(size_t loop) const {
    if (loop + 1 != rows_loop_) return extent(loop);
    return (extent(loop) + together_ - 1) / together_;
  }
  // Items that read the same columns of the right operand.
  int64_t items_of_columns() const {
    return tiles_.row_blocks() * (shares_right_ ? batch_items() : 1);
  }
  // What one item reads alone is packed for each step of it.
  bool packs_steps() const { return packs() && items_of_columns() == 1; }
  bool packs_all() const { return packs() && items_of_columns() != 1; }
  bool packs() const { return tiles_.packs() && !in_panels_; }
  bool uses_tiles() const { return tiles_.form == Form::kTiles; }
  int64_t batch_items() const {
    int64_t items = 1;
    for (size_t i = 0; i < rows_loop_; ++i) items *= steps_of(i);
    return items;
  }
  void open_batches() {
    if (together_ > 1) body_.push_scope(rows_loop_ - 1, name_of(rows_loop_ - 1));
  }
  void close_batches(const std::string& from = "batch", int step = 1) {
    if (together_ == 1) return;
    const std::string name = name_of(rows_loop_ - 1);
    body_.pop_scope("for (i64 " + name + " = " + from + "; " + name +
                    (step == 1
                         ? " < batches; ++" + name
                         : " + " + text(step) + " <= batches; " + name + " += " + text(step)) +
                    ")");
  }
  // The block of rows of one batch.
  std::string block() const {
    if (together_ == 1) return "block";
    return "block + (" + name_of(rows_loop_ - 1) + " - batch) * " + text(block_of_batch());
  }
  int64_t block_of_batch() const { return tiles_.block_rows() * block_width(); }

  // Products that are added up stay in the matrix unit's registers where one step is all of a part.
  bool can_merge_parts() const {
    return uses_tiles() && size_.parts > 1 && analysis_.num_loops() == columns_loop_ + 3 &&
           packs_all() && size_.factors <= tiles_.factors &&
           (size_.factors % kTilePairs == 0 || size_.factors < kTilePairs) &&
           left_step(columns_loop_ + 1).has_value();
  }
  // How far the left operand moves with a loop around its rows.
  std::optional<int64_t> left_step(size_t loop) const {
    const auto linear = linear_in(left_.base, variable(loop));
    if (!linear || !linear->stride.is_constant()) return std::nullopt;
    return linear->stride.constant();
  }
  int64_t left_part() const { return *left_step(columns_loop_ + 1); }
  int64_t copied_part() const { return copy_width() * tiles_.block_rows(); }

  // The loops over the products that are added up, around what follows; `part` numbers them.
  void open_parts() {
    std::string part = "0";
    for (size_t i = columns_loop_ + 1; i + 1 < analysis_.num_loops(); ++i) {
      body_.push_scope(i, name_of(i));
      part = part == "0" ? name_of(i)
                         : "(" + part + " * " + text(extent(i)) + " + " + name_of(i) + ")";
    }
    if (size_.parts > 1) out().line("const i64 part = " + part + ";");
  }
  void close_parts() {
    for (size_t i = analysis_.num_loops() - 1; i-- > columns_loop_ + 1;)
      body_.pop_scope("for (i64 " + name_of(i) + " = 0; " + name_of(i) + " < " + text(extent(i)) +
                      "; ++" + name_of(i) + ")");
  }
  std::string panels() const {
    if (size_.parts == 1 || packs_steps()) return "panels";
    return "panels + part * " + text(tiles_.block_columns * size_.factors);
  }

  // Half floats are widened, or become pairs where they are not pairs in memory.
  bool copies_left() const {
    if (!pairs_) return is_half(product_.left.dtype());
    return tiles_.form != Form::kDots && (left_.k_stride != 1 || operand_factors() % 2 != 0);
  }
  // In rows, else in columns.
  bool copies_rows() const { return left_.k_stride == 1 || uses_tiles(); }
  int64_t operand_factors() const { return extent(analysis_.num_loops() - 1); }
  int64_t copy_width() const {
    if (copies_rows()) return tiles_.factors;
    return pairs_ ? (tiles_.block_rows() + tiles_.lanes - 1) / tiles_.lanes * tiles_.lanes
                  : tiles_.block_rows();
  }
  // Rows of tiles do not lie powers of two apart.
  int64_t block_width() const {
    if (result_) return tiles_.panel();
    return tiles_.block_columns + (uses_tiles() ? tiles_.lanes : 0);
  }

  void declare_arrays() {
    const auto declare = [&](const std::string& name, int64_t elements) {
      out().line("alignas(64) f32 " + name + "[" + text(elements) + "];");
    };
    if (packs()) {
      declare("panels", tiles_.block_columns *
                            (packs_steps() ? tiles_.factors : size_.factors * size_.parts));
    }
    if (!result_ || size_.columns % tiles_.panel() != 0)
      declare("block", (together_ * tiles_.block_rows() + (turns_block_ ? tiles_.lanes : 0)) *
                           block_width());
    if (copies_left())
      declare("wide", copy_width() * (copies_rows() ? tiles_.block_rows() : tiles_.factors) *
                          (merges_parts_ ? size_.parts : 1));
    if (packs_all()) out().line("i64 packed = -1;");
    if (uses_tiles()) out().line("i64 tiles = 0;");
    if (in_panels_) {
      out().line("const f32* const panels = (const f32*)" +
                 arguments_.pointer(product_.right.buffer()) + ";");
    }
  }

  // The block of an item: rows from `top` to `bottom`, columns from `first`, so many `columns`.
  void print_places() {
    const std::string across = text(column_blocks(size_, tiles_));
    const std::string down = text(tiles_.row_blocks());
    const std::string width = text(tiles_.block_columns);
    // All batches of the same columns come one after the other where they share the right operand.
    const bool shares = shares_right_;
    out().line("const i64 of_columns = it / " + text(items_of_columns()) + ";");
    out().line("const i64 first = of_columns % " + across + " * " + width + ";");
    out().line("const i64 columns = " + text(size_.columns) + " - first < " + width + " ? " +
               text(size_.columns) + " - first : " + width + ";");
    std::string rest = shares ? "it / " + down : "of_columns / " + across;
    for (size_t i = rows_loop_; i-- > 0;) {
      const std::string e = text(steps_of(i));
      const std::string place = rest + (i == 0 && !shares ? "" : " % " + e);
      rest += " / " + e;
      if (together_ == 1 || i + 1 != rows_loop_) {
        out().line("const i64 " + name_of(i) + " = " + place + ";");
        continue;
      }
      const std::string all = text(extent(i));
      const std::string together = text(together_);
      out().line("const i64 batch = " + place + " * " + together + ";");
      out().line("const i64 batches = batch + " + together + " < " + all + " ? batch + " +
                 together + " : " + all + ";");
    }
    // Strips of full height come first.
    const std::string strips = text(tiles_.strips);
    const auto row = [&](const std::string& strip) {
      const std::string rows = strip + " * " + text(tiles_.strip_rows);
      if (tiles_.tall_strips == tiles_.strips) return rows;
      const std::string tall = text(tiles_.tall_strips);
      const int64_t less = tiles_.strip_rows - tiles_.low_rows;
      const std::string by = less == 1 ? "" : " * " + text(less);
      return rows + " - (" + strip + " > " + tall + " ? " + strip + " - " + tall + " : 0)" + by;
    };
    out().line("const i64 strip = it % " + down + " * " + text(tiles_.block_strips) + ";");
    out().line("const i64 last = strip + " + text(tiles_.block_strips) + " < " + strips +
               " ? strip + " + text(tiles_.block_strips) + " : " + strips + ";");
    out().line("const i64 top = " + row("strip") + ";");
    out().line("const i64 bottom = " + row("last") + ";");
  }

  std::string pointer(BufferId buffer, DType memory, const std::string& offset) {
    return "((const " + std::string(is_half(memory) ? "u16" : "f32") + "*)" +
           arguments_.pointer(buffer) + " + " + offset + ")";
  }

  void print_panels() {
    out().open("if (packed != of_columns) {");
    out().line("packed = of_columns;");
    open_parts();
    print_packing(body_.index(right_.base), text(operand_factors()));
    close_parts();
    out().close();
  }

  void print_packing(const std::string& base, const std::string& factors) {
    const DType memory = product_.right.dtype();
    const bool by_rows = right_.outer_stride == 1;
    std::string pack;
    if (pairs_) {
      pack = by_rows ? prelude_.join_rows() : prelude_.pack_pairs(tiles_.vectors);
    } else {
      pack = by_rows ? prelude_.pack_rows(memory, tiles_.vectors)
                     : prelude_.pack_columns(memory, tiles_.vectors);
    }
    out().line(
        pack + "(" +
        pointer(product_.right.buffer(), memory, base + " + first * " + text(right_.outer_stride)) +
        ", " + text(by_rows ? right_.k_stride : right_.outer_stride) + ", " + factors +
        ", columns, " + panels() + (pairs_ && by_rows ? ", " + text(tiles_.panel()) : "") + ");");
  }

  // Where the left operand's rows are read for the tiles of a step.
  struct LeftRows {
    std::string at_row_m;
    PreludeTile::Left order = PreludeTile::Left::kRows;
    int64_t stride = 0;
  };

  LeftRows print_left() {
    using Order = PreludeTile::Left;
    const DType memory = product_.left.dtype();
    const std::string base = body_.index(left_.base);
    const auto place = [&](const std::string& row) {
      return pointer(product_.left.buffer(), memory,
                     base + " + " + row + " * " + text(left_.outer_stride) + " + k * " +
                         text(left_.k_stride * of_factor()));
    };
    const bool by_rows = left_.k_stride == 1;
    if (!copies_left()) {
      const bool far = by_rows && are_far_rows(tiles_, left_.outer_stride *
                                                           static_cast<int64_t>(size_of(memory)));
      return {place("m"),
              far       ? Order::kFarRows
              : by_rows ? Order::kRows
                        : Order::kFactors,
              by_rows ? left_.outer_stride : left_.k_stride};
    }
    const int64_t width = copy_width();
    const std::string copy = !pairs_        ? prelude_.widen_rows(memory)
                             : by_rows      ? prelude_.copy_pairs()
                             : uses_tiles() ? prelude_.turn_pairs()
                                            : prelude_.join_rows();
    const std::string factors = operand_steps();
    std::string from = place("top");
    std::string to = "wide";
    std::string of_parts;
    if (merges_parts_) {
      of_parts = "for (i64 part = 0; part < " + text(size_.parts) + "; ++part) ";
      from += " + part * " + text(left_part());
      to += " + part * " + text(copied_part());
    }
    out().line(of_parts + copy + "(" + from + ", " +
               text(by_rows ? left_.outer_stride : left_.k_stride) + ", " +
               (by_rows ? "bottom - top, " + factors : factors + ", bottom - top") + ", " + to +
               ", " + text(width) + ");");
    if (!copies_rows()) return {"wide + (m - top)", Order::kFactors, width};
    const std::string row = "wide + (m - top) * " + text(width);
    if (pairs_) return {"(const u16*)(" + row + ")", Order::kRows, 2 * width};
    return {row, Order::kRows, width};
  }

  // Of the next step of the block, or the first one of the block below it; or of the next columns,
  // which begin at the top.
  void print_next_rows() {
    const std::string stride = text(left_.outer_stride);
    const std::string k = "k + " + text(tiles_.factors);
    out().line("const f32* const next = " +
               pointer(product_.left.buffer(), product_.left.dtype(),
                       body_.index(left_.base) + " + (" + k + " < " + text(size_.factors) +
                           " ? top * " + stride + " + " + k + " : bottom < " + text(size_.rows) +
                           " ? bottom * " + stride + " : 0)") +
               ";");
  }

  // What is packed for the next step, or for the next columns.
  void print_source() {
    const std::string k = "k + " + text(tiles_.factors);
    out().line("const f32* const source = " +
               pointer(product_.right.buffer(), product_.right.dtype(),
                       body_.index(right_.base) + " + first + (" + k + " < " + text(size_.factors) +
                           " ? (" + k + ") * " + text(right_.k_stride) + " : " +
                           text(tiles_.block_columns) + ")") +
               ";");
  }

  int64_t of_factor() const { return pairs_ ? 2 : 1; }
  // The operands' factors of a step.
  std::string operand_steps() const { return pairs_ ? "halves" : "steps"; }

  // The right operand for the columns from `first + j` and the factors from k.
  std::string right_place() {
    if (packs_steps()) return panels() + " + j * steps";
    if (in_panels_)
      return "panels + (first + j) * " + text(size_.factors) + " + k * " + text(tiles_.panel());
    if (tiles_.packs())
      return (merges_parts_ ? "panels" : panels()) + " + j * " + text(size_.factors) + " + k * " +
             text(tiles_.panel());
    return pointer(product_.right.buffer(), product_.right.dtype(),
                   body_.index(right_.base) + " + (first + j) * " + text(right_.outer_stride) +
                       " + k * " + text(right_.k_stride * of_factor()));
  }

  // `two`: of so many rows each, of two batches.
  std::string tile(int64_t rows, int64_t columns, const LeftRows& left, bool two) {
    if (tiles_.form == Form::kDots) return prelude_.dot_tile(rows, columns, pairs_);
    // Of the last panel those that have columns.
    const auto vectors = static_cast<int>((columns + tiles_.lanes - 1) / tiles_.lanes);
    if (uses_tiles())
      return prelude_.matrix_tile({.more_rows = two || rows > kTileRows,
                                   .vectors = std::min(tiles_.vectors, vectors),
                                   .has_parts = merges_parts_,
                                   .is_of_two = two});
    return prelude_.product_tile({.rows = rows,
                                  .vectors = std::min(tiles_.vectors, vectors),
                                  .left = left.order,
                                  .pairs = pairs_,
                                  .join_rows = pairs_ && tiles_.form == Form::kInPlace,
                                  .prefetches = in_panels_ || rows_ahead_ > 0,
                                  .next_rows = next_rows_,
                                  .brings_source = brings_source_});
  }

  int64_t right_stride() const {
    if (tiles_.packs()) return tiles_.panel();
    return tiles_.form == Form::kDots ? right_.outer_stride : right_.k_stride;
  }

  void print_tiles() {
    const std::string factors = text(size_.factors);
    const std::string step = text(tiles_.factors);
    const std::string panel = text(tiles_.panel());
    const int64_t rest = size_.columns % tiles_.panel();
    if (merges_parts_) {
      body_.push_scope(columns_loop_ + 1, "0");
    } else {
      open_parts();
    }
    if (uses_tiles() && size_.factors % kTilePairs != 0) {
      const std::string whole = text(size_.factors / kTilePairs * kTilePairs);
      out().open("for (i64 k = 0, steps; k < " + factors + "; k += steps) {");
      out().line("const i64 all = k < " + whole + " ? " + whole + " : " + factors + ";");
      out().line("steps = all - k < " + step + " ? all - k : " + step + ";");
      out().line("const i64 pairs = k < " + whole + " ? " + text(kTilePairs) + " : steps;");
    } else {
      out().open("for (i64 k = 0; k < " + factors + "; k += " + step + ") {");
      out().line("const i64 steps = " + factors + " - k < " + step + " ? " + factors +
                 " - k : " + step + ";");
    }
    if (pairs_ && (tiles_.form == Form::kDots || packs_steps() || copies_left())) {
      const std::string all = text(operand_factors());
      out().line("const i64 halves = 2 * (k + steps) < " + all + " ? 2 * steps : " + all +
                 " - 2 * k;");
    }
    if (packs_steps())
      print_packing(body_.index(right_.base) + " + k * " + text(right_.k_stride * of_factor()),
                    operand_steps());
    LeftRows left;
    if (together_ == 1) left = print_left();
    if (next_rows_ > 0) print_next_rows();
    if (brings_source_) print_source();
    const auto print_columns = [&](Strips strips) {
      out().open("for (; j + " + panel + " <= columns; j += " + panel + ") {");
      print_strips(left, tiles_.panel(), result_.has_value(), strips);
      out().close();
      if (rest != 0) {
        // A panel has zeros behind the last column.
        out().open("if (j < columns) {");
        print_strips(left, rest, false, strips);
        out().close();
      }
    };
    out().line("i64 j = 0;");
    if (uses_tiles() && tiles_.tall_strips != tiles_.strips) {
      // A configuration of tiles serves for all columns.
      print_columns(Strips::kTall);
      out().line("j = 0;");
      print_columns(Strips::kLow);
    } else {
      print_columns(Strips::kAll);
    }
    out().close();
    if (merges_parts_) {
      body_.pop_scope("");
    } else {
      close_parts();
    }
  }

  std::string result_place() {
    return "((f32*)" + arguments_.pointer(kernel_.stores[0].buffer) + " + " +
           body_.index(result_->base) + " + top * " + text(result_->outer_stride) + " + first + j)";
  }

  // Of the columns from j, to the result's place or the block.
  enum class Strips : uint8_t { kAll, kTall, kLow };
  void print_strips(LeftRows left, int64_t columns, bool to_result, Strips strips) {
    const std::string width = text(to_result ? result_->outer_stride : block_width());
    out().line("const " + std::string(pairs_ && !tiles_.packs() ? "u16" : "f32") +
               "* const right = " + right_place() + ";");
    if (in_panels_ && !uses_tiles()) {
      const std::string panel = text(tiles_.panel());
      out().line("const i64 ahead = j + 2 * " + panel + " <= columns ? " +
                 text(tiles_.panel() * size_.factors) + " : steps * " + panel + " - j * " +
                 text(size_.factors) + ";");
    }
    if (are_in_twos()) print_batches(left, columns, width, to_result, strips, Batches::kTwos);
    print_batches(left, columns, width, to_result, strips,
                  are_in_twos() ? Batches::kLast : Batches::kAll);
  }

  // Of few rows each, two batches are one strip.
  enum class Batches : uint8_t { kAll, kTwos, kLast };
  bool are_in_twos() const {
    return uses_tiles() && together_ > 1 && size_.rows <= kTileRows && !result_ &&
           left_step(rows_loop_ - 1).has_value();
  }
  void print_batches(LeftRows left, int64_t columns, const std::string& width, bool to_result,
                     Strips strips, Batches batches) {
    const bool two = batches == Batches::kTwos;
    open_batches();
    if (together_ > 1) left = print_left();
    const std::string to = to_result ? result_place() : block() + (result_ ? "" : " + j");
    out().line("f32* const to = " + to + ";");
    std::string parts;
    if (merges_parts_) {
      parts = text(size_.parts) + ", " + text(copies_left() ? 2 * copied_part() : left_part()) +
              ", " + text(tiles_.block_columns * size_.factors);
    }
    const std::string tall_rows = text(tiles_.tall_strips * tiles_.strip_rows);
    out().line("i64 m = " + (strips == Strips::kLow
                                 ? "top < " + tall_rows + " ? " + tall_rows + " : top;"
                                 : std::string("top;")));
    const auto print = [&](const std::string& end, int64_t rows) {
      if (uses_tiles()) print_configuration(end, rows);
      out().line(
          "for (; m < " + end + "; m += " + text(rows) + ") " + tile(rows, columns, left, two) +
          "(" + left.at_row_m + ", " + text(left.stride) + ", right, " + text(right_stride()) +
          ", " + (tiles_.form == Form::kDots ? operand_steps() : "steps") + ", to + (m - top) * " +
          width + ", " + width +
          (merges_parts_      ? ", false, " + parts
           : size_.parts == 1 ? ", k != 0"
                              : ", k + part != 0") +
          (two ? ", " + text(*left_step(rows_loop_ - 1)) + ", " + text(block_of_batch()) : "") +
          (in_panels_ && !uses_tiles() ? ", m == top ? ahead : 0"
           : rows_ahead_ > 0           ? ", " + text(rows_ahead_ * right_.k_stride)
                                       : "") +
          (brings_source_ ? ", m == top ? source + j : right, m == top ? " + text(right_.k_stride) +
                                " : " + text(tiles_.panel())
                          : "") +
          (next_rows_ > 0 ? ", next + (m - top + j / " + text(tiles_.panel()) + " * " +
                                text(next_rows_) + ") * " + text(left.stride) + ");"
                          : ");"));
    };
    if (tiles_.tall_strips == tiles_.strips) {
      print("bottom", tiles_.strip_rows);
    } else {
      if (strips != Strips::kLow)
        print("(bottom < " + tall_rows + " ? bottom : " + tall_rows + ")", tiles_.strip_rows);
      if (strips != Strips::kTall) print("bottom", tiles_.low_rows);
    }
    close_batches(batches == Batches::kLast ? "batches - (batches - batch) % 2" : "batch",
                  two ? 2 : 1);
  }

  // For strips of so many rows, if there are any up to `end`.
  void print_configuration(const std::string& end, int64_t rows) {
    const std::string pairs = size_.factors % kTilePairs == 0 ? text(kTilePairs) : "pairs";
    const std::string wanted = text(rows) + " * " + text(kTilePairs) + " + " + pairs;
    const std::string some = tiles_.tall_strips == tiles_.strips ? "" : "m < " + end + " && ";
    out().open("if (" + some + "tiles != " + wanted + ") {");
    out().line("tiles = " + wanted + ";");
    const std::string configure =
        are_in_twos() ? prelude_.configure_tiles_of_two() : prelude_.configure_tiles();
    out().line(configure + "(" + text(rows) + ", " + pairs + ");");
    out().close();
  }

  // Columns lie apart where they are stored. A vector of them after the other is stored for all
  // rows then: the few lines that it writes to stay in the first level cache until they are full.
  bool stores_across() const {
    return std::any_of(kernel_.stores.begin(), kernel_.stores.end(), [&](const KernelStore& store) {
      const auto linear = linear_in(store.offset, variable(columns_loop_));
      return linear && linear->stride.is_constant() && linear->stride.constant() > 1;
    });
  }

  // ... and rows are neighbours, of all that is stored and read: squares of the block are turned,
  // and what is stored then lies along the rows.
  bool stores_along_rows() {
    if (!stores_across()) return false;
    const auto is_along = [&](Index offset) {
      return analysis_.walk(offset, rows_loop_) == KernelAnalysis::Walk::kContiguous;
    };
    bool are_along = true;
    for (const KernelStore& store : kernel_.stores)
      are_along = are_along && store.runtime_indices.empty() && is_along(store.offset);
    visit_postorder(analysis_.outer_roots(), [&](Expr e) {
      if (e.op() == ExprOp::kMasked) are_along = false;
      if (e.op() != ExprOp::kLoad || (analysis_.depends(e) >> rows_loop_ & 1) == 0) return;
      are_along = are_along && e.operands().empty() && is_along(e.coordinates()[0]);
    });
    return are_along;
  }
  bool has_whole_strips() const {
    const int64_t lanes = tiles_.lanes;
    return size_.rows % lanes == 0 && tiles_.strip_rows % lanes == 0 &&
           (tiles_.tall_strips == tiles_.strips || tiles_.low_rows % lanes == 0);
  }

  void print_turned_stores() {
    const std::string lanes = text(tiles_.lanes);
    const std::string column = name_of(columns_loop_);
    const std::string vector = prelude_.type(DType::kFloat32, tiles_.lanes);
    out().line("const i64 end = first + columns;");
    out().open("for (i64 part = first; part < end; part += " + lanes + ") {");
    out().line("const i64 last_of_part = part + " + lanes + " < end ? part + " + lanes + " : end;");
    out().open("for (i64 u = top; u < bottom; u += " + lanes + ") {");
    out().line("const i64 to = u + " + lanes + " < bottom ? u + " + lanes + " : bottom;");
    out().line(vector + " tile[" + lanes + "];");
    out().line("for (int i = 0; i < " + lanes +
               "; ++i) tile[i] = " + prelude_.load(DType::kFloat32, tiles_.lanes) +
               "(block + (u - top + i) * " + text(block_width()) + " + part - first);");
    out().line(prelude_.transpose(DType::kFloat32, tiles_.lanes) + "(tile);");
    body_.push_scope(columns_loop_, column);
    body_.set_accumulator_array(0, "((f32*)(tile + (" + column + " - part)))", rows_loop_, "u");
    out().line("i64 v = u;");
    store_vectors(body_, analysis_, rows_loop_, tiles_.lanes,
                  has_whole_strips() ? tiles_.lanes : 1);
    body_.pop_scope("for (i64 " + column + " = part; " + column + " < last_of_part; ++" + column +
                    ")");
    out().close();
    out().close();
  }

  // What is stored, of a row after the other. A product that has gone to its place already lacks
  // what is no whole panel.
  void print_stores() {
    if (result_ && size_.columns % tiles_.panel() == 0) return;
    if (turns_block_) {
      print_turned_stores();
      return;
    }
    const std::string from =
        result_ ? "first + columns / " + text(tiles_.panel()) + " * " + text(tiles_.panel())
                : "first";
    out().line("const i64 from = " + from + ";");
    const bool across = stores_across();
    const std::string lanes = text(tiles_.lanes);
    if (across) {
      out().line("const i64 end = first + columns;");
      out().open("for (i64 part = from; part < end; part += " + lanes + ") {");
      out().line("const i64 to = part + " + lanes + " < end ? part + " + lanes + " : end;");
    } else {
      out().line("const i64 to = first + columns;");
    }
    open_batches();
    body_.push_scope(rows_loop_, name_of(rows_loop_));
    body_.set_accumulator_array(
        0, "(" + block() + " + (" + name_of(rows_loop_) + " - top) * " + text(block_width()) + ")",
        columns_loop_, "from");
    out().line(across ? "i64 v = part;" : "i64 v = from;");
    store_vectors(body_, analysis_, columns_loop_, tiles_.lanes, size_.columns);
    body_.pop_scope("for (i64 " + name_of(rows_loop_) + " = top; " + name_of(rows_loop_) +
                    " < bottom; ++" + name_of(rows_loop_) + ")");
    close_batches();
    if (across) out().close();
  }

  const Kernel& kernel_;
  const MatrixProduct product_;
  Prelude& prelude_;
  KernelAnalysis analysis_;
  KernelArguments arguments_;
  CppBody body_;
  const size_t columns_loop_;
  const size_t rows_loop_;
  const Layout left_;
  const bool in_panels_;  // the right operand lies in them; right_ says nothing
  const Layout right_;
  const bool pairs_;  // a factor of size_ and tiles_ is two of the operands'
  const ProductSize size_;
  const ProductTiles tiles_;
  std::optional<Layout> result_;
  bool shares_right_ = false;  // all batches do
  int64_t together_ = 1;       // batches of an item
  int64_t rows_ahead_ = 0;     // of the right operand
  int64_t next_rows_ = 0;      // of a strip
  bool brings_source_ = false;
  bool merges_parts_ = false;
  bool turns_block_ = false;
};

}  // namespace

std::optional<MatrixProduct> cpp_product(const Kernel& kernel, const PreludeTarget& target) {
  const std::optional<MatrixProduct> product = matrix_product(kernel);
  if (!product || product->left.dtype() != product->dtype ||
      product->right.dtype() != product->dtype)
    return std::nullopt;
  const auto is_sized = [](const KernelLoop& loop) {
    return loop.extent.is_constant() && loop.extent.constant() > 0;
  };
  if (!std::all_of(kernel.outer.begin(), kernel.outer.end(), is_sized) ||
      !std::all_of(kernel.inner.begin(), kernel.inner.end(), is_sized))
    return std::nullopt;
  int64_t factors = 1;
  for (const KernelLoop& loop : kernel.inner) factors *= loop.extent.constant();
  if (factors > kMostProductFactors) return std::nullopt;
  const auto last = kernel.outer.end();
  const Index k = kernel.inner.back().variable;
  const auto left = layout_of(product->left.coordinates()[0], last[-2].variable, k);
  if (left && has_neighbours(*left) && is_packed(kernel, *product, target)) return product;
  const auto right = layout_of(product->right.coordinates()[0], last[-1].variable, k);
  if (!left || !right || !has_neighbours(*left) || !has_neighbours(*right)) return std::nullopt;
  return product;
}

CppKernel print_cpp_product(const Program& program, const Kernel& kernel,
                            const MatrixProduct& product, Prelude& prelude,
                            const PreludeTarget& target) {
  return ProductPrinter(program, kernel, product, prelude, target).print();
}

}  // namespace litz
