#include "schedule/plan_memory.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "support/error.h"

namespace litz {
namespace {

constexpr int64_t kAlignment = 64;

Index align(Index bytes) {
  if (bytes.is_constant()) {
    return bytes.context().constant((bytes.constant() + kAlignment - 1) / kAlignment * kAlignment);
  }
  return floor_div(bytes + (kAlignment - 1), kAlignment) * kAlignment;
}

// Free parts of the workspace. Those of constant size are split, merged with free neighbours, and
// the last one grows; those of symbolic size serve equal sizes.
class FreeBlocks {
 public:
  // A block of the size, which is free no longer; the smallest that is large enough. An invalid
  // Index where there is none.
  Index take(Index size) {
    if (!size.is_constant()) {
      std::vector<Index>& blocks = symbolic_[size];
      if (blocks.empty()) return {};
      const Index offset = blocks.back();
      blocks.pop_back();
      return offset;
    }
    const auto found = by_size_.lower_bound({size.constant(), Place{}});
    if (found == by_size_.end()) return {};
    const auto block = by_place_.find(found->second);
    const Index offset = block->second.offset;
    const int64_t rest = found->first - size.constant();
    erase(block);
    if (rest > 0) insert(offset + size, rest);
    return offset;
  }

  // The block that ends at `end`, which is free no longer; an invalid Index where there is none.
  Index take_last(Index end) {
    const auto next = by_place_.lower_bound(place_of(end));
    if (next == by_place_.begin()) return {};
    const auto block = std::prev(next);
    if (block->second.offset + block->second.size != end) return {};
    const Index offset = block->second.offset;
    erase(block);
    return offset;
  }

  void release(Index offset, Index size) {
    if (!size.is_constant()) {
      symbolic_[size].push_back(offset);
      return;
    }
    int64_t bytes = size.constant();
    if (bytes == 0) return;
    const auto next = by_place_.find(place_of(offset + size));
    if (next != by_place_.end()) {
      bytes += next->second.size;
      erase(next);
    }
    if (const Index before = take_last(offset); before.valid()) {
      bytes += (offset - before).constant();
      offset = before;
    }
    insert(offset, bytes);
  }

 private:
  // What is symbolic in an offset, by id, and its constant: places of one base are in order.
  using Place = std::pair<uint32_t, int64_t>;
  struct Block {
    Index offset;
    int64_t size;
  };
  using Blocks = std::map<Place, Block>;

  static Place place_of(Index offset) {
    if (offset.is_constant()) return {0, offset.constant()};
    const int64_t constant = offset.kind() == IndexKind::kSum ? offset.sum_constant() : 0;
    return {(offset - constant).id() + 1, constant};
  }
  void insert(Index offset, int64_t size) {
    by_place_[place_of(offset)] = {offset, size};
    by_size_.emplace(size, place_of(offset));
  }
  void erase(Blocks::iterator block) {
    by_size_.erase({block->second.size, block->first});
    by_place_.erase(block);
  }

  Blocks by_place_;
  std::set<std::pair<int64_t, Place>> by_size_;
  std::unordered_map<Index, std::vector<Index>> symbolic_;
};

struct Life {
  uint32_t first = UINT32_MAX;
  uint32_t last = 0;
};

class MemoryPlanner {
 public:
  MemoryPlanner(Plan& plan, bool reuse) : plan_(plan), program_(*plan.program), reuse_(reuse) {}

  void run() {
    plan_.storage.resize(program_.buffers().size());
    end_ = program_.indices().constant(0);
    find_lives();
    classify();
    for (uint32_t step = 0; step < plan_.steps.size(); ++step) {
      count_readers(step);
      for (const Write& write : written_at_[step]) {
        if (plan_.storage[write.buffer].kind == Storage::Kind::kWorkspace &&
            lives_[write.buffer].first == step)
          place(write, step);
      }
      for (BufferId id : dying_at_[step]) {
        if (!taken_over_[id.value] && plan_.storage[id].kind == Storage::Kind::kWorkspace)
          release(id);
      }
    }
    plan_.workspace_bytes = end_;
  }

