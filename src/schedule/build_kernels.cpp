#include "schedule/build_kernels.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <unordered_set>

#include "schedule/kernel_name.h"
#include "schedule/matrix_product.h"
#include "schedule/window_sum.h"
#include "support/error.h"
#include "symbolic/loops.h"

namespace litz {
namespace {

// Builds one kernel over a group's loop variables, then rewrites it to simplified loops.
class KernelBuilder {
 public:
  KernelBuilder(const Program& program, std::span<const Index> outer, std::span<const Index> inner)
      : program_(program), exprs_(program.exprs()) {
    // A loop of extent 1 has no variable: its position is the constant 0.
    const auto is_loop = [](Index v) { return v.is_symbol(); };
    std::copy_if(outer.begin(), outer.end(), std::back_inserter(outer_), is_loop);
    std::copy_if(inner.begin(), inner.end(), std::back_inserter(inner_), is_loop);
    kernel_.bytes_saved = program.indices().constant(0);
  }

  // The expression over the group's variables: loads of values made here are those values, others
  // are by offset.
  Expr rewrite(Expr value, const LoopMapping& mapping) {
    ExprRewriter rewriter(exprs_, as_substitution(mapping),
                          [&](BufferId id, std::span<const Index> position,
                              std::span<const Expr> runtime, Expr original) {
                            const auto made = values_.find(id.value);
                            if (made != values_.end()) return made->second;
                            return exprs_.load(id, original.dtype(), {offset_of(id, position)},
                                               {runtime.begin(), runtime.end()});
                          });
    return rewriter.apply(value);
  }

  Index offset_of(BufferId id, std::span<const Index> position) const {
    return dot(program_.indices(), position, program_.buffer(id).strides);
  }

  // Adds the sums of an attention; the number of the result.
  uint32_t add_attention(const Attention& op, const LoopMapping& mapping) {
    KernelAttention attention;
    attention.query = rewrite(op.query, mapping);
    attention.key = rewrite(op.key, mapping);
    attention.value = rewrite(op.value, mapping);
    attention.score = rewrite(op.score, mapping);
    attention.one_query = !op.loops.variables[op.loops.variables.size() - 2].is_symbol();
    if (op.logsumexp.valid()) {
      Substitution at = as_substitution(mapping);
      std::vector<Index> position;
      for (size_t i = 0; i + 1 < op.loops.variables.size(); ++i)
        position.push_back(at.apply(op.loops.variables[i]));
      attention.logsumexp = op.logsumexp;
      attention.logsumexp_offset = offset_of(op.logsumexp, position);
    }
    attention.factors = {op.factors.variables[0], op.factors.extents[0]};
    const auto wide = [&](Expr value) {
      return is_half(value.dtype()) ? exprs_.cast(value, DType::kFloat32) : value;
    };
    KernelReduction product;
    product.value = exprs_.binary(ExprOp::kMul, wide(attention.query), wide(attention.key));
    KernelReduction result;
    result.value = wide(attention.value);
    result.stage = 1;
    kernel_.reductions = {product, result};
    kernel_.attention = std::move(attention);
    return 1;
  }

  void set_product(const Operation& operation, const LoopMapping& mapping) {
    kernel_.is_product = true;
    const std::optional<MatrixProduct> product = matrix_product(operation);
    if (product) operands_ = {rewrite(product->left, mapping), rewrite(product->right, mapping)};
    keeps_loops_ = window_sum(operation).has_value() || has_panels();
  }

  // Of columns in panels there is one loop, and so there is of factors in pairs.
  bool has_panels() const {
    if (operands_.size() != 2 || outer_.size() != 2 || inner_.size() != 1) return false;
    const Index at = operands_[1].coordinates()[0];
    if (linear_in(at, outer_[1]) && linear_in(at, inner_[0])) return false;
    for (const int64_t columns : {16, 32}) {
      for (const int64_t elements : {1, 2}) {
        if (lies_in_panels(at, outer_[1], inner_[0], columns, elements)) return true;
      }
    }
    return false;
  }

  uint32_t add_reduction(KernelReduction reduction) {
    for (uint32_t i = 0; i < kernel_.reductions.size(); ++i) {
      const KernelReduction& r = kernel_.reductions[i];
      if (r.kind == reduction.kind && r.value == reduction.value &&
          r.position == reduction.position && r.running == reduction.running)
        return i;
    }
    reduction.stage = stage_of(reduction.value);
    kernel_.reductions.push_back(std::move(reduction));
    return static_cast<uint32_t>(kernel_.reductions.size() - 1);
  }

