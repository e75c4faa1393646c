#include "codegen/triton/triton_product.h"

#include <algorithm>

#include "codegen/common/iteration_space.h"
#include "codegen/triton/tile_plan.h"
#include "codegen/triton/triton_body.h"
#include "support/error.h"

namespace litz {
namespace {

constexpr int64_t kGroup = 8;  // rows of tiles that are gone through together
constexpr int64_t kLeastExtent = 16;
constexpr int64_t kMostShort = int64_t{1} << 30;
constexpr int64_t kMostTiles = int64_t{1} << 30;

std::string text(int64_t value) { return std::to_string(value); }

std::string list(const std::vector<std::string>& items) {
  std::string all;
  for (const std::string& item : items) all += (all.empty() ? "" : ", ") + item;
  return "[" + all + "]";
}

// `side`: 0 of the left operand, 1 of the right one.
size_t loop_of(const Kernel& kernel, size_t side) { return kernel.outer.size() - 2 + side; }

std::optional<OperandLayout> layout_of(const Kernel& kernel, Expr load, size_t side) {
  std::vector<Index> batches;
  for (size_t loop = 0; loop + 2 < kernel.outer.size(); ++loop)
    batches.push_back(kernel.outer[loop].variable);
  return operand_layout(load.coordinates()[0], batches,
                        kernel.outer[loop_of(kernel, side)].variable, kernel.inner[0].variable);
}

bool is_printable(const Kernel& kernel, const std::vector<bool>& unaligned, Expr load,
                  size_t side) {
  const std::optional<OperandLayout> layout = layout_of(kernel, load, side);
  return layout && has_tiles(*layout, size_of(load.dtype())) && !unaligned[load.buffer().value];
}

// Positions in the result are no more than offsets in what is stored.
bool has_short_offsets(KernelAnalysis& analysis, const Program& program) {
  bool narrow = true;
  for_each_access(analysis, program, [&](Index offset, int64_t, bool) {
    narrow = narrow && offset.range().lo >= 0 && offset.range().hi < kMostShort;
  });
  return narrow;
}

class ProductPrinter {
 public:
  ProductPrinter(const Plan& plan, const Kernel& kernel, const MatrixProduct& product,
                 const ProductTile& tile, const TritonDevice& device, TritonPrelude& prelude)
      : kernel_(kernel),
        product_(product),
        tile_(tile),
        device_(device),
        analysis_(kernel),
        arguments_(*plan.program),
        narrow_(has_short_offsets(analysis_, *plan.program)),
        body_(analysis_, prelude, arguments_, narrow_),
        context_(plan.program->indices()),
        rows_(extent(kernel.outer[loop_of(kernel, 0)])),
        columns_(extent(kernel.outer[loop_of(kernel, 1)])),
        factors_(extent(kernel.inner[0])) {
    for (size_t loop = 0; loop + 2 < kernel.outer.size(); ++loop)
      batches_ *= extent(kernel.outer[loop]);
    for (const KernelStore& s : kernel.stores) stores_.push_back(&s);
    // Arguments are in the order of the kernel, whatever the tile.
    for (Expr load : {product.left, product.right}) arguments_.pointer(load.buffer());
    visit_postorder(analysis_.all_roots(), [&](Expr e) {
      if (e.op() == ExprOp::kLoad) arguments_.pointer(e.buffer());
    });
    for (const KernelStore& s : kernel.stores) arguments_.pointer(s.buffer);
  }

  TritonKernel print() {
    TritonKernel printed;
    const Index programs = print_tiles();
    printed.functions.push_back({"", programs, 1, tile_.warps, tile_.stages});
    std::vector<std::string> bodies = {body_.take_text()};
    if (tile_.splits > 1) {
      printed.partials.push_back({DType::kFloat32, tile_.splits * elements()});
      printed.functions.push_back({"_finish", print_finish(), 1, 4});
      bodies.push_back(body_.take_text());
    }
    printed.checks = body_.checks();
    printed.buffers = arguments_.buffers();
    printed.symbols = arguments_.symbols();
    printed.tile = to_string(tile_);
    for (size_t i = 0; i < bodies.size(); ++i) {
      printed.text += i == 0 ? "" : "\n\n";
      printed.text += triton_header(printed, printed.functions[i], narrow_) + bodies[i];
    }
    return printed;
  }

 private:
  static int64_t extent(const KernelLoop& loop) { return loop.extent.constant(); }
  static int64_t tiles(int64_t size, int64_t block) { return (size + block - 1) / block; }
  int64_t elements() const { return batches_ * rows_ * columns_; }
  IndentedBuffer& out() { return body_.out(); }
  std::string wide(const std::string& position) const {
    return position + (narrow_ ? "" : ".to(tl.int64)");
  }

  bool all_stores_are_halves() const {
    return std::all_of(stores_.begin(), stores_.end(), [&](const KernelStore* s) {
      return is_half(arguments_.program().buffer(s->buffer).dtype);
    });
  }

  void store_all(TileAxes axes) {
    body_.set_near_functions(all_stores_are_halves());
    body_.store(stores_, axes, false);
  }

  // ---- the product ----

