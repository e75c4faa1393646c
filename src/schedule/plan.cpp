#include "schedule/plan.h"

#include <unordered_set>

namespace litz {

std::vector<Expr> values_of(const Kernel& kernel) {
  std::vector<Expr> all;
  for (const KernelReduction& reduction : kernel.reductions) all.push_back(reduction.value);
  if (kernel.attention) all.push_back(kernel.attention->score);
  for (const KernelStore& store : kernel.stores) {
    all.push_back(store.value);
    all.insert(all.end(), store.runtime_indices.begin(), store.runtime_indices.end());
  }
  return all;
}

void find_accesses(Kernel& kernel) {
  kernel.reads.clear();
  kernel.writes.clear();
  std::unordered_set<uint32_t> seen;
  visit_postorder(values_of(kernel), [&](Expr e) {
    if (e.op() == ExprOp::kLoad && seen.insert(e.buffer().value).second)
      kernel.reads.push_back(e.buffer());
  });
  std::unordered_set<uint32_t> stored;
  for (const KernelStore& store : kernel.stores) {
    if (stored.insert(store.buffer.value).second) kernel.writes.push_back(store.buffer);
  }
  if (kernel.attention && kernel.attention->logsumexp.valid())
    kernel.writes.push_back(kernel.attention->logsumexp);
}

std::span<const KernelId> kernels_of(const Step& step) {
  if (const auto* kernel = std::get_if<KernelId>(&step.v)) return {kernel, 1};
  if (const auto* set = std::get_if<KernelSet>(&step.v)) return set->members;
  return {};
}

Index storage_elements(const Program& program, const Buffer& buffer) {
  IndexContext& context = program.indices();
  Index last = context.constant(1);
  for (size_t i = 0; i < buffer.sizes.size(); ++i) {
    if (buffer.sizes[i].is_constant(0)) return context.constant(0);
    last = last + (buffer.sizes[i] - 1) * buffer.strides[i];
  }
  return last;
}

}  // namespace litz
