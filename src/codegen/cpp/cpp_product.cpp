#include "codegen/cpp/cpp_product.h"

#include <algorithm>
#include <cmath>

#include "codegen/cpp/cpp_body.h"
#include "codegen/cpp/cpp_function.h"
#include "codegen/cpp/product_tiles.h"

namespace litz {
namespace {

constexpr double kTaskNanoseconds = 6000;  // least work worth handing to a thread
constexpr int kLongWork = 24;  // operations behind a product that are printed once for all columns

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

class ProductPrinter {
 public:
  ProductPrinter(const Program& program, const Kernel& kernel, const MatrixProduct& product,
                 Prelude& prelude, int vector_bytes)
      : kernel_(kernel),
        product_(product),
        prelude_(prelude),
        analysis_(kernel),
        arguments_(program),
        body_(analysis_, prelude, arguments_),
        columns_loop_(kernel.outer.size() - 1),
        rows_loop_(columns_loop_ - 1),
        left_(*layout_of(product.left.coordinates()[0], variable(rows_loop_), factor())),
        right_(*layout_of(product.right.coordinates()[0], variable(columns_loop_), factor())),
        size_(size_of_product()),
        tiles_(plan_product_tiles(size_, vector_bytes)) {
    for (DType dtype : {DType::kInt32, DType::kInt64, DType::kUInt8}) prelude_.type(dtype, 1);
    if (tiles_.form != Form::kDots) result_ = plain_result();
  }

  CppKernel print() {
    body_.push_scope(CppBody::kNoLoop, "");
    declare_arrays();
    body_.push_iteration_scope();
    print_places();
    for (size_t i = 0; i < rows_loop_; ++i) body_.push_scope(i, name_of(i));
    if (tiles_.form == Form::kPacked) print_panels();
    print_tiles();
    print_stores();
    for (size_t i = 0; i < rows_loop_; ++i) body_.pop_scope("");
    body_.pop_scope("for (i64 it = begin; it < end; ++it)");

    CppFunction function;
    function.body = body_.take_text();
    function.total = text(size_.batches * column_blocks(size_, tiles_) * tiles_.row_blocks());
    function.grain = text(static_cast<int64_t>(
        std::ceil(kTaskNanoseconds / std::max(1.0, item_nanoseconds(size_, tiles_)))));
    return print_cpp_function(arguments_, function);
  }

 private:
  using Form = ProductTiles::Form;

  Index variable(size_t loop) const { return analysis_.variable(loop); }
  Index factor() const { return variable(columns_loop_ + 1); }
  int64_t extent(size_t loop) const { return analysis_.extent(loop).constant(); }
  static std::string name_of(size_t loop) { return "d" + text(static_cast<int64_t>(loop)); }
  IndentedBuffer& out() { return body_.out(); }

