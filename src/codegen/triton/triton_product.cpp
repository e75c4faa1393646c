#include "codegen/triton/triton_product.h"

#include <algorithm>
#include <array>

#include "codegen/common/iteration_space.h"
#include "codegen/cpp/cpp_run.h"
#include "codegen/triton/triton_body.h"
#include "support/error.h"

namespace litz {
namespace {

constexpr int64_t kGroup = 8;       // rows of tiles that are gone through together
constexpr int64_t kVector = 8;      // half floats of 16 bytes
constexpr int64_t kLeastExtent = 16;
constexpr int64_t kSharedBytes = 220 * 1024;  // of a multiprocessor
constexpr int64_t kMostShort = int64_t{1} << 30;

std::string text(int64_t value) { return std::to_string(value); }

// A matrix in memory: element [outer, k] lies at offset + outer_stride * outer + k_stride * k.
struct Layout {
  int64_t offset = 0;
  int64_t outer_stride = 0;
  int64_t k_stride = 0;
};

std::optional<Layout> layout_of(Expr load, Index outer, Index k) {
  const auto by_outer = linear_in(load.coordinates()[0], outer);
  if (!by_outer || !by_outer->stride.is_constant()) return std::nullopt;
  const auto by_k = linear_in(by_outer->rest, k);
  if (!by_k || !by_k->stride.is_constant() || !by_k->rest.is_constant()) return std::nullopt;
  return Layout{by_k->rest.constant(), by_outer->stride.constant(), by_k->stride.constant()};
}

// Descriptors want vectors of 16 bytes.
bool is_printable(const Program& program, Expr load, Index outer, Index k) {
  const std::optional<Layout> layout = layout_of(load, outer, k);
  // Inputs that the graph writes to begin anywhere.
  if (!layout || (program.buffer(load.buffer()).kind == BufferKind::kInput &&
                  unaligned_inputs(program)[load.buffer().value]))
    return false;
  const auto is_whole = [](int64_t elements) { return elements > 0 && elements % kVector == 0; };
  return layout->offset % kVector == 0 &&
         (layout->k_stride == 1 ? is_whole(layout->outer_stride)
                                : layout->outer_stride == 1 && is_whole(layout->k_stride));
}

// Positions in the result are no more than offsets in what is stored.
bool has_short_offsets(KernelAnalysis& analysis, const Program& program) {
  bool narrow = true;
  for_each_access(analysis, program, [&](Index offset, int64_t, bool) {
    narrow = narrow && offset.range().lo >= 0 && offset.range().hi < kMostShort;
  });
  return narrow;
}

// Programs that are at work at once: two of 4 warps on each multiprocessor, if its shared memory
// holds what both load.
int64_t resident_programs(const ProductTile& tile, const TritonDevice& device) {
  const int64_t bytes = int64_t{tile.stages} * tile.factors * (tile.rows + tile.columns) * 2;
  return device.multiprocessors * (tile.warps <= 4 && 2 * bytes <= kSharedBytes ? 2 : 1);
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
        context_(plan.program->indices()) {}

  TritonKernel print() {
    const int64_t rows = extent(kernel_.outer[0]);
    const int64_t columns = extent(kernel_.outer[1]);
    const int64_t factors = extent(kernel_.inner[0]);
    const int64_t down = tiles(rows, tile_.rows);
    const int64_t across = tiles(columns, tile_.columns);
    const std::string left = describe("left", product_.left, 0, tile_.rows);
    const std::string right = describe("right", product_.right, 1, tile_.columns);

    body_.open_loop();
    const std::string in_group = text(kGroup * across);
    out().line("first = tile // " + in_group + " * " + text(kGroup));
    out().line("height = tl.minimum(" + text(down) + " - first, " + text(kGroup) + ")");
    out().line("row = (first + tile % " + in_group + " % height) * " + text(tile_.rows));
    out().line("column = tile % " + in_group + " // height * " + text(tile_.columns));
    out().line("acc0 = tl.full([" + text(tile_.rows) + ", " + text(tile_.columns) +
               "], 0.0, tl.float32)");
    body_.open_loop();
    out().line("acc0 = tl.dot(" + loaded(left, 0, "row") + ", " + loaded(right, 1, "column") +
               ", acc0)");
    body_.close_loop("for step in range(0, " + text(factors) + ", " + text(tile_.factors) + ")");
    open_axis(kRows, "y", "row", tile_.rows, rows);
    open_axis(kColumns, "x", "column", tile_.columns, columns);
    body_.bind(0, {"y", kRows, ""});
    body_.bind(1, {"x", kColumns, ""});
    body_.bind_iteration();
    body_.define_reduced(0, {"acc0", kRows | kColumns, ""});
    std::vector<const KernelStore*> stores;
    for (const KernelStore& s : kernel_.stores) stores.push_back(&s);
    body_.set_near_functions(all_stores_are_halves(stores));
    body_.store(stores, kRows | kColumns, false);
    const int64_t programs = std::min(resident_programs(tile_, device_), down * across);
    body_.close_loop("for tile in tl.range(tl.program_id(0), " + text(down * across) + ", " +
                     text(programs) + ", flatten=True)");

    TritonKernel printed;
    printed.functions.push_back({"", context_.constant(programs), 1, tile_.warps, tile_.stages});
    printed.checks = body_.checks();
    printed.buffers = arguments_.buffers();
    printed.symbols = arguments_.symbols();
    printed.tile = text(tile_.rows) + " by " + text(tile_.columns) + ", " + text(tile_.factors) +
                   " factors, " + text(tile_.stages) + " stages, " + text(tile_.warps) + " warps";
    printed.text = triton_header(printed, printed.functions[0], narrow_) + body_.take_text();
    return printed;
  }

 private:
  bool all_stores_are_halves(const std::vector<const KernelStore*>& stores) const {
    return std::all_of(stores.begin(), stores.end(), [&](const KernelStore* s) {
      return is_half(arguments_.program().buffer(s->buffer).dtype);
    });
  }

  static int64_t extent(const KernelLoop& loop) { return loop.extent.constant(); }
  static int64_t tiles(int64_t size, int64_t block) { return (size + block - 1) / block; }
  IndentedBuffer& out() { return body_.out(); }

  Layout layout(Expr load, size_t side) const {
    return *layout_of(load, kernel_.outer[side].variable, kernel_.inner[0].variable);
  }

  // Declares the descriptor of the operand that varies along outer loop `side`; its name.
  std::string describe(const std::string& name, Expr load, size_t side, int block) {
    const Layout m = layout(load, side);
    const std::string outer = text(extent(kernel_.outer[side]));
    const std::string k = text(extent(kernel_.inner[0]));
    const std::string b = text(block);
    const std::string f = text(tile_.factors);
    std::string base = arguments_.pointer(load.buffer());
    if (m.offset != 0) base += " + " + text(m.offset);
    const bool along_k = m.k_stride == 1;
    out().line(name + " = tl.make_tensor_descriptor(" + base + ", " +
               (along_k ? "[" + outer + ", " + k + "], [" + text(m.outer_stride) + ", 1], [" + b +
                              ", " + f + "]"
                        : "[" + k + ", " + outer + "], [" + text(m.k_stride) + ", 1], [" + f +
                              ", " + b + "]") +
               ")");
    return name;
  }

  // [rows, factors] of the left operand or [factors, columns] of the right one.
  std::string loaded(const std::string& name, size_t side, const std::string& at) const {
    const Layout m = layout(side == 0 ? product_.left : product_.right, side);
    const bool along_k = m.k_stride == 1;
    const std::string block =
        name + ".load(" + (along_k ? "[" + at + ", step]" : "[step, " + at + "]") + ")";
    return along_k == (side == 0) ? block : block + ".T";
  }

  void open_axis(TileAxes axis, const std::string& name, const std::string& first, int block,
                 int64_t length) {
    const std::string place = axis == kRows ? "[:, None]" : "[None, :]";
    out().line(name + " = " + first + (narrow_ ? "" : ".to(tl.int64)") + " + tl.arange(0, " +
               text(block) + ")" + place);
    std::string mask;
    if (length % block != 0) {
      mask = name + "_mask";
      out().line(mask + " = " + name + " < " + text(length));
    }
    body_.set_axis(axis, block, mask);
  }

  const Kernel& kernel_;
  const MatrixProduct product_;
  const ProductTile tile_;
  const TritonDevice device_;
  KernelAnalysis analysis_;
  KernelArguments arguments_;
  const bool narrow_;
  TritonBody body_;
  IndexContext& context_;
};

}  // namespace

ProductTile plan_product(const Kernel& kernel, const TritonDevice& device) {
  ProductTile tile;
  const int64_t rows = kernel.outer[0].extent.constant();
  const int64_t columns = kernel.outer[1].extent.constant();
  // Enough tiles for all multiprocessors.
  if ((rows + 127) / 128 * ((columns + 127) / 128) < device.multiprocessors) {
    tile.rows = 64;
    tile.stages = 4;
  }
  return tile;
}

std::vector<ProductTile> other_product_tiles(const Kernel& kernel, const TritonDevice& device) {
  const ProductTile tile = plan_product(kernel, device);
  constexpr std::array<ProductTile, 6> kTiles = {{{128, 128, 64, 4, 3},
                                                  {128, 256, 64, 8, 3},
                                                  {128, 256, 64, 8, 4},
                                                  {128, 128, 64, 8, 4},
                                                  {64, 128, 64, 4, 4},
                                                  {128, 64, 64, 4, 4}}};
  std::vector<ProductTile> others;
  for (const ProductTile& other : kTiles) {
    if (other != tile) others.push_back(other);
  }
  return others;
}

std::optional<MatrixProduct> product_kernel(const Program& program, const Kernel& kernel) {
  const std::optional<MatrixProduct> product = matrix_product(kernel);
  if (!product) return std::nullopt;
  for (const KernelLoop* loop : {&kernel.outer[0], &kernel.outer[1], &kernel.inner[0]}) {
    if (!loop->extent.is_constant() || loop->extent.constant() < kLeastExtent) return std::nullopt;
  }
  const Index k = kernel.inner[0].variable;
  if (!is_printable(program, product->left, kernel.outer[0].variable, k) ||
      !is_printable(program, product->right, kernel.outer[1].variable, k))
    return std::nullopt;
  return product;
}

TritonKernel print_triton_product(const Plan& plan, const Kernel& kernel, const ProductTile& tile,
                                  const TritonDevice& device, TritonPrelude& prelude) {
  const std::optional<MatrixProduct> product = product_kernel(*plan.program, kernel);
  LITZ_CHECK(product, "a kernel that is no matrix product is printed as one");
  return ProductPrinter(plan, kernel, *product, tile, device, prelude).print();
}

}  // namespace litz
