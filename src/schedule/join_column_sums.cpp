#include "schedule/join_column_sums.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace litz {
namespace {

// Steps that lie between two kernels that are joined.
constexpr uint32_t kMostBetween = 32;
// Bytes not read again, for each byte of a partial sum.
constexpr int64_t kLeastGain = 4;
// More count as unknown.
constexpr int64_t kMostIterations = int64_t{1} << 40;

// The iterations of loops, where they are known; 0 where not.
int64_t count(const std::vector<KernelLoop>& loops) {
  int64_t total = 1;
  for (const KernelLoop& loop : loops) {
    if (!loop.extent.is_constant()) return 0;
    const int64_t extent = loop.extent.constant();
    if (extent > kMostIterations / std::max<int64_t>(total, 1)) return 0;
    total *= extent;
  }
  return total;
}

bool share_any(const std::vector<BufferId>& a, const std::vector<BufferId>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](BufferId id) { return std::find(b.begin(), b.end(), id) != b.end(); });
}

int count_nodes(const Kernel& kernel) {
  int nodes = 0;
  visit_postorder(values_of(kernel), [&](Expr e) {
    if (e.op() != ExprOp::kLoad && e.op() != ExprOp::kConstant) ++nodes;
  });
  return nodes;
}

bool stores_plainly(const Kernel& kernel) {
  return !kernel.sequential &&
         std::all_of(kernel.stores.begin(), kernel.stores.end(),
                     [](const KernelStore& s) { return s.mode == StoreMode::kStore; });
}

// The loops' position as one number, the last loop fastest.
Index flat_position(IndexContext& context, const std::vector<KernelLoop>& loops) {
  std::vector<Index> variables;
  std::vector<Index> extents;
  for (const KernelLoop& loop : loops) {
    variables.push_back(loop.variable);
    extents.push_back(loop.extent);
  }
  return dot(context, variables, contiguous_strides(context, extents));
}

void set_from_flat(Substitution& substitution, const std::vector<KernelLoop>& loops, Index flat) {
  std::vector<Index> extents;
  for (const KernelLoop& loop : loops) extents.push_back(loop.extent);
  const std::vector<Index> values = delinearize(flat, extents);
  for (size_t i = 0; i < loops.size(); ++i) substitution.set(loops[i].variable, values[i]);
}

class Joiner {
 public:
  Joiner(Plan& plan, const ScheduleOptions& options)
      : plan_(plan), program_(*plan.program), options_(options), limits_(options.column_sums) {}

  void run() {
    for (uint32_t step = 0; step < plan_.steps.size(); ++step) {
      if (const Kernel* kernel = kernel_at(step); kernel != nullptr && reduces_rows(*kernel))
        hosts_.push_back(step);
    }
    if (hosts_.empty()) return;
    for (uint32_t step = 0; step < plan_.steps.size(); ++step) {
      if (const Kernel* kernel = kernel_at(step); kernel != nullptr && sums_columns(*kernel))
        place(step);
    }
    leave_out_gone();
  }

 private:
  Kernel* kernel_at(uint32_t step) {
    const auto* id = std::get_if<KernelId>(&plan_.steps[step].v);
    return id == nullptr || gone_.contains(step) ? nullptr : &plan_.kernels[*id];
  }

  // ---- which kernels ----

  bool reduces_rows(const Kernel& kernel) const {
    const int64_t row = count(kernel.inner);
    return row > 1 && row <= limits_.elements && count(kernel.outer) >= limits_.least_rows &&
           stores_plainly(kernel) && !kernel.attention &&
           std::none_of(kernel.reductions.begin(), kernel.reductions.end(),
                        [](const KernelReduction& r) { return r.running; });
  }

  bool sums_columns(const Kernel& kernel) const {
    const auto can_join = [](const KernelReduction& r) {
      return !r.running && !r.over_outer && r.value.dtype() != DType::kBool &&
             (r.kind == ReductionKind::kSum || r.kind == ReductionKind::kProd ||
              r.kind == ReductionKind::kMax || r.kind == ReductionKind::kMin);
    };
    return kernel.num_stages == 1 && count(kernel.inner) >= limits_.least_rows &&
           count(kernel.outer) > 1 && stores_plainly(kernel) &&
           std::all_of(kernel.reductions.begin(), kernel.reductions.end(), can_join) &&
           std::none_of(kernel.stores.begin(), kernel.stores.end(),
                        [](const KernelStore& s) { return s.inner; });
  }

  // ---- one kernel that sums columns ----

