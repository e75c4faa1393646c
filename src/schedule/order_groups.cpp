#include "schedule/order_groups.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "support/error.h"

namespace litz {

std::vector<GroupId> order_groups(const Program& program, const FusionResult& fusion,
                                  bool free_memory_early) {
  const uint32_t count = static_cast<uint32_t>(fusion.groups.size());
  IdVector<GroupId, std::vector<GroupId>> successors;
  IdVector<GroupId, uint32_t> waiting;
  successors.resize(count);
  waiting.resize(count, 0);
  for (uint32_t i = 0; i < count; ++i) {
    const GroupId g(i);
    for (GroupId before : fusion.groups[g].predecessors) {
      successors[before].push_back(g);
      ++waiting[g];
    }
  }
  // Readers left of each buffer: a group that reads a buffer for the last time frees it.
  IdVector<GroupId, std::vector<BufferId>> reads;
  IdVector<BufferId, uint32_t> readers_left;
  reads.resize(count);
  readers_left.resize(program.buffers().size(), 0);
  for (uint32_t i = 0; i < count; ++i) {
    const GroupId g(i);
    for (const GroupMember& member : fusion.groups[g].members) {
      for (BufferId id : buffers_read(program.operations()[member.operation])) {
        if (fusion.group_of_buffer[id] != g) reads[g].push_back(id);
      }
    }
    std::sort(reads[g].begin(), reads[g].end());
    reads[g].erase(std::unique(reads[g].begin(), reads[g].end()), reads[g].end());
    for (BufferId buffer : reads[g]) ++readers_left[buffer];
  }
  const auto last_operation = [&](GroupId g) {
    uint32_t last = 0;
    for (const GroupMember& member : fusion.groups[g].members)
      last = std::max(last, member.operation.value);
    return last;
  };
  using Entry = std::pair<uint32_t, GroupId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  // A group that only frees memory runs at once; the others in program order.
  const auto priority = [&](GroupId g) {
    const FusionGroup& group = fusion.groups[g];
    const bool frees = free_memory_early && group.kind == FusionGroup::Kind::kLoops &&
                       !reads[g].empty() &&
                       std::all_of(reads[g].begin(), reads[g].end(), [&](BufferId buffer) {
                         return readers_left[buffer] == 1 && fusion.group_of_buffer[buffer].valid();
                       });
    return frees ? 0u : last_operation(g) + 1;
  };
  for (uint32_t i = 0; i < count; ++i) {
    if (waiting[GroupId(i)] == 0) ready.emplace(priority(GroupId(i)), GroupId(i));
  }
  std::vector<GroupId> order;
  order.reserve(count);
  while (!ready.empty()) {
    const GroupId g = ready.top().second;
    ready.pop();
    order.push_back(g);
    for (BufferId buffer : reads[g]) --readers_left[buffer];
    for (GroupId next : successors[g]) {
      if (--waiting[next] == 0) ready.emplace(priority(next), next);
    }
  }
  LITZ_CHECK(order.size() == count, "fusion groups depend on each other in a circle");
  return order;
}

}  // namespace litz
