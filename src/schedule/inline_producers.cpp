#include "schedule/inline_producers.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "ir/attention_operands.h"
#include "schedule/expr_cost.h"
#include "schedule/match_loops.h"
#include "schedule/matrix_product.h"
#include "schedule/shifted_exponential.h"
#include "schedule/window_sum.h"

namespace litz {
namespace {

constexpr int kTrivialWork = 12;
constexpr int kCopyWork = 3;
constexpr int kBroadcastWork = 6;
constexpr int kBroadcastLoads = 2;
constexpr int kMovedNodes = 48;  // of producer and consumer together
constexpr int kFewReads = 8;     // a value of so many, looked up, is computed there instead
constexpr int kMaxNodes = 160;   // of a consumer after inlining
// Of an attention's mask, which would be stored and read for each pair of a query and a key.
constexpr int kMaskWork = 20;
constexpr int kMaskLoads = 3;

// The expressions of an operation that may hold loads of producers.
std::vector<Expr*> roots(Operation& operation) {
  if (auto* op = std::get_if<Pointwise>(&operation.v)) return {&op->value};
  if (auto* op = std::get_if<Reduction>(&operation.v)) return {&op->value};
  if (auto* op = std::get_if<Attention>(&operation.v)) return {&op->score};
  if (auto* op = std::get_if<Scan>(&operation.v)) return {&op->value};
  if (auto* op = std::get_if<Scatter>(&operation.v)) {
    std::vector<Expr*> all = {&op->value};
    if (op->initial.valid()) all.push_back(&op->initial);
    for (Expr& index : op->runtime_indices) all.push_back(&index);
    return all;
  }
  return {};
}

Index iterations(IndexContext& context, const Operation& operation) {
  if (const auto* op = std::get_if<Pointwise>(&operation.v))
    return product(context, op->loops.extents);
  if (const auto* op = std::get_if<Scan>(&operation.v)) return product(context, op->loops.extents);
  if (const auto* op = std::get_if<Scatter>(&operation.v))
    return product(context, op->loops.extents);
  if (const auto* op = std::get_if<Reduction>(&operation.v)) {
    return product(context, op->loops.extents) * product(context, op->reduction.extents);
  }
  if (const auto* op = std::get_if<Attention>(&operation.v)) {
    return product(context, std::span(op->loops.extents).first(op->loops.extents.size() - 1)) *
           product(context, op->keys.extents);
  }
  return context.constant(1);
}

std::vector<Index> loop_variables(const Operation& operation) {
  if (const auto* op = std::get_if<Pointwise>(&operation.v)) return op->loops.variables;
  if (const auto* op = std::get_if<Scan>(&operation.v)) return op->loops.variables;
  std::vector<Index> variables;
  if (const auto* op = std::get_if<Reduction>(&operation.v)) {
    variables = op->loops.variables;
    variables.insert(variables.end(), op->reduction.variables.begin(),
                     op->reduction.variables.end());
  }
  return variables;
}

bool is_looked_up(std::span<const Index> position) {
  const std::vector<Index> symbols = free_symbols(position);
  return std::any_of(symbols.begin(), symbols.end(),
                     [](Index s) { return s.symbol_kind() == SymbolKind::kIndirect; });
}

struct Use {
  Index reads;        // elements that loop operations load, all distinct loads together
  bool kept = false;  // has to be in memory: a library op reads it, or it is an output
};

class Inliner {
 public:
  Inliner(const Program& program, const ScheduleOptions& options)
      : program_(program), options_(options) {
    uses_.resize(program.buffers().size());
    absorbed_.resize(program.operations().size());
    collect_uses();
  }

  InlinedProgram run() {
    for (size_t i = 0; i < program_.operations().size(); ++i)
      rewrite(OperationId(static_cast<uint32_t>(i)));
    for (std::vector<OperationId>& operations : absorbed_) {
      std::sort(operations.begin(), operations.end());
      operations.erase(std::unique(operations.begin(), operations.end()), operations.end());
    }
    return {std::move(program_), std::move(absorbed_)};
  }

 private:
  struct Producer {
    OperationId id;
    ExprCost cost;
    bool of_few_long_rows = false;  // see is_exponential_of_few_long_rows
  };

  void collect_uses() {
    for (size_t i = 0; i < program_.operations().size(); ++i) {
      const OperationId id(static_cast<uint32_t>(i));
      Operation& operation = program_.operations()[id];
      const Index each = iterations(program_.indices(), operation);
      visit_postorder(expressions(operation), [&](Expr e) {
        if (e.op() != ExprOp::kLoad) return;
        Index& reads = uses_[e.buffer()].reads;
        reads = reads.valid() ? reads + each : each;
      });
      if (std::holds_alternative<ExternKernel>(operation.v)) {
        for (BufferId read : buffers_read(operation)) uses_[read].kept = true;
      }
      for (BufferId written : buffers_written(operation)) {
        if (program_.buffer(written).kind == BufferKind::kInput)
          overwritten_at_[written.value] = id.value;
      }
    }
    for (const ProgramOutput& output : program_.outputs) {
      if (const auto* view = std::get_if<BufferView>(&output.v)) uses_[view->buffer].kept = true;
    }
  }

