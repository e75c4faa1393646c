// The invariants of a Plan.
//
// Kernels
//   S1   Loops have a variable and an extent of size symbols; without reductions there are no inner
//        loops and one stage.
//   S2   Every load and store has one coordinate, over the kernel's loop variables, size symbols
//        and the runtime indices that it has operands for.
//   S3   A reduction exists where kReduced names it. What uses it is in a later stage; what uses a
//        running one, in its own stage or later. A store outside the inner loops uses neither them
//        nor a running reduction. A reduction over the outer loops is a sum, a product, a maximum
//        or a minimum along rows, which stores after the outer loops use and nothing else; these
//        use no other reduction and no variable of the outer loops.
//   S4   A store's value has its buffer's dtype, and buffers that are not inputs are stored without
//        accumulating, except by a kernel that runs in order.
//   S5   `reads` and `writes` are the buffers that the expressions load and the stores write.
//   S11  A kernel with an attention has an outer loop of a feature, one inner loop, two sums in
//        stages 0 and 1, the first over the factors, which nothing but the score uses, and stores
//        outside the inner loop. Its logarithm is float32 and of no feature.
// Steps
//   S6   Every kernel is in one step, and every step is a kernel, several that run at once, or a
//        library op. Of kernels that run at once none writes what another one reads or writes.
//   S7   A buffer is in memory when a step reads it: an input, a constant, written by a step
//        before, or without elements.
//   S8   A buffer that a step reads or writes has a storage of the kind that fits it; an output of
//        the program is written unless it has no elements.
// Memory
//   S9   Buffers of the workspace that are alive in one step share no bytes, except that a kernel
//        without reductions may write an element over the one that it alone reads there, of an
//        operand that dies with it and that no other kernel of the step reads. So it may write over
//        the result of a library op, which then is kept as long.
//   S10  A buffer of the workspace starts at a multiple of 64 bytes and ends within the workspace.
#include "schedule/verify_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "support/error.h"

namespace litz {
namespace {

class Verifier {
 public:
  explicit Verifier(const Plan& plan) : plan_(plan), program_(*plan.program) {}

  std::vector<std::string> run() {
    for (uint32_t i = 0; i < plan_.kernels.size(); ++i) {
      where_ = "kernel " + std::to_string(i);
      check_kernel(plan_.kernels[KernelId(i)]);
    }
    check_steps();
    if (faults_.empty() && has_storage()) check_memory();
    return std::move(faults_);
  }

 private:
  void require(bool condition, int number, const std::string& message) {
    if (!condition)
      faults_.push_back("S" + std::to_string(number) + ": " + where_ + ": " + message);
  }
  bool has_storage() const { return plan_.storage.size() == program_.buffers().size(); }
  bool has_no_elements(BufferId id) const {
    const std::vector<Index>& sizes = program_.buffer(id).sizes;
    return std::any_of(sizes.begin(), sizes.end(), [](Index size) { return size.is_constant(0); });
  }
  const std::string& name(BufferId id) const { return program_.buffer(id).name; }

  // ---- kernels ----

  void check_kernel(const Kernel& kernel) {
    inner_.clear();
    outer_.clear();
    std::set<uint32_t> variables;
    for (const std::vector<KernelLoop>* loops : {&kernel.outer, &kernel.inner}) {
      for (const KernelLoop& loop : *loops) {
        require(loop.variable.is_symbol() && loop.variable.extent() == loop.extent, 1,
                "a loop has no variable of its extent");
        require(variables.insert(loop.variable.id()).second, 1,
                "two loops over " + to_string(loop.variable));
        (loops == &kernel.inner ? inner_ : outer_).push_back(loop.variable);
      }
    }
    require(!kernel.reductions.empty() || (kernel.inner.empty() && kernel.num_stages == 1), 1,
            "inner loops or stages without a reduction");
    variables_ = std::move(variables);
    std::vector<Expr> roots;
    if (kernel.attention) {
      check_attention(kernel);
      roots.push_back(kernel.attention->score);
    }
    for (const KernelReduction& reduction : kernel.reductions) {
      check_value(kernel, reduction.value, reduction.stage, Place::kInner);
      require(!reduction.over_outer || can_be_over_outer(kernel, reduction), 3,
              "a reduction over the outer loops that cannot be one");
      if (reduction.position.valid()) check_index(reduction.position, 0);
      require(reduction.stage < kernel.num_stages, 3, "a reduction in a stage that is not there");
      roots.push_back(reduction.value);
    }
    for (const KernelStore& store : kernel.stores) {
      check_store(kernel, store);
      roots.push_back(store.value);
      roots.insert(roots.end(), store.runtime_indices.begin(), store.runtime_indices.end());
    }
    check_lists(kernel, roots);
  }