  Index print_tiles() {
    const int64_t down = tiles(rows_, tile_.rows);
    const int64_t across = tiles(columns_, tile_.columns);
    const int64_t each = down * across;
    const int64_t all = each * batches_ * tile_.splits;
    describe("left", 0);
    describe("right", 1);

    body_.open_loop();
    std::string place = "tile";
    if (all > each) {
      out().line("place = tile % " + text(each));
      place = "place";
    }
    const std::string in_group = text(kGroup * across);
    out().line("first = " + place + " // " + in_group + " * " + text(kGroup));
    out().line("height = tl.minimum(" + text(down) + " - first, " + text(kGroup) + ")");
    out().line("row = (first + " + place + " % " + in_group + " % height) * " + text(tile_.rows));
    out().line("column = " + place + " % " + in_group + " // height * " + text(tile_.columns));
    std::string matrix = "tile // " + text(each);
    const int64_t stretch = stretch_of(factors_, tile_.splits, tile_.factors);
    std::string step = "step";
    if (tile_.splits > 1) {
      out().line("part = " + matrix + " % " + text(tile_.splits));
      out().line("start = part * " + text(stretch));
      step = "start + step";
      matrix = "tile // " + text(each * tile_.splits);
    }
    open_matrices(matrix);
    out().line("acc0 = tl.full([" + text(tile_.rows) + ", " + text(tile_.columns) +
               "], 0.0, tl.float32)");
    body_.open_loop();
    out().line("acc0 = tl.dot(" + loaded("left", 0, "row", step) + ", " +
               loaded("right", 1, "column", step) + ", acc0)");
    body_.close_loop("for step in range(0, " + text(tile_.splits > 1 ? stretch : factors_) + ", " +
                     text(tile_.factors) + ")");
    open_axis(kRows, "y", "row", tile_.rows, rows_);
    open_axis(kColumns, "x", "column", tile_.columns, columns_);
    if (tile_.splits > 1) {
      store_part();
    } else {
      body_.bind(loop_of(kernel_, 0), {"y", kRows, ""});
      body_.bind(loop_of(kernel_, 1), {"x", kColumns, ""});
      body_.bind_iteration();
      body_.define_reduced(0, {"acc0", kRows | kColumns, ""});
      store_all(kRows | kColumns);
    }
    const int64_t programs = std::min(resident_programs(tile_, device_), all);
    body_.close_loop("for tile in tl.range(tl.program_id(0), " + text(all) + ", " + text(programs) +
                     ", flatten=True)");
    return context_.constant(programs);
  }

  // Binds the loops over batches at the flat number `matrix`, the last one fastest. Their names are
  // positions in descriptors, too, which are 32 bits.
  void open_matrices(const std::string& matrix) {
    const size_t count = kernel_.outer.size() - 2;
    if (count == 0) return;
    out().line("matrix = " + matrix);
    std::string rest = "matrix";
    for (size_t loop = count; loop-- > 0;) {
      const std::string length = text(extent(kernel_.outer[loop]));
      out().line(batch(loop) + " = " + rest + (loop > 0 ? " % " + length : ""));
      if (loop > 0) rest = body_.define(rest + " // " + length, kNoAxes, "rest").text;
      body_.bind(loop, {wide(batch(loop)), kNoAxes, ""});
    }
  }
  static std::string batch(size_t loop) { return "batch" + text(static_cast<int64_t>(loop)); }

  Expr operand(size_t side) const { return side == 0 ? product_.left : product_.right; }
  OperandLayout layout(size_t side) const { return *layout_of(kernel_, operand(side), side); }

  // Declares the descriptor of an operand.
  void describe(const std::string& name, size_t side) {
    const OperandLayout m = layout(side);
    std::vector<std::string> sizes;
    std::vector<std::string> strides;
    std::vector<std::string> block;
    for (const OperandLayout::Batch& b : m.batches) {
      sizes.push_back(text(extent(kernel_.outer[b.loop])));
      strides.push_back(text(b.stride));
      block.emplace_back("1");
    }
    const auto add = [&](int64_t size, int64_t stride, int tile) {
      sizes.push_back(text(size));
      strides.push_back(text(stride));
      block.push_back(text(tile));
    };
    const int64_t outer = side == 0 ? rows_ : columns_;
    const int outer_tile = side == 0 ? tile_.rows : tile_.columns;
    if (m.k_stride == 1) {
      add(outer, m.outer_stride, outer_tile);
      add(factors_, 1, tile_.factors);
    } else {
      add(factors_, m.k_stride, tile_.factors);
      add(outer, 1, outer_tile);
    }
    std::string base = arguments_.pointer(operand(side).buffer());
    if (m.offset != 0) base += " + " + text(m.offset);
    out().line(name + " = tl.make_tensor_descriptor(" + base + ", " + list(sizes) + ", " +
               list(strides) + ", " + list(block) + ")");
  }

