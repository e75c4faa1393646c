#include "codegen/simt/row_registers.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace litz {
namespace {

constexpr size_t kMostKept = 3;        // values of each element of the row
constexpr int64_t kFewRegisters = 16;  // of a thread
constexpr int kCheapOperations = 3;    // as quickly computed anew

class RegisterPlanner {
 public:
  RegisterPlanner(KernelAnalysis& analysis, const ThreadPlan& plan)
      : analysis_(analysis), kernel_(analysis.kernel()), plan_(plan) {}

  RowRegisters run() {
    choose_loads();
    choose_values();
    return std::move(chosen_);
  }

 private:
  bool varies(Expr e) { return (analysis_.depends(e) >> plan_.vector_loop & 1) != 0; }

  // A store of an earlier stage may be what a later one reads.
  bool is_overwritten(BufferId buffer) const {
    return std::any_of(kernel_.stores.begin(), kernel_.stores.end(),
                       [&](const KernelStore& s) { return s.buffer == buffer; });
  }

  bool can_be_ahead(Expr load) {
    if (!load.operands().empty() || load.dtype() == DType::kBool || is_overwritten(load.buffer()) ||
        !varies(load))
      return false;
    return plan_.lanes == 1 || analysis_.walk(load.coordinates()[0], plan_.vector_loop) ==
                                   KernelAnalysis::Walk::kContiguous;
  }

  // What more than one stage reads; and where that is little, all.
  void choose_loads() {
    const StagesOfLoads stages = stages_of_loads(analysis_);
    std::vector<Expr> others;
    for (Expr e : unconditional_loads(analysis_.row_roots())) {
      if (!can_be_ahead(e)) continue;
      // What all rows share is in the caches.
      const bool shared = !kernel_.outer.empty() && !analysis_.is_of_rows(e);
      const auto found = stages.find(e);
      const bool once = found == stages.end() || found->second.first == found->second.second;
      (shared || once ? others : chosen_.loads).push_back(e);
    }
    if (chosen_.loads.size() > kMostKept) chosen_.loads.resize(kMostKept);
    if (static_cast<int64_t>(chosen_.loads.size() + others.size()) * plan_.turns * plan_.lanes <=
        kFewRegisters)
      chosen_.loads.insert(chosen_.loads.end(), others.begin(), others.end());
  }

  // What a stage needs and an earlier one has computed whatever conditions held, the largest parts
  // of its expressions that are so.
  void choose_values() {
    std::unordered_map<Expr, uint32_t> first;
    std::unordered_set<Expr> kept;  // values, and loads that later stages need nevertheless
    for (uint32_t stage = 0; stage < kernel_.num_stages; ++stage) {
      std::unordered_set<Expr> seen;
      std::vector<Expr> pending = analysis_.stage_roots(stage);
      std::reverse(pending.begin(), pending.end());
      while (!pending.empty()) {
        const Expr e = pending.back();
        pending.pop_back();
        if (!varies(e) || !seen.insert(e).second) continue;
        const uint32_t computed = first.emplace(e, stage).first->second;
        if (computed < stage && (e.op() == ExprOp::kLoad || is_worth_keeping(e))) {
          if (kept.insert(e).second && e.op() != ExprOp::kLoad)
            chosen_.values.push_back({e, computed});
          continue;
        }
        const size_t count = e.op() == ExprOp::kMasked ? 1 : e.operands().size();
        for (size_t i = count; i-- > 0;) pending.push_back(e.operands()[i]);
      }
    }
    if (kept.size() > kMostKept) chosen_.values.clear();
  }

  bool is_worth_keeping(Expr e) {
    if (e.dtype() == DType::kBool || e.op() == ExprOp::kReduced) return false;
    bool changes = false;
    visit_postorder({&e, 1}, [&](Expr part) {
      changes = changes || (part.op() == ExprOp::kLoad && is_overwritten(part.buffer()));
    });
    return !changes &&
           analysis_.work({e}, LoopMask{1} << plan_.vector_loop).operations > kCheapOperations;
  }

  KernelAnalysis& analysis_;
  const Kernel& kernel_;
  const ThreadPlan& plan_;
  RowRegisters chosen_;
};

}  // namespace

RowRegisters plan_row_registers(KernelAnalysis& analysis, const ThreadPlan& plan) {
  return RegisterPlanner(analysis, plan).run();
}

}  // namespace litz