  void check_attention(const Kernel& kernel) {
    const KernelAttention& attention = *kernel.attention;
    const auto is_sum = [](const KernelReduction& r, uint32_t stage) {
      return r.kind == ReductionKind::kSum && r.stage == stage && !r.running && !r.over_outer;
    };
    require(!kernel.outer.empty() && kernel.inner.size() == 1 && kernel.reductions.size() == 2 &&
                is_sum(kernel.reductions[0], 0) && is_sum(kernel.reductions[1], 1),
            11, "not the loops and sums of an attention");
    check_value(kernel, attention.score, 1, Place::kInner);
    for (const KernelStore& store : kernel.stores) {
      require(!store.inner, 11, "a store inside the loop of the keys");
      visit_postorder({&store.value, 1}, [&](Expr e) {
        require(e.op() != ExprOp::kReduced || e.number() == 1, 11, "a store of the product");
      });
    }
    if (attention.logsumexp.valid()) {
      check_index(attention.logsumexp_offset, 0);
      require(!attention.logsumexp_offset.depends_on(kernel.outer.back().variable), 11,
              "a logarithm for each feature");
      require(program_.buffer(attention.logsumexp).dtype == DType::kFloat32, 11,
              "a logarithm that is not float32");
    }
    variables_.insert(attention.factors.variable.id());
  }

  void check_index(Index index, size_t num_runtime) {
    for (Index symbol : free_symbols(index)) {
      const bool known =
          symbol.symbol_kind() == SymbolKind::kSize || variables_.contains(symbol.id()) ||
          (symbol.symbol_kind() == SymbolKind::kIndirect && symbol.symbol_number() < num_runtime);
      require(known, 2, to_string(index) + " uses " + std::string(symbol.symbol_name()));
    }
  }

  // Where a value is computed; without inner loops there is but one place.
  enum class Place : uint8_t { kInner, kOuter, kAfterOuter };
  static Place place_of(const Kernel& kernel, const KernelStore& store) {
    if (store.after_outer) return Place::kAfterOuter;
    return store.inner || kernel.inner.empty() ? Place::kInner : Place::kOuter;
  }

  static bool can_be_over_outer(const Kernel& kernel, const KernelReduction& reduction) {
    const ReductionKind kind = reduction.kind;
    return !kernel.inner.empty() && !kernel.sequential && !reduction.running &&
           (kind == ReductionKind::kSum || kind == ReductionKind::kProd ||
            kind == ReductionKind::kMax || kind == ReductionKind::kMin);
  }

  void check_value(const Kernel& kernel, Expr root, uint32_t stage, Place place) {
    const auto check = [&](Index index, size_t num_runtime) {
      check_index(index, num_runtime);
      if (place == Place::kInner) return;
      for (Index variable : place == Place::kOuter ? inner_ : outer_) {
        require(!index.depends_on(variable), 3,
                "a store outside the loops of " + to_string(variable) + " uses it");
      }
    };
    visit_postorder({&root, 1}, [&](Expr e) {
      if (e.op() == ExprOp::kLoad) {
        require(e.coordinates().size() == 1, 2, "a load of " + name(e.buffer()) + " by position");
        for (Index coordinate : e.coordinates()) check(coordinate, e.operands().size());
      } else if (e.op() == ExprOp::kIndexValue || e.op() == ExprOp::kCheckIndex) {
        check(e.index(), 0);
      } else if (e.op() == ExprOp::kReduced) {
        check_reduced(kernel, e.number(), stage, place);
      }
    });
  }

  void check_reduced(const Kernel& kernel, uint32_t number, uint32_t stage, Place place) {
    if (number >= kernel.reductions.size()) {
      require(false, 3, "reduction " + std::to_string(number) + " does not exist");
      return;
    }
    const KernelReduction& reduction = kernel.reductions[number];
    const uint32_t known_in = reduction.stage + (reduction.running ? 0 : 1);
    require(reduction.over_outer == (place == Place::kAfterOuter), 3,
            "reduction " + std::to_string(number) + " is used by other loops than have it");
    require(place == Place::kInner ? stage >= known_in : !reduction.running, 3,
            "reduction " + std::to_string(number) + " is used before it is known");
  }