  ProductSize size_of_product() const {
    ProductSize size;
    for (size_t i = 0; i < rows_loop_; ++i) size.batches *= extent(i);
    size.rows = extent(rows_loop_);
    size.columns = extent(columns_loop_);
    size.factors = extent(columns_loop_ + 1);
    if (product_.right.dtype() == DType::kFloat32) {
      size.has_rows = right_.outer_stride == 1;
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

  bool widens_left() const { return is_half(product_.left.dtype()); }
  int64_t block_width() const { return result_ ? tiles_.panel() : tiles_.block_columns; }

  void declare_arrays() {
    const auto declare = [&](const std::string& name, int64_t elements) {
      out().line("alignas(64) f32 " + name + "[" + text(elements) + "];");
    };
    if (tiles_.form == Form::kPacked) declare("panels", tiles_.block_columns * size_.factors);
    if (!result_ || size_.columns % tiles_.panel() != 0)
      declare("block", tiles_.block_rows() * block_width());
    if (widens_left()) declare("wide", tiles_.block_rows() * tiles_.factors);
    if (tiles_.form == Form::kPacked) out().line("i64 packed = -1;");
  }

  // The block of an item: rows from `top` to `bottom`, columns from `first`, so many `columns`.
  void print_places() {
    const std::string across = text(column_blocks(size_, tiles_));
    const std::string down = text(tiles_.row_blocks());
    const std::string width = text(tiles_.block_columns);
    out().line("const i64 of_columns = it / " + down + ";");
    out().line("const i64 first = of_columns % " + across + " * " + width + ";");
    out().line("const i64 columns = " + text(size_.columns) + " - first < " + width + " ? " +
               text(size_.columns) + " - first : " + width + ";");
    std::string rest = "of_columns / " + across;
    for (size_t i = rows_loop_; i-- > 0;) {
      const std::string e = text(extent(i));
      out().line("const i64 " + name_of(i) + " = " + (i == 0 ? rest : rest + " % " + e) + ";");
      rest += " / " + e;
    }
    // Strips of full height come first.
    const std::string strips = text(tiles_.strips);
    const auto row = [&](const std::string& strip) {
      const std::string rows = strip + " * " + text(tiles_.strip_rows);
      if (tiles_.tall_strips == tiles_.strips) return rows;
      const std::string tall = text(tiles_.tall_strips);
      return rows + " - (" + strip + " > " + tall + " ? " + strip + " - " + tall + " : 0)";
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
    const DType memory = product_.right.dtype();
    const bool by_rows = right_.outer_stride == 1;
    const std::string pack = by_rows ? prelude_.pack_rows(memory, tiles_.vectors)
                                     : prelude_.pack_columns(memory, tiles_.vectors);
    const std::string base = body_.index(right_.base);
    const std::string stride = text(by_rows ? right_.k_stride : right_.outer_stride);
    out().open("if (packed != of_columns) {");
    out().line("packed = of_columns;");
    out().line(
        pack + "(" +
        pointer(product_.right.buffer(), memory, base + " + first * " + text(right_.outer_stride)) +
        ", " + stride + ", " + text(size_.factors) + ", columns, panels);");
    out().close();
  }

  // Where the left operand's rows are read for the tiles of a step.
  struct LeftRows {
    std::string at_row_m;
    bool rows_apart = false;  // by the stride; else the factors are
    int64_t stride = 0;
  };

  LeftRows print_left() {
    const DType memory = product_.left.dtype();
    const std::string base = body_.index(left_.base);
    const auto place = [&](const std::string& row) {
      return pointer(
          product_.left.buffer(), memory,
          base + " + " + row + " * " + text(left_.outer_stride) + " + k * " + text(left_.k_stride));
    };
    const bool by_rows = left_.k_stride == 1;
    if (!widens_left()) return {place("m"), by_rows, by_rows ? left_.outer_stride : left_.k_stride};
    const int64_t width = by_rows ? tiles_.factors : tiles_.block_rows();
    out().line(prelude_.widen_rows(memory) + "(" + place("top") + ", " +
               text(by_rows ? left_.outer_stride : left_.k_stride) + ", " +
               (by_rows ? "bottom - top, steps" : "steps, bottom - top") + ", wide, " +
               text(width) + ");");
    if (by_rows) return {"wide + (m - top) * " + text(width), true, width};
    return {"wide + (m - top)", false, width};
  }

  // The right operand for the columns from `first + j` and the factors from k.
  std::string right_place() {
    if (tiles_.form == Form::kPacked)
      return "panels + j * " + text(size_.factors) + " + k * " + text(tiles_.panel());
    return pointer(product_.right.buffer(), DType::kFloat32,
                   body_.index(right_.base) + " + (first + j) * " + text(right_.outer_stride) +
                       " + k * " + text(right_.k_stride));
  }

  std::string tile(int64_t rows, int64_t columns, const LeftRows& left) {
    if (tiles_.form == Form::kDots) return prelude_.dot_tile(rows, columns);
    return prelude_.product_tile(rows, tiles_.vectors, left.rows_apart);
  }

  int64_t right_stride() const {
    if (tiles_.form == Form::kPacked) return tiles_.panel();
    return tiles_.form == Form::kDots ? right_.outer_stride : right_.k_stride;
  }

  void print_tiles() {
    const std::string factors = text(size_.factors);
    const std::string step = text(tiles_.factors);
    const std::string panel = text(tiles_.panel());
    const int64_t rest = size_.columns % tiles_.panel();
    out().open("for (i64 k = 0; k < " + factors + "; k += " + step + ") {");
    out().line("const i64 steps = " + factors + " - k < " + step + " ? " + factors +
               " - k : " + step + ";");
    const LeftRows left = print_left();
    out().line("i64 j = 0;");
    const std::string result = result_ ? result_place() : "block + j";
    const std::string width = text(result_ ? result_->outer_stride : block_width());
    out().open("for (; j + " + panel + " <= columns; j += " + panel + ") {");
    print_strips(left, tiles_.panel(), result, width);
    out().close();
    if (rest != 0) {
      // A panel has zeros behind the last column.
      out().open("if (j < columns) {");
      print_strips(left, rest, result_ ? "block" : "block + j", text(block_width()));
      out().close();
    }
    out().close();
  }

  std::string result_place() {
    return "((f32*)" + arguments_.pointer(kernel_.stores[0].buffer) + " + " +
           body_.index(result_->base) + " + top * " + text(result_->outer_stride) + " + first + j)";
  }

  void print_strips(const LeftRows& left, int64_t columns, const std::string& to,
                    const std::string& width) {
    out().line("const f32* const right = " + right_place() + ";");
    out().line("f32* const to = " + to + ";");
    out().line("i64 m = top;");
    const auto print = [&](const std::string& end, int64_t rows) {
      out().line("for (; m < " + end + "; m += " + text(rows) + ") " + tile(rows, columns, left) +
                 "(" + left.at_row_m + ", " + text(left.stride) + ", right, " +
                 text(right_stride()) + ", steps, to + (m - top) * " + width + ", " + width +
                 ", k != 0);");
    };
    if (tiles_.tall_strips == tiles_.strips) {
      print("bottom", tiles_.strip_rows);
      return;
    }
    const std::string tall = text(tiles_.tall_strips * tiles_.strip_rows);
    print("(bottom < " + tall + " ? bottom : " + tall + ")", tiles_.strip_rows);
    print("bottom", tiles_.strip_rows - 1);
  }

  // What is stored, of a row after the other. A product that has gone to its place already lacks
  // what is no whole panel.
  void print_stores() {
    if (result_ && size_.columns % tiles_.panel() == 0) return;
    const std::string from =
        result_ ? "first + columns / " + text(tiles_.panel()) + " * " + text(tiles_.panel())
                : "first";
    out().line("const i64 from = " + from + ";");
    out().line("const i64 to = first + columns;");
    body_.push_scope(rows_loop_, name_of(rows_loop_));
    body_.set_accumulator_array(
        0, "(block + (" + name_of(rows_loop_) + " - top) * " + text(block_width()) + ")",
        columns_loop_, "from");
    out().line("i64 v = from;");
    const std::string lanes = text(tiles_.lanes);
    const auto print = [&](const std::string& valid, const std::string& header) {
      body_.push_vector_scope(columns_loop_, "v", tiles_.lanes, valid);
      body_.store_outer();
      body_.pop_scope(header);
    };
    if (size_.columns % tiles_.lanes == 0) {
      print("", "for (; v < to; v += " + lanes + ")");
    } else if (analysis_.work(analysis_.outer_roots(), LoopMask{1} << columns_loop_).operations >=
               kLongWork) {
      body_.push_scope(CppBody::kNoLoop, "");
      out().line("const i64 valid = to - v < " + lanes + " ? to - v : " + lanes + ";");
      print("valid", "");
      body_.pop_scope("for (; v < to; v += " + lanes + ")");
    } else {
      print("", "for (; v + " + lanes + " <= to; v += " + lanes + ")");
      print("(to - v)", "if (v < to)");
    }
    body_.pop_scope("for (i64 " + name_of(rows_loop_) + " = top; " + name_of(rows_loop_) +
                    " < bottom; ++" + name_of(rows_loop_) + ")");
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
  const Layout right_;
  const ProductSize size_;
  const ProductTiles tiles_;
  std::optional<Layout> result_;
};

}  // namespace

std::optional<MatrixProduct> cpp_product(const Kernel& kernel) {
  const std::optional<MatrixProduct> product = matrix_product(kernel);
  if (!product || product->left.dtype() != product->dtype ||
      product->right.dtype() != product->dtype)
    return std::nullopt;
  const auto is_sized = [](const KernelLoop& loop) {
    return loop.extent.is_constant() && loop.extent.constant() > 0;
  };
  if (!std::all_of(kernel.outer.begin(), kernel.outer.end(), is_sized) ||
      !is_sized(kernel.inner[0]) || kernel.inner[0].extent.constant() > kMostProductFactors)
    return std::nullopt;
  const auto last = kernel.outer.end();
  const Index k = kernel.inner[0].variable;
  const auto left = layout_of(product->left.coordinates()[0], last[-2].variable, k);
  const auto right = layout_of(product->right.coordinates()[0], last[-1].variable, k);
  if (!left || !right || !has_neighbours(*left) || !has_neighbours(*right)) return std::nullopt;
  return product;
}

CppKernel print_cpp_product(const Program& program, const Kernel& kernel,
                            const MatrixProduct& product, Prelude& prelude,
                            const PreludeTarget& target) {
  return ProductPrinter(program, kernel, product, prelude, target.vector_bytes).print();
}

}  // namespace litz
