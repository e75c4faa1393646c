// Graph to Program: one small function per op, grouped by family in one file each, in one explicit
// table (lowering/table.cpp).
//
// A lowering function reads its arguments from an OpCall, builds operations on the Program through
// it, and sets the results. Where it cannot (a dtype, a mode, a layout it does not know) it returns
// Unsupported with the reason, and the driver of this stage emits an ExternKernel instead, so
// nothing is ever lost; it must decide that before it adds anything to the Program.
//
// Every result gets the dtype, sizes and strides that the graph's metadata (eager) says.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "graph/kernel_candidate.h"
#include "graph/library_fallbacks.h"
#include "ir/program.h"
#include "lowering/tensor_value.h"
#include "support/error.h"

namespace litz {

struct LoweringNote {
  std::string op;  // "aten::sort"
  std::string node;
  std::string stack;  // the user's line
  std::string reason;
};

struct LoweringResult {
  Program program;
  std::vector<LoweringNote>
      fallbacks;  // ops that run as library calls because no lowering took them
  std::vector<KernelCandidate> candidates;
};

// Which attention is a kernel of the dialect's own, where it has them.
enum class AttentionKernels : uint8_t {
  kOff,
  kChosen,  // none but what LoweringOptions::kernel_choices names
  kAuto,    // what the library has slow kernels for, or wants a mask in memory for
  kOn,      // all that can be
};

// Which matrix products are kernels of the dialect's own, where it has them
// (schedule/matrix_product.h).
enum class ProductKernels : uint8_t {
  kOff,
  kAuto,  // of which a model says that they are faster than the library
  kOn,    // all that can be
};

struct LoweringOptions : LibraryFallbacks {
  // Kernels compute random numbers from seeds that the library draws; else the library draws them.
  bool random_in_kernels = true;
  ProductKernels matrix_products = ProductKernels::kOff;
  // On a CPU: of these too, where that pays.
  bool float16_products = false;
  bool bfloat16_products = false;
  // On a CPU: kernels convolve tensors of bfloat16, and a matrix unit multiplies for them.
  bool bfloat16_convolutions = false;
  bool bfloat16_tiles = false;
  // By KernelCandidate::key: whether they are kernels, whatever the model says.
  std::map<std::string, bool> kernel_choices;
  AttentionKernels attention = AttentionKernels::kOff;      // on a GPU
  AttentionKernels cpu_attention = AttentionKernels::kOff;  // on a CPU, of float32
  AttentionKernels cpu_float16_attention = AttentionKernels::kOff;
  AttentionKernels cpu_bfloat16_attention = AttentionKernels::kOff;
};

// Throws UserError on a graph that cannot run at all (an input of a layout that no op accepts is
// not such a case: it falls back).
LoweringResult lower_graph(const Graph& graph, const LoweringOptions& options);

// The state of one lowering: the program so far and what every graph value became.
class LoweringContext;

// One call being lowered. Accessors throw InternalError where the argument is not of the asked
// kind: the schema promised it.
class OpCall {
 public:
  OpCall(LoweringContext& context, NodeId id);

  const Graph& graph() const;
  const Node& node() const;
  NodeId id() const { return id_; }
  Program& program() const;
  IndexContext& indices() const;
  ExprContext& exprs() const;

  // ---- arguments, by schema name ----
  const Argument& argument(std::string_view name) const;
  bool is_none(std::string_view name) const;
  bool is_tensor(std::string_view name) const;             // else None, a number, a list, ...
  const std::string& device(std::string_view name) const;  // of a tensor
  const TensorValue& tensor(std::string_view name) const;
  std::optional<TensorValue> optional_tensor(std::string_view name) const;
  std::vector<std::optional<TensorValue>> tensor_list(
      std::string_view name) const;  // Tensor[] and Tensor?[]
  int64_t integer(std::string_view name)
      const;  // a constant int; Unsupported is the caller's choice for symbols
  Index index(std::string_view name) const;  // int or SymInt
  std::vector<Index> index_list(std::string_view name) const;
  std::vector<int64_t> integer_list(std::string_view name) const;
  bool boolean(std::string_view name) const;
  std::string_view string(std::string_view name) const;
  std::optional<DType> dtype(std::string_view name) const;
  Argument scalar(std::string_view name) const;  // int64, double, bool or Index

  // ---- results ----
  const TensorMeta& result(size_t output = 0) const;  // eager's metadata
  size_t num_results() const;
  void set(size_t output, TensorValue value);
  void set_index(size_t output, Index value);