  void check_store(const Kernel& kernel, const KernelStore& store) {
    const Buffer& buffer = program_.buffer(store.buffer);
    check_index(store.offset, store.runtime_indices.size());
    require(store.stage < kernel.num_stages || !store.inner, 3,
            "a store in a stage that is not there");
    const Place place = place_of(kernel, store);
    require(!store.inner || !store.after_outer, 3, "a store inside and after the outer loops");
    check_value(kernel, store.value, store.stage, place);
    for (Expr index : store.runtime_indices) check_value(kernel, index, store.stage, place);
    for (Index variable : place == Place::kAfterOuter ? outer_ : std::vector<Index>()) {
      require(!store.offset.depends_on(variable), 3,
              "a store after the loops of " + to_string(variable) + " uses it");
    }
    require(store.value.dtype() == buffer.dtype, 4,
            "a " + std::string(to_string(store.value.dtype())) + " is stored in " + buffer.name);
    require(store.mode == StoreMode::kStore || kernel.sequential, 4,
            buffer.name + " is accumulated in parallel");
  }

  void check_lists(const Kernel& kernel, const std::vector<Expr>& roots) {
    std::set<BufferId> loaded;
    std::set<BufferId> stored;
    visit_postorder(roots, [&](Expr e) {
      if (e.op() == ExprOp::kLoad) loaded.insert(e.buffer());
    });
    for (const KernelStore& store : kernel.stores) stored.insert(store.buffer);
    if (kernel.attention && kernel.attention->logsumexp.valid())
      stored.insert(kernel.attention->logsumexp);
    require(std::set<BufferId>(kernel.reads.begin(), kernel.reads.end()) == loaded, 5,
            "`reads` is not what is loaded");
    require(std::set<BufferId>(kernel.writes.begin(), kernel.writes.end()) == stored, 5,
            "`writes` is not what is stored");
  }

  // ---- steps ----

  void check_steps() {
    std::vector<bool> written(program_.buffers().size(), false);
    std::vector<bool> ran(plan_.kernels.size(), false);
    first_.assign(program_.buffers().size(), UINT32_MAX);
    may_be_aliased_.assign(program_.buffers().size(), false);
    for (const Operation& operation : program_.operations()) {
      const auto* call = std::get_if<ExternKernel>(&operation.v);
      if (call == nullptr || !call->results_may_alias) continue;
      for (BufferId id : buffers_read(operation)) may_be_aliased_[id.value] = true;
      for (BufferId id : buffers_written(operation)) may_be_aliased_[id.value] = true;
    }
    last_.assign(program_.buffers().size(), 0);
    for (uint32_t step = 0; step < plan_.steps.size(); ++step) {
      where_ = "step " + std::to_string(step);
      std::vector<BufferId> reads;
      std::vector<BufferId> writes;
      for (KernelId kernel : kernels_of(plan_.steps[step])) {
        require(!ran[kernel.value], 6, "kernel " + std::to_string(kernel.value) + " runs twice");
        ran[kernel.value] = true;
        const Kernel& k = plan_.kernels[kernel];
        reads.insert(reads.end(), k.reads.begin(), k.reads.end());
        writes.insert(writes.end(), k.writes.begin(), k.writes.end());
      }
      if (const auto* set = std::get_if<KernelSet>(&plan_.steps[step].v)) check_set(*set);
      if (const auto* id = std::get_if<OperationId>(&plan_.steps[step].v)) {
        const Operation& operation = program_.operations()[*id];
        require(std::holds_alternative<ExternKernel>(operation.v), 6, "not a library op");
        reads = buffers_read(operation);
        writes = buffers_written(operation);
      }
      for (BufferId id : reads) {
        const BufferKind kind = program_.buffer(id).kind;
        require(kind == BufferKind::kInput || kind == BufferKind::kConstant || written[id.value] ||
                    storage_elements(program_, program_.buffer(id)).is_constant(0),
                7, name(id) + " is read before it is written");
        touch(id, step);
      }
      for (BufferId id : writes) {
        written[id.value] = true;
        touch(id, step);
      }
    }
    where_ = "plan";
    for (size_t i = 0; i < ran.size(); ++i)
      require(ran[i], 6, "kernel " + std::to_string(i) + " never runs");
    for (const ProgramOutput& output : program_.outputs) {
      const auto* view = std::get_if<BufferView>(&output.v);
      if (view == nullptr) continue;
      const BufferKind kind = program_.buffer(view->buffer).kind;
      require(kind == BufferKind::kInput || kind == BufferKind::kConstant ||
                  written[view->buffer.value] || has_no_elements(view->buffer),
              8, "output " + name(view->buffer) + " is never written");
    }
  }

