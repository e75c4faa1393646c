#include "schedule/combine_kernels.h"

#include <algorithm>
#include <utility>

namespace litz {
namespace {

// Longer rows are reduced by many programs, each of a part.
constexpr int64_t kLongRow = 16 * 1024;
// Iterations of all kernels of a step, in those of the largest one: results that live at once.
constexpr int64_t kMostOfSet = 16;
// How many steps a kernel moves ahead.
constexpr size_t kMostAhead = 64;

// -1 where it is not known.
int64_t iterations(const std::vector<KernelLoop>& loops) {
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t total = 1;
  for (const KernelLoop& loop : loops) {
    if (!loop.extent.is_constant()) return -1;
    const int64_t extent = loop.extent.constant();
    if (extent > 0 && total > kMost / extent) return -1;
    total *= extent;
  }
  return total;
}

class Combiner {
 public:
  Combiner(Plan& plan, int64_t most_iterations) : plan_(plan), most_iterations_(most_iterations) {
    const size_t buffers = plan.program->buffers().size();
    after_write_.resize(buffers, 0);
    after_read_.resize(buffers, 0);
  }

  void run() {
    for (const Step& step : plan_.steps) {
      if (const auto* kernel = std::get_if<KernelId>(&step.v)) {
        place(*kernel);
      } else {
        places_.push_back({step, -1});
        first_ = places_.size();
      }
    }
    plan_.steps.clear();
    for (Place& place : places_) plan_.steps.push_back(std::move(place.step));
  }

 private:
  // A step of the new plan, and the iterations of its kernels; -1: no kernel joins it.
  struct Place {
    Step step;
    int64_t iterations = 0;
  };

  int64_t size_of_small(const Kernel& kernel) const {
    const int64_t inner = iterations(kernel.inner);
    const int64_t outer = iterations(kernel.outer);
    if (inner < 0 || outer < 0 || inner >= kLongRow || kernel.sequential || kernel.attention)
      return -1;
    for (const KernelReduction& r : kernel.reductions) {
      if (r.running || r.over_outer) return -1;
    }
    for (const KernelStore& s : kernel.stores) {
      if (s.mode != StoreMode::kStore) return -1;
    }
    return inner * outer <= most_iterations_ ? inner * outer : -1;
  }

  void place(KernelId id) {
    const Kernel& kernel = plan_.kernels[id];
    const int64_t size = size_of_small(kernel);
    size_t at = first_;
    for (BufferId buffer : kernel.reads) at = std::max(at, after_write_[buffer]);
    for (BufferId buffer : kernel.writes)
      at = std::max({at, after_write_[buffer], after_read_[buffer]});
    if (places_.size() > kMostAhead) at = std::max(at, places_.size() - kMostAhead);
    while (at < places_.size() && !has_room(places_[at], size)) ++at;
    if (at == places_.size()) {
      places_.push_back({{id}, size});
    } else {
      join(places_[at], id, size);
    }
    for (BufferId buffer : kernel.reads)
      after_read_[buffer] = std::max(after_read_[buffer], at + 1);
    for (BufferId buffer : kernel.writes) after_write_[buffer] = at + 1;
  }

  bool has_room(const Place& place, int64_t size) const {
    return size >= 0 && place.iterations >= 0 &&
           place.iterations + size <= kMostOfSet * most_iterations_;
  }

  static void join(Place& place, KernelId id, int64_t size) {
    if (const auto* first = std::get_if<KernelId>(&place.step.v))
      place.step.v = KernelSet{{*first}};
    std::get<KernelSet>(place.step.v).members.push_back(id);
    place.iterations += size;
  }

  Plan& plan_;
  int64_t most_iterations_;
  std::vector<Place> places_;
  size_t first_ = 0;  // place behind the last library op
  // The first place behind all kernels that write, or read, the buffer.
  IdVector<BufferId, size_t> after_write_;
  IdVector<BufferId, size_t> after_read_;
};

}  // namespace

void combine_kernels(Plan& plan, int64_t most_iterations) { Combiner(plan, most_iterations).run(); }

}  // namespace litz
