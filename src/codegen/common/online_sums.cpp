#include "codegen/common/online_sums.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "schedule/shifted_exponential.h"
#include "schedule/squared_deviation.h"

namespace litz {
namespace {

// What m is in the kernel, if the sum is of exp(x - m) and m the greatest x.
std::optional<OnlineSum> online_sum(const Kernel& kernel, const KernelReduction& sum) {
  const DType dtype = sum.value.dtype();
  if (sum.kind != ReductionKind::kSum || sum.running ||
      (dtype != DType::kFloat32 && dtype != DType::kFloat64))
    return std::nullopt;
  const std::optional<ShiftedExponential> exponential = shifted_exponential(sum.value);
  if (!exponential || exponential->shift.op() != ExprOp::kReduced) return std::nullopt;
  const uint32_t number = exponential->shift.number();
  const KernelReduction& greatest = kernel.reductions[number];
  if (greatest.kind != ReductionKind::kMax || greatest.running ||
      greatest.value != exponential->x || greatest.stage + 1 != sum.stage)
    return std::nullopt;
  return OnlineSum{number, exponential->of_finite};
}

std::optional<SumOfDeviations> sum_of_deviations(const Kernel& kernel, const KernelReduction& r) {
  if (r.kind != ReductionKind::kSum || r.running || r.over_outer) return std::nullopt;
  const std::optional<SquaredDeviation> square = squared_deviation(r.value);
  if (!square || square->sum.op() != ExprOp::kReduced) return std::nullopt;
  const uint32_t number = square->sum.number();
  const KernelReduction& sum = kernel.reductions[number];
  if (sum.kind != ReductionKind::kSum || sum.running || sum.over_outer || sum.value != square->x ||
      sum.stage + 1 != r.stage)
    return std::nullopt;
  int64_t count = 1;
  for (const KernelLoop& loop : kernel.inner) {
    if (!loop.extent.is_constant() || loop.extent.constant() > square->count) return std::nullopt;
    count *= loop.extent.constant();
  }
  if (count != square->count) return std::nullopt;
  return SumOfDeviations{number};
}

bool has_inner_stores(const Kernel& kernel, uint32_t stage) {
  return std::any_of(kernel.stores.begin(), kernel.stores.end(),
                     [&](const KernelStore& s) { return s.inner && s.stage == stage; });
}

// Moves the sums of the stage to the one before, if there is nothing else in it.
bool drop_stage(Kernel& kernel, uint32_t stage, bool deviations) {
  if (has_inner_stores(kernel, stage)) return false;
  Kernel changed = kernel;
  for (KernelReduction& r : changed.reductions) {
    if (r.stage < stage) continue;
    if (r.stage == stage) {
      r.online = online_sum(kernel, r);
      if (!r.online && deviations) r.deviations = sum_of_deviations(kernel, r);
      if (!r.online && !r.deviations) return false;
      r.value = r.online ? shifted_exponential(r.value)->x : squared_deviation(r.value)->x;
    }
    --r.stage;
  }
  for (KernelStore& s : changed.stores) {
    if (s.inner && s.stage > stage) --s.stage;
  }
  --changed.num_stages;
  kernel = std::move(changed);
  return true;
}

}  // namespace

std::optional<Kernel> with_online_sums(const Kernel& kernel, bool deviations) {
  if (kernel.inner.empty()) return std::nullopt;
  std::optional<Kernel> changed;
  for (uint32_t stage = 1; stage < (changed ? *changed : kernel).num_stages;) {
    Kernel next = changed ? *changed : kernel;
    if (drop_stage(next, stage, deviations)) {
      changed = std::move(next);
    } else {
      ++stage;
    }
  }
  return changed;
}

double lowest_finite(DType dtype) {
  return dtype == DType::kFloat64 ? std::numeric_limits<double>::lowest()
                                  : std::numeric_limits<float>::lowest();
}

}  // namespace litz