  void place(uint32_t guest) {
    uint32_t best = UINT32_MAX;
    std::optional<Joined> joined;
    const uint32_t nearest = guest > kMostBetween ? guest - kMostBetween : 0;
    for (auto at = std::lower_bound(hosts_.begin(), hosts_.end(), nearest);
         at != hosts_.end() && *at <= guest + kMostBetween; ++at) {
      const uint32_t host = *at;
      if (host == guest || kernel_at(host) == nullptr) continue;
      std::optional<Joined> attempt = join(host, guest);
      if (!attempt || (joined && joined->bytes >= attempt->bytes)) continue;
      best = host;
      joined = std::move(attempt);
    }
    if (!joined) return;
    gone_.insert(guest);
    if (joined->at_guest) {
      std::swap(plan_.steps[best], plan_.steps[guest]);
      gone_.erase(guest);
      gone_.insert(best);
      *std::find(hosts_.begin(), hosts_.end(), best) = guest;
      std::sort(hosts_.begin(), hosts_.end());
    }
    *kernel_at(joined->at_guest ? guest : best) = std::move(joined->kernel);
  }

  struct Joined {
    Kernel kernel;
    bool at_guest = false;  // runs in the guest's place instead of the host's
    int64_t bytes = 0;      // not read again
  };

  std::optional<Joined> join(uint32_t host_step, uint32_t guest_step) {
    const Kernel& host = *kernel_at(host_step);
    const Kernel& guest = *kernel_at(guest_step);
    if (count(host.outer) != count(guest.inner) || count(host.inner) != count(guest.outer))
      return std::nullopt;
    if (share_any(guest.writes, host.reads) || share_any(guest.writes, host.writes))
      return std::nullopt;
    if (guest_step < host_step && share_any(host.writes, guest.reads)) return std::nullopt;
    if (count_nodes(host) + count_nodes(guest) > options_.max_kernel_nodes) return std::nullopt;
    Joined joined;
    // One of the two moves to the other.
    if (can_move(guest_step, host_step)) {
      joined.at_guest = false;
    } else if (can_move(host_step, guest_step)) {
      joined.at_guest = true;
    } else {
      return std::nullopt;
    }
    joined.kernel = host;
    if (!add_sums(joined, host, guest)) return std::nullopt;
    drop_unread_stores(joined.kernel, guest_step);
    find_accesses(joined.kernel);
    return joined;
  }

  // Nothing between here and there waits for the kernel or is waited for.
  bool can_move(uint32_t from, uint32_t to) {
    const Kernel& kernel = *kernel_at(from);
    for (uint32_t step = std::min(from, to) + 1; step < std::max(from, to); ++step) {
      if (gone_.contains(step)) continue;
      std::vector<BufferId> reads;
      std::vector<BufferId> writes;
      list_accesses(step, reads, writes);
      if (share_any(writes, kernel.reads) || share_any(writes, kernel.writes) ||
          share_any(reads, kernel.writes))
        return false;
    }
    return true;
  }

  void list_accesses(uint32_t step, std::vector<BufferId>& reads, std::vector<BufferId>& writes) {
    if (const Kernel* kernel = kernel_at(step)) {
      reads = kernel->reads;
      writes = kernel->writes;
      return;
    }
    const Operation& operation = program_.operations()[std::get<OperationId>(plan_.steps[step].v)];
    reads = buffers_read(operation);
    writes = buffers_written(operation);
  }

  // ---- the joined kernel ----

  bool add_sums(Joined& joined, const Kernel& host, const Kernel& guest) {
    Substitution at;
    set_from_flat(at, guest.inner, flat_position(program_.indices(), host.outer));
    set_from_flat(at, guest.outer, flat_position(program_.indices(), host.inner));
    std::unordered_set<Expr> loaded;
    visit_postorder(values_of(host), [&](Expr e) {
      if (e.op() == ExprOp::kLoad) loaded.insert(e);
    });
    bool possible = true;
    const auto walks_rows = [&](Index offset) {
      const auto linear = linear_in(offset, host.inner.back().variable);
      if (!linear || !(linear->stride.is_constant(0) || linear->stride.is_constant(1)))
        possible = false;
    };
    const int64_t elements = count(host.outer) * count(host.inner);
    const auto save = [&](Index offset, DType dtype) {
      if (varies(offset, host.outer) && varies(offset, host.inner))
        joined.bytes += elements * size_of(dtype);
    };
    std::unordered_set<Expr> counted;
    const auto on_load = [&](BufferId id, std::span<const Index> position,
                             std::span<const Expr> runtime, Expr original) -> Expr {
      if (std::find(host.writes.begin(), host.writes.end(), id) != host.writes.end()) {
        const Expr value = value_stored(host, id, position[0], runtime);
        if (!value.valid()) possible = false;
        if (value.valid()) save(position[0], original.dtype());
        return value;
      }
      const Expr load = program_.exprs().load(id, original.dtype(), {position[0]},
                                              {runtime.begin(), runtime.end()});
      walks_rows(position[0]);
      if (loaded.contains(load) && counted.insert(load).second) save(position[0], original.dtype());
      return load;
    };
    ExprRewriter values(program_.exprs(), at, on_load);
    const uint32_t first = static_cast<uint32_t>(host.reductions.size());
    Kernel& kernel = joined.kernel;
    int64_t partial_bytes = 0;
    for (KernelReduction reduction : guest.reductions) {
      reduction.value = values.apply(reduction.value);
      reduction.over_outer = true;
      reduction.stage = stage_of(host, reduction.value);
      kernel.num_stages = std::max(kernel.num_stages, reduction.stage + 1);
      partial_bytes += 2 * size_of(reduction.value.dtype()) * limits_.programs * count(host.inner);
      kernel.reductions.push_back(std::move(reduction));
    }
    ExprRewriter results(program_.exprs(), at);
    results.renumber_reductions(first);
    for (KernelStore store : guest.stores) {
      store.value = results.apply(store.value);
      for (Expr& index : store.runtime_indices) index = results.apply(index);
      store.offset = at.apply(store.offset);
      store.after_outer = true;
      visit_postorder(std::span<const Expr>(&store.value, 1), [&](Expr e) {
        if (e.op() == ExprOp::kLoad && share_any({e.buffer()}, host.writes)) possible = false;
      });
      kernel.stores.push_back(std::move(store));
    }
    for (const KernelStore& store : host.stores) {
      if (store.inner) walks_rows(store.offset);
    }
    if (!possible || !fits(kernel) || joined.bytes < kLeastGain * partial_bytes) return false;
    kernel.origins.insert(kernel.origins.end(), guest.origins.begin(), guest.origins.end());
    kernel.ops.insert(kernel.ops.end(), guest.ops.begin(), guest.ops.end());
    kernel.bytes_saved = kernel.bytes_saved + guest.bytes_saved + joined.bytes;
    return true;
  }