 private:
  struct Write {
    BufferId buffer;
    KernelId kernel;  // invalid: a library op
  };

  void find_lives() {
    lives_.resize(program_.buffers().size());
    written_at_.resize(plan_.steps.size());
    dying_at_.resize(plan_.steps.size());
    taken_over_.assign(program_.buffers().size(), false);
    is_shared_.assign(program_.buffers().size(), false);
    for (uint32_t step = 0; step < plan_.steps.size(); ++step) {
      const auto touch = [&](BufferId id) {
        lives_[id].first = std::min(lives_[id].first, step);
        lives_[id].last = std::max(lives_[id].last, step);
      };
      for (KernelId kernel : kernels_of(plan_.steps[step])) {
        for (BufferId id : plan_.kernels[kernel].reads) touch(id);
        for (BufferId id : plan_.kernels[kernel].writes) {
          touch(id);
          written_at_[step].push_back({id, kernel});
        }
      }
      if (const auto* extern_kernel = std::get_if<OperationId>(&plan_.steps[step].v)) {
        const Operation& operation = program_.operations()[*extern_kernel];
        const bool may_alias = std::get<ExternKernel>(operation.v).results_may_alias;
        for (BufferId id : buffers_read(operation)) {
          touch(id);
          if (may_alias) is_shared_[id.value] = true;
        }
        for (BufferId id : buffers_written(operation)) {
          touch(id);
          if (may_alias) is_shared_[id.value] = true;
          written_at_[step].push_back({id, {}});
        }
      }
    }
  }

  void classify() {
    for (uint32_t i = 0; i < program_.buffers().size(); ++i) {
      const BufferId id(i);
      const Buffer& buffer = program_.buffer(id);
      Storage& storage = plan_.storage[id];
      storage.size_bytes = storage_elements(program_, buffer) * size_of(buffer.dtype);
      storage.last_step = lives_[id].last;
      storage.offset_bytes = program_.indices().constant(0);  // of a buffer without elements
      switch (buffer.kind) {
        case BufferKind::kInput:
          storage.kind = Storage::Kind::kInput;
          storage.number = buffer.number;
          break;
        case BufferKind::kConstant:
          storage.kind = Storage::Kind::kConstant;
          break;
        case BufferKind::kExtern:
          storage.kind =
              lives_[id].first == UINT32_MAX ? Storage::Kind::kNone : Storage::Kind::kHost;
          break;
        case BufferKind::kComputed:
          storage.kind =
              lives_[id].first == UINT32_MAX ? Storage::Kind::kNone : Storage::Kind::kWorkspace;
          break;
      }
    }
    for (uint32_t i = 0; i < program_.outputs.size(); ++i) {
      const auto* view = std::get_if<BufferView>(&program_.outputs[i].v);
      if (view == nullptr) continue;
      Storage& storage = plan_.storage[view->buffer];
      // Nothing writes an output without elements.
      if (storage.kind == Storage::Kind::kWorkspace || storage.kind == Storage::Kind::kNone) {
        storage.kind = Storage::Kind::kOutput;
        storage.number = i;
      }
      if (storage.kind == Storage::Kind::kHost) storage.last_step = UINT32_MAX;
    }
    for (uint32_t i = 0; i < program_.buffers().size(); ++i) {
      const BufferId id(i);
      if (plan_.storage[id].kind == Storage::Kind::kWorkspace)
        dying_at_[lives_[id].last].push_back(id);
    }
  }

  void count_readers(uint32_t step) {
    readers_.clear();
    for (KernelId kernel : kernels_of(plan_.steps[step])) {
      for (BufferId id : plan_.kernels[kernel].reads) ++readers_[id.value];
    }
  }

  void place(const Write& write, uint32_t step) {
    Storage& storage = plan_.storage[write.buffer];
    const Index size = align(storage.size_bytes);
    if (reuse_) {
      if (const BufferId donor = find_in_place_donor(write, step); donor.valid()) {
        take_over(donor, write.buffer);
        return;
      }
      storage.offset_bytes = free_.take(size);
      if (storage.offset_bytes.valid()) return;
      if (size.is_constant()) {
        // Whatever ends here is too small, or it would have been taken.
        if (const Index last = free_.take_last(end_); last.valid()) end_ = last;
      }
    }
    storage.offset_bytes = end_;
    end_ = end_ + size;
  }

