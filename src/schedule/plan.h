// The plan: which kernels run in which order, and where every buffer lives.
//
// A Kernel is one loop nest over `outer` loops and, inside them, `inner` (reduction) loops:
//
//   for outer...                     (independent iterations, any order, parallel)
//     for stage s = 0, 1, ...        (in order)
//       for inner...                 (independent except for what the reductions accumulate)
//         values of this stage; inner stores of this stage; accumulate reductions of this stage
//     outer stores
//   for inner...                     (where reductions are over the outer loops)
//     stores after the outer loops
//
// A kernel without reductions has no inner loops and one stage. Expressions are over the loop
// variables, size symbols, and kReduced(n), the result of reduction n; an expression that uses
// reduction n of stage s belongs to stage s+1 or later. Every load and store has exactly one
// coordinate: the element offset from the buffer's first element.
//
// A scan is a reduction with `running` set: inside the inner loops of its own stage kReduced(n) is
// the accumulated value up to and including this iteration, and the inner loops run in order, the
// last one fastest.
//
// A kernel with an `attention` (ir/program.h) is of a kind of its own: outer loops are the batch's,
// the query's, unless it is one, and the feature's, the one inner loop is of the keys. Reduction 0
// is the product, over a loop of factors inside that of the keys. The score is over the keys, of
// kReduced(0). Reduction 1 sums up the values, with their weights; stores are outside the inner
// loop and use it. The logarithm of the sum of exponentials is stored once for all features.
//
// A reduction `over_outer` accumulates over the outer loops: it has one result for each inner
// iteration, which the stores `after_outer` alone use. So a kernel of rows sums up columns, too.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "ir/program.h"

namespace litz {

struct KernelTag;
using KernelId = Id<KernelTag>;

struct KernelLoop {
  Index variable;
  Index extent;
};

// A sum not of its values x but of exp(x - m), where m is the greatest x, the result of the
// reduction `greatest` of the same stage. Dialects make these (codegen/common/online_sums.h).
struct OnlineSum {
  uint32_t greatest = 0;
  // Where m is infinite the sum is exp(m), as of exp(x - 0), instead of NaN.
  bool of_finite = false;
};

// A sum not of its values x but of (x - m)^2, where m is the mean of the x, whose sum is the
// reduction `sum` of the same stage. Dialects make these, too.
struct SumOfDeviations {
  uint32_t sum = 0;
};

struct KernelReduction {
  ReductionKind kind = ReductionKind::kSum;
  Expr value;      // one element; its dtype is the accumulator's
  Index position;  // kArgMax, kArgMin: the element's position; ties go to the smallest
  uint32_t stage = 0;
  bool running = false;
  std::optional<OnlineSum> online;
  std::optional<SumOfDeviations> deviations;
  bool over_outer = false;
};

struct KernelStore {
  BufferId buffer;
  Index offset;                       // may name i0, i1, ...
  std::vector<Expr> runtime_indices;  // values of i0, i1, ...
  Expr value;                         // in the buffer's dtype
  StoreMode mode = StoreMode::kStore;
  bool inner =
      false;  // in the inner loop of `stage`; else once per outer iteration, after the last stage
  bool after_outer = false;  // instead, once per inner iteration, after all outer iterations
  uint32_t stage = 0;
};

struct KernelAttention {
  KernelLoop factors;
  BufferId logsumexp;      // no id: it is not wanted
  Index logsumexp_offset;  // over the loops but the feature's
  bool one_query = false;  // there is no loop of the query
  Expr query;              // loads of one dtype
  Expr key;
  Expr value;
  Expr score;
};

// A part of a kernel's name (schedule/kernel_name.h).
struct KernelOp {
  std::string name;  // "aten::relu", "sum"
  bool is_pointwise = true;
};

struct Kernel {
  std::vector<KernelLoop> outer;
  std::vector<KernelLoop> inner;
  std::vector<KernelReduction> reductions;
  std::vector<KernelStore> stores;
  uint32_t num_stages = 1;
  bool sequential =
      false;  // outer iterations must run in order (scatter with possibly equal targets)
  bool is_product = false;  // its reduction is a matrix product (schedule/matrix_product.h)
  std::optional<KernelAttention> attention;
  std::vector<std::string> origins;  // the graph nodes it came from, in order
  std::vector<KernelOp> ops;         // what it does, in order

  // For explain.
  std::vector<BufferId> reads;
  std::vector<BufferId> writes;
  Index bytes_saved;  // memory traffic that fusion avoided
};

// All that the kernel computes: values of reductions, an attention's score, values and runtime
// indices of stores.
std::vector<Expr> values_of(const Kernel& kernel);
// Sets `reads` and `writes`.
void find_accesses(Kernel& kernel);

// Where a buffer's storage comes from.
struct Storage {
  enum class Kind : uint8_t {
    kNone,       // never materialised
    kInput,      // input number `number`
    kConstant,   // in the artifact
    kWorkspace,  // at `offset_bytes` of the workspace
    kOutput,     // allocated by the host, returned as output number `number`
    kHost,       // allocated by the host inside a library op; released after step `last_step`
    kTaken,      // in the memory of buffer `number`, which is kHost and read no more
  };
  Kind kind = Kind::kNone;
  uint32_t number = 0;
  Index offset_bytes;
  Index size_bytes;
  uint32_t last_step = 0;
};

// Kernels none of which reads or writes what another one writes: they may run at once. Dialects
// for GPUs run them in as few launches as they can, the others one after the other.
struct KernelSet {
  std::vector<KernelId> members;
};

struct Step {
  std::variant<KernelId, OperationId, KernelSet> v;  // OperationId: an ExternKernel of the program
};

// The kernels of a step; a library op has none.
std::span<const KernelId> kernels_of(const Step& step);

// Why two neighbours in the data flow stayed apart, for explain.
struct NotFused {
  std::string producer;
  std::string consumer;
  std::string reason;
};

struct Plan {
  std::shared_ptr<const Program> program;
  IdVector<KernelId, Kernel> kernels;
  std::vector<Step> steps;
  IdVector<BufferId, Storage> storage;
  Index workspace_bytes;
  std::vector<NotFused> not_fused;
};

// Elements from the first to one past the last element of a buffer, and its size in bytes.
Index storage_elements(const Program& program, const Buffer& buffer);

}  // namespace litz
