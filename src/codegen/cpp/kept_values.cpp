#include "codegen/cpp/kept_values.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "codegen/cpp/cpp_body.h"

namespace litz {
namespace {

constexpr int64_t kKeptBytes = 32 * 1024;  // of all arrays of a kernel
constexpr int kKeptWork = 10;              // operations that cost more than a store and a load

}  // namespace

std::vector<KeptValue> plan_kept_values(KernelAnalysis& analysis, const VectorPlan& plan) {
  const Kernel& kernel = analysis.kernel();
  std::vector<KeptValue> kept;
  if (plan.loop == VectorPlan::kNone || plan.outer || kernel.inner.size() != 1) return kept;
  const Index length = analysis.extent(plan.loop);
  if (!length.is_constant()) return kept;
  const int64_t elements = (length.constant() + plan.lanes - 1) / plan.lanes * plan.lanes;
  const LoopMask along = LoopMask{1} << plan.loop;
  int64_t bytes = 0;
  std::unordered_map<Expr, uint32_t> computed;  // first in this stage
  for (uint32_t stage = 0; stage < kernel.num_stages; ++stage) {
    // The largest values first, so that nothing is kept that only they need.
    std::vector<Expr> pending = analysis.stage_roots(stage);
    std::unordered_set<Expr> visited;
    while (!pending.empty()) {
      const Expr e = pending.back();
      pending.pop_back();
      if ((analysis.depends(e) & along) == 0 || !visited.insert(e).second ||
          std::any_of(kept.begin(), kept.end(), [&](const KeptValue& k) { return k.value == e; }))
        continue;
      const auto earlier = computed.find(e);
      const int64_t size = elements * static_cast<int64_t>(size_of(register_dtype(e.dtype())));
      if (earlier != computed.end() && e.dtype() != DType::kBool && bytes + size <= kKeptBytes &&
          analysis.work({e}, along).operations >= kKeptWork) {
        kept.push_back({e, earlier->second, elements});
        bytes += size;
        continue;
      }
      for (Expr operand : e.operands()) pending.push_back(operand);
    }
    visit_unconditional(analysis.stage_roots(stage),
                        [&](Expr e) { computed.try_emplace(e, stage); });
  }
  return kept;
}

}  // namespace litz