  void add_store(KernelStore store) {
    store.stage = stage_of(store.value);
    for (Expr index : store.runtime_indices) store.stage = std::max(store.stage, stage_of(index));
    kernel_.stores.push_back(std::move(store));
  }

  void define(BufferId buffer, Expr value) { values_[buffer.value] = value; }
  // Names the operation, and those computed inside it, as parts of the kernel.
  void add_origins(OperationId id, const AbsorbedOperations& absorbed) {
    for (OperationId inside : absorbed[id]) {
      if (!named_.insert(inside.value).second) continue;
      add_origin(program_.operations()[inside]);
      add_saved(std::get<Pointwise>(program_.operations()[inside].v).output);
    }
    add_origin(program_.operations()[id]);
  }
  void add_origin(const Operation& operation) {
    kernel_.origins.push_back(operation.origin);
    const std::vector<KernelOp> ops = kernel_ops(operation);
    kernel_.ops.insert(kernel_.ops.end(), ops.begin(), ops.end());
  }

  // The buffer is neither written nor read.
  void add_saved(BufferId id) {
    const Buffer& buffer = program_.buffer(id);
    const Index bytes = product(program_.indices(), buffer.sizes) * size_of(buffer.dtype);
    kernel_.bytes_saved = kernel_.bytes_saved + bytes * 2;
  }

  void set_sequential() { kernel_.sequential = true; }
  ExprContext& exprs() { return exprs_; }

  Kernel finish() {
    for (const KernelStore& store : kernel_.stores) {
      if (store.inner) kernel_.num_stages = std::max(kernel_.num_stages, store.stage + 1);
    }
    for (const KernelReduction& reduction : kernel_.reductions) {
      kernel_.num_stages = std::max(kernel_.num_stages, reduction.stage + 1);
    }
    // The loops of an attention have their places, and so have those of windows and panels.
    if (!kernel_.attention && !keeps_loops_) {
      simplify();
    } else {
      for (Index v : outer_) kernel_.outer.push_back({v, v.extent()});
      for (Index v : inner_) kernel_.inner.push_back({v, v.extent()});
    }
    find_accesses(kernel_);
    return std::move(kernel_);
  }

 private:
  // The first stage in which the expression can be evaluated.
  uint32_t stage_of(Expr root) {
    visit_postorder(std::span<const Expr>(&root, 1), [&](Expr e) {
      if (stages_.contains(e)) return;
      uint32_t stage = 0;
      if (e.op() == ExprOp::kReduced) {
        const KernelReduction& reduction = kernel_.reductions[e.number()];
        stage = reduction.stage + (reduction.running ? 0 : 1);
      }
      for (Expr operand : e.operands()) stage = std::max(stage, stages_.at(operand));
      stages_.emplace(e, stage);
    });
    return stages_.at(root);
  }

  // Every index expression of the kernel over the group's variables; stores first.
  std::vector<Index> all_indices() const {
    std::vector<Index> all;
    for (const KernelStore& store : kernel_.stores) all.push_back(store.offset);
    for (const KernelReduction& reduction : kernel_.reductions) {
      if (reduction.position.valid()) all.push_back(reduction.position);
    }
    const std::vector<Index> used = collect_indices(values_of(kernel_));
    all.insert(all.end(), used.begin(), used.end());
    return all;
  }