  void check_set(const KernelSet& set) {
    require(set.members.size() > 1, 6, "a set of fewer than two kernels");
    std::map<BufferId, KernelId> writer;
    for (KernelId kernel : set.members) {
      for (BufferId id : plan_.kernels[kernel].writes)
        require(writer.emplace(id, kernel).second, 6, name(id) + " is written by two at once");
    }
    for (KernelId kernel : set.members) {
      for (BufferId id : plan_.kernels[kernel].reads) {
        const auto found = writer.find(id);
        require(found == writer.end() || found->second == kernel, 6,
                name(id) + " is read and written at once");
      }
    }
  }

  void touch(BufferId id, uint32_t step) {
    first_[id.value] = std::min(first_[id.value], step);
    last_[id.value] = std::max(last_[id.value], step);
    if (!has_storage()) return;
    const Storage::Kind kind = plan_.storage[id].kind;
    bool fits = false;
    switch (program_.buffer(id).kind) {
      case BufferKind::kInput:
        fits = kind == Storage::Kind::kInput;
        break;
      case BufferKind::kConstant:
        fits = kind == Storage::Kind::kConstant;
        break;
      case BufferKind::kExtern:
        fits = kind == Storage::Kind::kHost;
        break;
      case BufferKind::kComputed:
        fits = kind == Storage::Kind::kWorkspace || kind == Storage::Kind::kOutput ||
               kind == Storage::Kind::kTaken;
        break;
    }
    require(fits, 8, name(id) + " has no storage of its kind");
  }

  // ---- memory ----

  // Offsets of one base (what is symbolic in them) are compared as numbers.
  struct Range {
    int64_t begin = 0;
    int64_t end = 0;
    BufferId buffer;
  };

  void check_memory() {
    std::vector<std::vector<BufferId>> starting(plan_.steps.size());
    std::vector<std::vector<BufferId>> ending(plan_.steps.size());
    where_ = "workspace";
    for (uint32_t i = 0; i < program_.buffers().size(); ++i) {
      const BufferId id(i);
      if (plan_.storage[id].kind != Storage::Kind::kWorkspace || first_[i] == UINT32_MAX) continue;
      check_bounds(id);
      starting[first_[i]].push_back(id);
      ending[last_[i]].push_back(id);
    }
    for (uint32_t step = 0; step < plan_.steps.size(); ++step) {
      where_ = "step " + std::to_string(step);
      for (BufferId id : starting[step]) occupy(id, step);
      for (BufferId id : ending[step]) vacate(id);
    }
    check_taken_memory();
  }

  // One buffer after the other is in the memory of a library call's result.
  void check_taken_memory() {
    std::map<uint32_t, std::vector<BufferId>> by_owner;
    for (uint32_t i = 0; i < program_.buffers().size(); ++i) {
      const Storage& storage = plan_.storage[BufferId(i)];
      if (storage.kind == Storage::Kind::kTaken && first_[i] != UINT32_MAX)
        by_owner[storage.number].push_back(BufferId(i));
    }
    for (auto& [number, buffers] : by_owner) {
      BufferId last(number);
      const Storage& owner = plan_.storage[last];
      require(owner.kind == Storage::Kind::kHost, 9, name(last) + " has no memory to take");
      require(!may_be_aliased_[number], 9, name(last) + " may be somebody else's, too");
      std::sort(buffers.begin(), buffers.end(),
                [&](BufferId a, BufferId b) { return first_[a.value] < first_[b.value]; });
      for (BufferId id : buffers) {
        require(takes_over(id, last, first_[id.value]), 9,
                name(id) + " and " + name(last) + " share bytes");
        require(owner.last_step >= last_[id.value], 9,
                name(BufferId(number)) + " is released while " + name(id) + " is in its memory");
        last = id;
      }
    }
  }

  void check_bounds(BufferId id) {
    const Storage& storage = plan_.storage[id];
    if (!storage.offset_bytes.is_constant() || !plan_.workspace_bytes.is_constant()) return;
    require(storage.offset_bytes.constant() >= 0 && storage.offset_bytes.constant() % 64 == 0, 10,
            name(id) + " starts at " + to_string(storage.offset_bytes));
    if (!storage.size_bytes.is_constant()) return;
    require(storage.offset_bytes.constant() + storage.size_bytes.constant() <=
                plan_.workspace_bytes.constant(),
            10, name(id) + " ends behind the workspace");
  }