  // [rows, factors] of the left operand or [factors, columns] of the right one.
  std::string loaded(const std::string& name, size_t side, const std::string& at,
                     const std::string& step) const {
    const OperandLayout m = layout(side);
    const bool along_k = m.k_stride == 1;
    std::vector<std::string> position;
    for (const OperandLayout::Batch& b : m.batches) position.push_back(batch(b.loop));
    position.push_back(along_k ? at : step);
    position.push_back(along_k ? step : at);
    std::string block = name + ".load(" + list(position) + ")";
    if (!m.batches.empty()) {
      const std::string outer = text(side == 0 ? tile_.rows : tile_.columns);
      const std::string k = text(tile_.factors);
      block += ".reshape([" + (along_k ? outer + ", " + k : k + ", " + outer) + "])";
    }
    // Triton's interpreter does not make bfloat16 of integers.
    if (operand(side).dtype() != product_.dtype)
      block += ".to(tl.float32).to(" + triton_type(product_.dtype) + ")";
    return along_k == (side == 0) ? block : block + ".T";
  }

  void open_axis(TileAxes axis, const std::string& name, const std::string& first, int block,
                 int64_t length) {
    const std::string place = axis == kRows ? "[:, None]" : "[None, :]";
    out().line(name + " = " + wide(first) + " + tl.arange(0, " + text(block) + ")" + place);
    std::string mask;
    if (length % block != 0) {
      mask = name + "_mask";
      out().line(mask + " = " + name + " < " + text(length));
    }
    body_.set_axis(axis, block, mask);
  }

  // ---- factors that several programs share ----

  // Element [part, batches..., row, column] of the partial sums.
  void store_part() {
    std::string base = "part";
    if (batches_ > 1) base = "(part * " + text(batches_) + " + matrix)";
    const TileValue mask = body_.mask(kRows | kColumns);
    out().line("tl.store(s0 + ((" + base + " * " + text(rows_) + " + y) * " + text(columns_) +
               " + x), acc0" + (mask.text.empty() ? "" : ", mask=" + mask.text) + ")");
  }

  Index print_finish() {
    const int parts = power_of_two(tile_.splits);
    const int block =
        static_cast<int>(std::clamp<int64_t>(kFinishElements / parts, 1, power_of_two(elements())));
    body_.set_axis(kRows, block, "");
    body_.set_axis(kColumns, parts, "");
    open_axis(kRows, "x", "tl.program_id(0) * " + text(block), block, elements());
    bind_elements();
    open_axis(kColumns, "r", "0", parts, tile_.splits);
    const TileValue mask = body_.mask(kRows | kColumns);
    out().line("acc0 = tl.sum(tl.load(s0 + (r * " + text(elements()) + " + x)" +
               (mask.text.empty() ? "" : ", mask=" + mask.text + ", other=0.0") + "), 1)[:, None]");
    body_.define_reduced(0, {"acc0", kRows, ""});
    store_all(kRows);
    return context_.constant(tiles(elements(), block));
  }

  // Binds all outer loops at the flat position x, the last one fastest.
  void bind_elements() {
    std::string rest = "x";
    for (size_t loop = kernel_.outer.size(); loop-- > 0;) {
      const std::string length = text(extent(kernel_.outer[loop]));
      if (loop == 0) {
        body_.bind(loop, {rest, kRows, ""});
        break;
      }
      body_.bind(loop, body_.define(rest + " % " + length, kRows, "d"));
      rest = body_.define(rest + " // " + length, kRows, "d").text;
    }
    body_.bind_iteration();
  }

  static constexpr int64_t kFinishElements = 4096;  // partial sums that a program adds up

  const Kernel& kernel_;
  const MatrixProduct product_;
  const ProductTile tile_;
  const TritonDevice device_;
  KernelAnalysis analysis_;
  KernelArguments arguments_;
  const bool narrow_;
  TritonBody body_;
  IndexContext& context_;
  const int64_t rows_;
  const int64_t columns_;
  const int64_t factors_;
  int64_t batches_ = 1;
  std::vector<const KernelStore*> stores_;
};

}  // namespace

std::optional<MatrixProduct> product_kernel(const Kernel& kernel,
                                            const std::vector<bool>& unaligned) {
  const std::optional<MatrixProduct> product = matrix_product(kernel);
  if (!product || !is_half(product->dtype) || kernel.inner.size() != 1) return std::nullopt;
  int64_t tiles = 1;
  for (const KernelLoop& loop : kernel.outer) {
    if (!loop.extent.is_constant()) return std::nullopt;
    tiles *= loop.extent.constant();
    if (tiles / kLeastExtent > kMostTiles) return std::nullopt;
  }
  const Index k = kernel.inner[0].extent;
  if (!k.is_constant() || k.constant() < kLeastExtent ||
      kernel.outer.back().extent.constant() < kLeastExtent)
    return std::nullopt;
  if (!is_printable(kernel, unaligned, product->left, 0) ||
      !is_printable(kernel, unaligned, product->right, 1))
    return std::nullopt;
  return product;
}

TritonKernel print_triton_product(const Plan& plan, const Kernel& kernel,
                                  const MatrixProduct& product, const ProductTile& tile,
                                  const TritonDevice& device, TritonPrelude& prelude) {
  return ProductPrinter(plan, kernel, product, tile, device, prelude).print();
}

}  // namespace litz