  void simplify() {
    IndexContext& context = program_.indices();
    // A product's loops are those of its operands, whatever is stored behind it.
    const bool is_product = operands_.size() == 2 && kernel_.reductions.size() == 1;
    std::vector<Index> expressions = is_product ? collect_indices(operands_) : all_indices();
    std::vector<Index> variables = outer_;
    variables.insert(variables.end(), inner_.begin(), inner_.end());
    std::vector<size_t> boundaries = {outer_.size()};
    LoopMapping total;
    for (Index v : variables) total.emplace_back(v, v);
    // Loops are ordered by stride between two rounds: the first splits, the second merges what the
    // order made neighbours.
    for (int round = 0; round < 2; ++round) {
      std::vector<size_t> new_boundaries;
      LoopRewrite rewrite =
          simplify_loops(context, variables, boundaries, expressions, &new_boundaries);
      if (round == 0 && is_product) {
        std::vector<Index> sides;
        for (Expr operand : operands_) sides.push_back(operand.coordinates()[0]);
        order_product_loops(context, rewrite, new_boundaries[0], sides);
      } else if (round == 0 && !kernel_.sequential) {
        sort_by_stride(context, rewrite, new_boundaries[0], expressions);
      }
      Substitution substitution = as_substitution(rewrite.replacements);
      for (auto& [variable, value] : total) value = substitution.apply(value);
      for (Index& e : expressions) e = substitution.apply(e);
      variables = rewrite.variables;
      boundaries = new_boundaries;
    }
    ExprRewriter rewriter(exprs_, as_substitution(total));
    Substitution substitution = as_substitution(total);
    for (KernelReduction& reduction : kernel_.reductions) {
      reduction.value = rewriter.apply(reduction.value);
      if (reduction.position.valid()) reduction.position = substitution.apply(reduction.position);
    }
    for (KernelStore& store : kernel_.stores) {
      store.value = rewriter.apply(store.value);
      store.offset = substitution.apply(store.offset);
      for (Expr& index : store.runtime_indices) index = rewriter.apply(index);
    }
    for (size_t i = 0; i < variables.size(); ++i) {
      std::vector<KernelLoop>& loops = i < boundaries[0] ? kernel_.outer : kernel_.inner;
      loops.push_back({variables[i], variables[i].extent()});
    }
  }