  Range range_of(BufferId id) const {
    const Storage& storage = plan_.storage[id];
    const int64_t begin = constant_part(storage.offset_bytes);
    // A symbolic size takes at least a byte.
    const int64_t size = storage.size_bytes.is_constant() ? storage.size_bytes.constant() : 1;
    return {begin, begin + size, id};
  }
  static int64_t constant_part(Index offset) {
    if (offset.is_constant()) return offset.constant();
    return offset.kind() == IndexKind::kSum ? offset.sum_constant() : 0;
  }
  std::multimap<int64_t, Range>& ranges_of(BufferId id) {
    const Index offset = plan_.storage[id].offset_bytes;
    return alive_[(offset - constant_part(offset)).id()];
  }

  void occupy(BufferId id, uint32_t step) {
    const Range range = range_of(id);
    if (range.begin == range.end) return;
    std::multimap<int64_t, Range>& ranges = ranges_of(id);
    // Ranges that are alive do not overlap but where one takes over another, so that the neighbours
    // are all that can.
    auto at = ranges.upper_bound(range.begin);
    for (int before = 0; before < 2 && at != ranges.begin(); ++before) --at;
    for (; at != ranges.end() && at->first < range.end; ++at) {
      const Range& other = at->second;
      if (other.end <= range.begin) continue;
      require(takes_over(id, other.buffer, step), 9,
              name(id) + " and " + name(other.buffer) + " share bytes");
    }
    ranges.emplace(range.begin, range);
  }

  void vacate(BufferId id) {
    std::multimap<int64_t, Range>& ranges = ranges_of(id);
    const auto [begin, end] = ranges.equal_range(range_of(id).begin);
    for (auto at = begin; at != end; ++at) {
      if (at->second.buffer != id) continue;
      ranges.erase(at);
      return;
    }
  }

  static bool contains(const std::vector<BufferId>& list, BufferId id) {
    return std::find(list.begin(), list.end(), id) != list.end();
  }

  bool takes_over(BufferId id, BufferId donor, uint32_t step) const {
    const Kernel* writer = nullptr;
    for (KernelId kernel : kernels_of(plan_.steps[step])) {
      const Kernel& k = plan_.kernels[kernel];
      if (contains(k.writes, id)) {
        writer = &k;
      } else if (contains(k.reads, donor)) {
        return false;
      }
    }
    if (writer == nullptr || last_[donor.value] != step) return false;
    const Kernel& kernel = *writer;
    if (!kernel.reductions.empty() || kernel.sequential || contains(kernel.writes, donor))
      return false;
    if (plan_.storage[donor].offset_bytes != plan_.storage[id].offset_bytes ||
        size_of(program_.buffer(donor).dtype) != size_of(program_.buffer(id).dtype))
      return false;
    Index offset;
    std::vector<Expr> roots;
    for (const KernelStore& store : kernel.stores) {
      roots.push_back(store.value);
      roots.insert(roots.end(), store.runtime_indices.begin(), store.runtime_indices.end());
      if (store.buffer != id) continue;
      if (offset.valid() || !store.runtime_indices.empty()) return false;
      offset = store.offset;
    }
    bool only_there = offset.valid();
    visit_postorder(roots, [&](Expr e) {
      if (e.op() != ExprOp::kLoad || e.buffer() != donor) return;
      only_there = only_there && e.operands().empty() && e.coordinates()[0] == offset;
    });
    return only_there;
  }

  const Plan& plan_;
  const Program& program_;
  std::string where_;
  std::vector<std::string> faults_;
  std::set<uint32_t> variables_;  // of the kernel at hand, by id
  std::vector<Index> inner_;
  std::vector<Index> outer_;
  std::vector<bool> may_be_aliased_;  // a library op may see it under another name
  std::vector<uint32_t> first_;       // step that touches the buffer first
  std::vector<uint32_t> last_;
  std::map<uint32_t, std::multimap<int64_t, Range>> alive_;  // by base
};

}  // namespace

std::vector<std::string> find_plan_faults(const Plan& plan) { return Verifier(plan).run(); }

void verify_plan(const Plan& plan) {
  std::string text;
  for (const std::string& fault : find_plan_faults(plan)) text += "\n  " + fault;
  if (!text.empty()) throw InternalError("invalid plan:" + text);
}

}  // namespace litz