  void take_over(BufferId donor, BufferId id) {
    const Storage& from = plan_.storage[donor];
    Storage& storage = plan_.storage[id];
    taken_over_[donor.value] = true;
    if (from.kind == Storage::Kind::kWorkspace) {
      storage.offset_bytes = from.offset_bytes;
      return;
    }
    storage.kind = Storage::Kind::kTaken;
    storage.number = from.kind == Storage::Kind::kTaken ? from.number : donor.value;
    Storage& owner = plan_.storage[BufferId(storage.number)];
    owner.last_step = std::max(owner.last_step, storage.last_step);
  }

  void release(BufferId id) {
    if (!reuse_) return;
    const Storage& storage = plan_.storage[id];
    free_.release(storage.offset_bytes, align(storage.size_bytes));
  }

  // Whether other buffers may be in the memory of this one. An output of the graph is none of them.
  bool may_give(BufferId id, uint32_t step) const {
    const Storage& storage = plan_.storage[id];
    if (is_shared_[id.value]) return false;
    if (storage.kind == Storage::Kind::kHost && storage.last_step != step) return false;
    return storage.kind == Storage::Kind::kWorkspace || storage.kind == Storage::Kind::kHost ||
           storage.kind == Storage::Kind::kTaken;
  }

  // A buffer in memory of the run that dies in this kernel and whose elements are read only by the
  // iteration that writes the same element of the buffer, no later than it writes.
  BufferId find_in_place_donor(const Write& write, uint32_t step) {
    if (!write.kernel.valid()) return {};
    const BufferId id = write.buffer;
    const Kernel& kernel = plan_.kernels[write.kernel];
    // With several stages or inner loops an element may be read again after the store.
    if (!kernel.reductions.empty() || kernel.sequential) return {};
    const KernelStore* store = nullptr;
    for (const KernelStore& s : kernel.stores) {
      if (s.buffer != id) continue;
      if (store != nullptr || s.mode != StoreMode::kStore || !s.runtime_indices.empty()) return {};
      store = &s;
    }
    if (store == nullptr) return {};
    for (BufferId donor : kernel.reads) {
      const Storage& storage = plan_.storage[donor];
      if (!may_give(donor, step) || lives_[donor].last != step || taken_over_[donor.value])
        continue;
      // Others that run at once may read it later.
      if (lives_[donor].first == step || readers_[donor.value] > 1) continue;
      if (storage.size_bytes != plan_.storage[id].size_bytes ||
          size_of(program_.buffer(donor).dtype) != size_of(program_.buffer(id).dtype)) {
        continue;
      }
      if (read_only_at(kernel, donor, store->offset)) return donor;
    }
    return {};
  }

  static bool read_only_at(const Kernel& kernel, BufferId buffer, Index offset) {
    std::vector<Expr> roots;
    for (const KernelStore& s : kernel.stores) {
      roots.push_back(s.value);
      roots.insert(roots.end(), s.runtime_indices.begin(), s.runtime_indices.end());
    }
    bool only = true;
    visit_postorder(roots, [&](Expr e) {
      if (e.op() != ExprOp::kLoad || e.buffer() != buffer) return;
      only = only && e.operands().empty() && e.coordinates()[0] == offset;
    });
    return only;
  }

  Plan& plan_;
  const Program& program_;
  bool reuse_;
  Index end_;
  IdVector<BufferId, Life> lives_;
  std::vector<std::vector<Write>> written_at_;
  std::vector<std::vector<BufferId>> dying_at_;
  std::vector<bool> taken_over_;
  std::vector<bool> is_shared_;                     // what a library op may see under another name
  std::unordered_map<uint32_t, uint32_t> readers_;  // of the step at hand, by buffer
  FreeBlocks free_;
};

}  // namespace

void plan_memory(Plan& plan, bool reuse) { MemoryPlanner(plan, reuse).run(); }

}  // namespace litz