  // ---- building ----
  // Element of a value at a position (one Index per dimension), in the value's own dtype.
  Expr load(const TensorValue& value, std::span<const Index> position);
  // The same with runtime positions: position may contain i0, i1, ... standing for
  // `runtime_indices`.
  Expr load(const TensorValue& value, std::span<const Index> position,
            std::span<const Expr> runtime_indices);
  // Element at a position of the broadcast result: dimensions aligned at the end, size-1 dimensions
  // repeated.
  Expr load_broadcast(const TensorValue& value, std::span<const Index> position);
  // A scalar argument as a constant of the dtype (an Index becomes an index value, cast).
  Expr scalar_expr(const Argument& scalar, DType dtype);

  using Body = std::function<Expr(std::span<const Index> position)>;
  // A new buffer with the result's dtype, sizes and strides, written by a Pointwise; returns it as
  // a value.
  TensorValue pointwise(const TensorMeta& meta, const Body& body);
  // A temporary of these sizes, contiguous.
  TensorValue pointwise(DType dtype, std::span<const Index> sizes, const Body& body);
  // Reduces `dims` (normalised, sorted) of a space of `sizes`; body gives the element at a position
  // of the whole space; the result keeps the dimensions (as size 1) or drops them. Its dtype is the
  // body's (int64 for arg reductions). Contiguous.
  TensorValue reduce(ReductionKind kind, std::span<const Index> sizes, std::span<const size_t> dims,
                     bool keep_dims, const Body& body);

  // Writes all elements of an input that the graph mutates and sets result 0 to it. Values that
  // look into the input have the new elements from here on. Refuses where `target` is not the whole
  // of an input.
  std::optional<Unsupported> overwrite_input(const TensorValue& target, const Body& body);
  // Running sums or products along dimension `axis` of a space of `sizes`; dtype of the body.
  // Contiguous.
  TensorValue scan(ScanKind kind, std::span<const Index> sizes, size_t axis, const Body& body);
  // One store of a scatter: the element of the target, where i0, i1, ... stand for
  // `runtime_indices`, and the value that is stored or combined there.
  struct Store {
    std::vector<Index> target;
    std::vector<Expr> runtime_indices;
    Expr value;
  };
  // A new buffer like pointwise() of `initial`, into which `store` at every position of a space of
  // `sizes`, in row-major order, then stores.
  TensorValue scatter(const TensorMeta& meta, const Body& initial, StoreMode mode,
                      std::span<const Index> sizes,
                      const std::function<Store(std::span<const Index> position)>& store);

  // ---- random numbers ----
  bool draws_in_kernels() const;  // LoweringOptions::random_in_kernels
  // An int64 that PyTorch's generator of the device draws anew in each run, another one for each
  // call of this function: a seed for kPhilox32 and kPhilox64.
  Expr draw_seed(const std::string& device);

  // ---- views ----
  // A view with other sizes: `map` gives the position in `base` for a position in the view. It is
  // strided where the positions are provably so in memory, whatever eager does.
  TensorValue view(const TensorValue& base, std::span<const Index> sizes,
                   const std::function<std::vector<Index>(std::span<const Index> position)>& map);
  // A whole buffer as a value.
  TensorValue whole(BufferId buffer) const;
  // Whether the value lies in memory with the strides that eager's result has.
  bool has_strides(const TensorValue& value, const TensorMeta& meta) const;
  // In eager's terms, where the storage that a buffer stands for has the buffer's first element.
  Index storage_offset(BufferId buffer) const;

 private:
  LoweringContext& context_;
  NodeId id_;
};

// Takes the call and either sets all results or says why it cannot.
using LoweringFunction = std::optional<Unsupported> (*)(OpCall& call);

struct LoweringRow {
  std::string_view op;  // "aten::add.Tensor"
  LoweringFunction function;
};

// The table, one span per family, in the order of the files.
std::span<const LoweringRow> pointwise_lowerings();
std::span<const LoweringRow> view_lowerings();
std::span<const LoweringRow> creation_lowerings();
std::span<const LoweringRow> join_lowerings();  // cat, stack, pad, repeat, flip
std::span<const LoweringRow> reduction_lowerings();
std::span<const LoweringRow>
normalization_lowerings();  // softmax, layer_norm, batch_norm, ... and backward
std::span<const LoweringRow> activation_lowerings();  // gelu, silu, ... and backward
std::span<const LoweringRow> indexing_lowerings();  // embedding, gather, index, scatter, index_put
std::span<const LoweringRow> pooling_lowerings();   // pools, upsampling and backward
std::span<const LoweringRow> random_lowerings();    // distributions, dropout
std::span<const LoweringRow>
library_lowerings();  // mm, convolution, attention: library calls on purpose
struct LoweringFamily {
  std::string_view name;
  std::span<const LoweringRow> rows;
};
std::vector<LoweringFamily> lowering_families();
// nullptr where Litz has no lowering for the op.
LoweringFunction find_lowering(std::string_view op);
// Whether the row says that the library is the intended implementation.
bool is_library_lowering(const LoweringRow& row);

}  // namespace litz