  // An operation that overwrites an input that the producer reads, and runs before the consumer,
  // would change the value.
  bool crosses_mutation(const Producer& producer, OperationId consumer) const {
    if (overwritten_at_.empty()) return false;
    for (BufferId read : buffers_read(program_.operations()[producer.id])) {
      const auto at = overwritten_at_.find(read.value);
      if (at != overwritten_at_.end() && at->second > producer.id.value &&
          at->second <= consumer.value)
        return true;
    }
    return false;
  }

  // Every element of the producer is computed where the consumer loads it, so that no check is lost
  // with an element that nobody reads.
  bool reads_everything(const Buffer& buffer, OperationId consumer, Expr load) const {
    if (!load.operands().empty()) return false;
    const std::optional<LoopMatch> match =
        match_loops(program_.indices(), loop_variables(program_.operations()[consumer]),
                    buffer.sizes, load.coordinates(), load.coordinates());
    return match && std::all_of(match->unmatched.begin(), match->unmatched.end(),
                                [](Index v) { return v.extent().range().lo >= 1; });
  }

  bool should_inline(const Producer& producer, const Buffer& buffer, OperationId consumer,
                     Expr load, int consumer_nodes, bool consumer_masked) {
    const ExprCost& cost = producer.cost;
    const bool is_mask = std::holds_alternative<Attention>(program_.operations()[consumer].v);
    if (cost.checks && (is_mask || consumer_masked || !reads_everything(buffer, consumer, load)))
      return false;
    const bool at_runtime_position = !load.operands().empty();
    if (at_runtime_position && (cost.runtime_indices || cost.position)) return false;
    if (crosses_mutation(producer, consumer)) return false;
    if (consumer_nodes + cost.nodes > kMaxNodes) return false;
    if (cost.loads == 0 && cost.work <= kTrivialWork) return true;
    if (cost.loads == 1 && cost.work <= kCopyWork && !cost.masked) return true;
    IndexContext& context = program_.indices();
    const Index elements = product(context, buffer.sizes);
    const Use& use = uses_[load.buffer()];
    if (use.kept) return false;
    if (producer.of_few_long_rows) return true;
    if (at_runtime_position) {
      return consumer_nodes + cost.nodes <= kMovedNodes && !cost.masked &&
             prove_less_equal(use.reads * context.constant(kFewReads), elements);
    }
    if (is_mask && cost.work <= kMaskWork && cost.loads <= kMaskLoads && !cost.masked &&
        !cost.runtime_indices)
      return true;
    const Index reads = iterations(context, program_.operations()[consumer]);
    // The parts of a concatenation are masked loads that share out the iterations among them.
    if (consumer_nodes + cost.nodes <= kMovedNodes &&
        (prove_less_equal(use.reads, elements) || (consumer_masked && use.reads == reads))) {
      return true;
    }
    return cost.work <= kBroadcastWork && cost.loads <= kBroadcastLoads && !cost.runtime_indices &&
           !cost.masked && prove_less(elements, reads);
  }

  // exp(x - m), where m is one of few numbers and x many elements for each: the sum of the
  // exponentials goes along with the maximum then, and who else needs them reads x in their place.
  bool is_exponential_of_few_long_rows(const Pointwise& op) const {
    const std::optional<ShiftedExponential> exponential = shifted_exponential(op.value);
    if (!options_.online_sums || !exponential || exponential->of_finite) return false;
    const Expr x = exponential->x;
    const Expr m = exponential->shift;
    if (x.op() != ExprOp::kLoad || m.op() != ExprOp::kLoad || !x.operands().empty()) return false;
    IndexContext& context = program_.indices();
    const Index rows = product(context, program_.buffer(m.buffer()).sizes);
    return rows.range().hi <= options_.few_rows &&
           prove_less_equal(rows * context.constant(options_.long_row),
                            product(context, op.loops.extents));
  }

  Expr body_at(const Producer& producer, std::span<const Index> coordinates,
               std::span<const Expr> runtime_indices) {
    const Pointwise& op = std::get<Pointwise>(program_.operations()[producer.id].v);
    Substitution at;
    for (size_t i = 0; i < op.loops.variables.size(); ++i) {
      if (op.loops.variables[i].is_symbol()) at.set(op.loops.variables[i], coordinates[i]);
    }
    ExprContext& exprs = program_.exprs();
    ExprRewriter rewriter(exprs, std::move(at),
                          [&](BufferId buffer, std::span<const Index> position,
                              std::span<const Expr> own, Expr original) {
                            std::span<const Expr> runtime = own;
                            if (own.empty() && is_looked_up(position)) runtime = runtime_indices;
                            return exprs.load(buffer, original.dtype(),
                                              {position.begin(), position.end()},
                                              {runtime.begin(), runtime.end()});
                          });
    return rewriter.apply(op.value);
  }