  static bool varies(Index offset, const std::vector<KernelLoop>& loops) {
    return std::any_of(loops.begin(), loops.end(),
                       [&](const KernelLoop& loop) { return offset.depends_on(loop.variable); });
  }

  // What the host stores there; invalid where it is not stored by the same iteration.
  Expr value_stored(const Kernel& host, BufferId id, Index offset,
                    std::span<const Expr> runtime) const {
    Expr value;
    if (!runtime.empty() || program_.buffer(id).kind != BufferKind::kComputed) return {};
    for (const KernelStore& store : host.stores) {
      if (store.buffer != id) continue;
      if (value.valid() || store.after_outer || !store.runtime_indices.empty() ||
          store.offset != offset)
        return {};
      value = store.value;
    }
    return value;
  }

  static uint32_t stage_of(const Kernel& host, Expr root) {
    uint32_t stage = 0;
    visit_postorder(std::span<const Expr>(&root, 1), [&](Expr e) {
      if (e.op() == ExprOp::kReduced)
        stage = std::max(stage, host.reductions[e.number()].stage + 1);
    });
    return stage;
  }

  // A row and the sums of its columns stay in registers.
  bool fits(const Kernel& kernel) const {
    const auto sums = std::count_if(kernel.reductions.begin(), kernel.reductions.end(),
                                    [](const KernelReduction& r) { return r.over_outer; });
    const auto row =
        static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count(kernel.inner))));
    return row * (1 + sums) <= limits_.elements;
  }

  // What nobody reads but the guest, which has the values now.
  void drop_unread_stores(Kernel& kernel, uint32_t guest_step) {
    std::erase_if(kernel.stores, [&](const KernelStore& store) {
      const Kernel& guest = *kernel_at(guest_step);
      return !store.after_outer && share_any({store.buffer}, guest.reads) &&
             program_.buffer(store.buffer).kind == BufferKind::kComputed &&
             !is_read(store.buffer, guest_step);
    });
  }

  bool is_read(BufferId id, uint32_t but_by) {
    for (const ProgramOutput& output : program_.outputs) {
      const auto* view = std::get_if<BufferView>(&output.v);
      if (view != nullptr && view->buffer == id) return true;
    }
    for (uint32_t step = 0; step < plan_.steps.size(); ++step) {
      if (step == but_by || gone_.contains(step)) continue;
      std::vector<BufferId> reads;
      std::vector<BufferId> writes;
      list_accesses(step, reads, writes);
      if (share_any({id}, reads)) return true;
    }
    return false;
  }

  void leave_out_gone() {
    IdVector<KernelId, Kernel> kernels;
    std::vector<Step> steps;
    for (uint32_t step = 0; step < plan_.steps.size(); ++step) {
      if (gone_.contains(step)) continue;
      if (Kernel* kernel = kernel_at(step)) {
        steps.push_back({kernels.push_back(std::move(*kernel))});
      } else {
        steps.push_back(plan_.steps[step]);
      }
    }
    plan_.kernels = std::move(kernels);
    plan_.steps = std::move(steps);
  }

  Plan& plan_;
  const Program& program_;
  const ScheduleOptions& options_;
  const ColumnSumLimits& limits_;
  std::vector<uint32_t> hosts_;        // steps of kernels that reduce rows
  std::unordered_set<uint32_t> gone_;  // steps that other kernels do
};

}  // namespace

void join_column_sums(Plan& plan, const ScheduleOptions& options) { Joiner(plan, options).run(); }

}  // namespace litz