  // Orders the loops on each side of the boundary so that the innermost has the smallest stride, in
  // the first store for outer loops and in most loads for inner ones, and renumbers them.
  void sort_by_stride(IndexContext& context, LoopRewrite& rewrite, size_t boundary,
                      std::span<const Index> expressions) const {
    Substitution substitution = as_substitution(rewrite.replacements);
    std::vector<Index> rewritten;
    for (Index e : expressions) rewritten.push_back(substitution.apply(e));
    const auto stride_in = [&](Index variable, bool inner) -> int64_t {
      // Outer loops follow the stores, inner loops the loads.
      const size_t stores = kernel_.stores.size();
      int64_t best = -1;
      for (size_t i = 0; i < rewritten.size(); ++i) {
        if (inner == (i < stores) && !(inner && rewritten.size() == stores)) continue;
        if (!inner && i >= stores) break;
        if (!rewritten[i].depends_on(variable)) continue;
        const auto linear = linear_in(rewritten[i], variable);
        if (!linear) continue;
        const ValueRange range = linear->stride.range();
        const int64_t magnitude = linear->stride.is_constant()
                                      ? std::abs(linear->stride.constant())
                                      : std::max<int64_t>(range.lo, 1) * 1024;
        best = best < 0 ? magnitude : std::min(best, magnitude);
        if (!inner) break;
      }
      return best;
    };
    std::vector<size_t> order(rewrite.variables.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::vector<int64_t> strides;
    for (size_t i = 0; i < order.size(); ++i)
      strides.push_back(stride_in(rewrite.variables[i], i >= boundary));
    const auto by_stride = [&](size_t a, size_t b) {
      return strides[a] >= 0 && strides[b] >= 0 && strides[a] > strides[b];
    };
    insertion_sort(order, 0, boundary, by_stride);
    // A scan goes through its inner loops in order.
    if (!runs_in_order()) insertion_sort(order, boundary, order.size(), by_stride);
    reorder_loops(context, rewrite, order);
  }

  // Stable for a comparison that is only partial.
  template <class Before>
  static void insertion_sort(std::vector<size_t>& order, size_t begin, size_t end,
                             const Before& before) {
    for (size_t i = begin + 1; i < end; ++i) {
      for (size_t j = i; j > begin && before(order[j], order[j - 1]); --j)
        std::swap(order[j], order[j - 1]);
    }
  }

  bool runs_in_order() const {
    return std::any_of(kernel_.reductions.begin(), kernel_.reductions.end(),
                       [](const KernelReduction& r) { return r.running; });
  }

  const Program& program_;
  ExprContext& exprs_;
  std::vector<Index> outer_;
  std::vector<Index> inner_;
  Kernel kernel_;
  std::vector<Expr> operands_;  // of a matrix product: the loads of its left and its right one
  bool keeps_loops_ = false;
  std::unordered_map<uint32_t, Expr> values_;  // by buffer
  std::unordered_map<Expr, uint32_t> stages_;
  std::unordered_set<uint32_t> named_;  // absorbed operations among the origins
};

Index row_major_position(IndexContext& context, const LoopNest& loops) {
  return dot(context, loops.variables, contiguous_strides(context, loops.extents));
}

Kernel build_loops(const Program& program, const FusionGroup& group,
                   const std::vector<bool>& needed, const AbsorbedOperations& absorbed) {
  IndexContext& context = program.indices();
  KernelBuilder builder(program, group.outer, group.inner);
  for (const GroupMember& member : group.members) {
    const Operation& operation = program.operations()[member.operation];
    builder.add_origins(member.operation, absorbed);
    Substitution at = as_substitution(member.mapping);
    const auto finish = [&](BufferId output, const LoopNest& loops, Expr value, bool inner) {
      builder.define(output, value);
      if (!needed[output.value]) {
        builder.add_saved(output);
        return;
      }
      std::vector<Index> position;
      for (Index v : loops.variables) position.push_back(at.apply(v));
      KernelStore store;
      store.buffer = output;
      store.offset = builder.offset_of(output, position);
      store.value = value;
      store.inner = inner;
      builder.add_store(std::move(store));
    };
    if (const auto* op = std::get_if<Pointwise>(&operation.v)) {
      finish(op->output, op->loops, builder.rewrite(op->value, member.mapping), member.inner);
      continue;
    }
    if (const auto* op = std::get_if<Attention>(&operation.v)) {
      const uint32_t number = builder.add_attention(*op, member.mapping);
      finish(op->output, op->loops, builder.exprs().reduced(number, DType::kFloat32), false);
      continue;
    }
    if (const auto* op = std::get_if<Scan>(&operation.v)) {
      KernelReduction reduction;
      reduction.kind = reduction_of(op->kind);
      reduction.value = builder.rewrite(op->value, member.mapping);
      reduction.running = true;
      const uint32_t number = builder.add_reduction(std::move(reduction));
      finish(op->output, op->loops, builder.exprs().reduced(number, op->value.dtype()), true);
      continue;
    }
    const Reduction& op = std::get<Reduction>(operation.v);
    KernelReduction reduction;
    reduction.kind = op.kind;
    reduction.value = builder.rewrite(op.value, member.mapping);
    if (op.kind == ReductionKind::kArgMax || op.kind == ReductionKind::kArgMin) {
      reduction.position = at.apply(row_major_position(context, op.reduction));
      // As numbers: true is the larger one, whatever a dialect keeps bools as.
      if (op.value.dtype() == DType::kBool)
        reduction.value = builder.exprs().cast(reduction.value, DType::kUInt8);
    }
    const DType dtype = result_dtype(op.kind, op.value.dtype());
    if (op.is_product) builder.set_product(operation, member.mapping);
    const uint32_t number = builder.add_reduction(std::move(reduction));
    finish(op.output, op.loops, builder.exprs().reduced(number, dtype), false);
  }
  return builder.finish();
}

std::vector<Kernel> build_scatter(const Program& program, const FusionGroup& group,
                                  const AbsorbedOperations& absorbed) {
  const OperationId id = group.members[0].operation;
  const Operation& operation = program.operations()[id];
  const Scatter& op = std::get<Scatter>(operation.v);
  std::vector<Kernel> kernels;
  if (op.initial.valid()) {
    KernelBuilder builder(program, op.initial_loops.variables, {});
    builder.add_origin(operation);
    KernelStore store;
    store.buffer = op.output;
    store.offset = builder.offset_of(op.output, op.initial_loops.variables);
    store.value = builder.rewrite(op.initial, {});
    builder.add_store(std::move(store));
    kernels.push_back(builder.finish());
  }
  KernelBuilder builder(program, op.loops.variables, {});
  builder.add_origins(id, absorbed);
  builder.set_sequential();
  KernelStore store;
  store.buffer = op.output;
  store.offset = builder.offset_of(op.output, op.target);
  for (Expr index : op.runtime_indices) store.runtime_indices.push_back(builder.rewrite(index, {}));
  store.value = builder.rewrite(op.value, {});
  store.mode = op.mode;
  builder.add_store(std::move(store));
  kernels.push_back(builder.finish());
  return kernels;
}

}  // namespace

std::vector<Kernel> build_kernels(const Program& program, const FusionGroup& group,
                                  const std::vector<bool>& needed,
                                  const AbsorbedOperations& absorbed) {
  switch (group.kind) {
    case FusionGroup::Kind::kLoops:
    case FusionGroup::Kind::kScan: {
      std::vector<Kernel> kernels;
      kernels.push_back(build_loops(program, group, needed, absorbed));
      return kernels;
    }
    case FusionGroup::Kind::kScatter:
      return build_scatter(program, group, absorbed);
    case FusionGroup::Kind::kExtern:
      break;
  }
  return {};
}

}  // namespace litz