  // An operand of an attention that is a copy is loaded from where it was copied, if neighbours
  // along `variable` are neighbours there, too.
  void rewrite_operand(OperationId id, Expr& load, Index variable) {
    while (true) {
      const auto found = producers_.find(load.buffer().value);
      if (found == producers_.end() || crosses_mutation(found->second, id)) return;
      const Producer& producer = found->second;
      const auto& op = std::get<Pointwise>(program_.operations()[producer.id].v);
      if (op.value.op() != ExprOp::kLoad || !op.value.operands().empty()) return;
      const Expr source = body_at(producer, load.coordinates(), {});
      if (!is_contiguous_along(program_, source, variable)) return;
      absorb(id, producer.id);
      load = source;
    }
  }

  // A factor of a matrix product that is a copy, or of integers of 8 bits, is loaded from where it
  // comes from, if tiles of it can be loaded there, too. Whether it was so.
  bool rewrite_factor(OperationId id, size_t side) {
    Operation& operation = program_.operations()[id];
    auto& op = std::get<Reduction>(operation.v);
    if (op.value.operand(side).op() != ExprOp::kCast) return false;
    const Expr load = op.value.operand(side).operand(0);
    if (load.op() != ExprOp::kLoad) return false;
    const auto found = producers_.find(load.buffer().value);
    if (found == producers_.end() || crosses_mutation(found->second, id)) return false;
    const Producer& producer = found->second;
    Expr copied = std::get<Pointwise>(program_.operations()[producer.id].v).value;
    if (options_.converts_factors && copied.op() == ExprOp::kCast) copied = copied.operand(0);
    if (copied.op() != ExprOp::kLoad || !copied.operands().empty() ||
        overwritten_at_.contains(copied.buffer().value))
      return false;
    ExprContext& exprs = program_.exprs();
    const Expr source = exprs.cast(body_at(producer, load.coordinates(), {}), op.value.dtype());
    const Expr before = op.value;
    op.value = exprs.binary(ExprOp::kMul, side == 0 ? source : before.operand(0),
                            side == 1 ? source : before.operand(1));
    // Of what is no product any more, too.
    if (!has_tiles(program_, operation)) {
      op.value = before;
      return false;
    }
    absorb(id, producer.id);
    return true;
  }

  void absorb(OperationId id, OperationId producer) {
    std::vector<OperationId>& absorbed = absorbed_[id];
    const std::vector<OperationId>& before = absorbed_[producer];
    absorbed.insert(absorbed.end(), before.begin(), before.end());
    absorbed.push_back(producer);
  }

  void rewrite(OperationId id) {
    Operation& operation = program_.operations()[id];
    if (options_.matrix_products && matrix_product(operation)) {
      while (rewrite_factor(id, 0) || rewrite_factor(id, 1)) {
      }
      return;
    }
    if (options_.matrix_products && window_sum(operation)) return;
    for (Expr* root : roots(operation)) {
      int nodes = 0;
      bool any = false;
      bool masked = false;
      visit_postorder(std::span<const Expr>(root, 1), [&](Expr e) {
        ++nodes;
        masked = masked || e.op() == ExprOp::kMasked;
        if (e.op() == ExprOp::kLoad && producers_.contains(e.buffer().value)) any = true;
      });
      if (!any) continue;
      ExprRewriter rewriter(
          program_.exprs(), Substitution(),
          [&](BufferId buffer, std::span<const Index> position, std::span<const Expr> runtime,
              Expr original) -> Expr {
            const auto found = producers_.find(buffer.value);
            if (found == producers_.end()) return {};
            const Producer& producer = found->second;
            if (!should_inline(producer, program_.buffer(buffer), id, original, nodes, masked))
              return {};
            nodes += producer.cost.nodes;
            absorb(id, producer.id);
            return body_at(producer, position, runtime);
          });
      *root = rewriter.apply(*root);
    }
    if (auto* attention = std::get_if<Attention>(&operation.v)) {
      const Index factor = attention->factors.variables[0];
      rewrite_operand(id, attention->query, factor);
      rewrite_operand(id, attention->key, factor);
      rewrite_operand(id, attention->value, attention->loops.variables.back());
    }
    const auto* pointwise = std::get_if<Pointwise>(&operation.v);
    if (pointwise != nullptr && program_.buffer(pointwise->output).kind == BufferKind::kComputed) {
      producers_.emplace(pointwise->output.value,
                         Producer{id, measure_cost(pointwise->value),
                                  is_exponential_of_few_long_rows(*pointwise)});
    }
  }

  Program program_;
  const ScheduleOptions& options_;
  IdVector<BufferId, Use> uses_;
  IdVector<OperationId, std::vector<OperationId>> absorbed_;
  std::unordered_map<uint32_t, Producer> producers_;       // by buffer
  std::unordered_map<uint32_t, uint32_t> overwritten_at_;  // input buffer -> operation
};

}  // namespace

InlinedProgram inline_producers(const Program& program, const ScheduleOptions& options) {
  return Inliner(program, options).run();
}

}  // namespace litz
