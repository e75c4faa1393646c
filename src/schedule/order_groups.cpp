#include "schedule/order_groups.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "support/error.h"

namespace litz {

std::vector<uint32_t> order_groups(const Program& program, const FusionResult& fusion) {
  const size_t count = fusion.groups.size();
  std::vector<std::vector<uint32_t>> successors(count);
  std::vector<uint32_t> waiting(count, 0);
  for (uint32_t g = 0; g < count; ++g) {
    for (uint32_t before : fusion.groups[g].predecessors) {
      successors[before].push_back(g);
      ++waiting[g];
    }
  }
  // Readers left of each buffer: a group that reads a buffer for the last time frees it.
  std::vector<std::vector<uint32_t>> reads(count);
  std::vector<uint32_t> readers_left(program.buffers().size(), 0);
  for (uint32_t g = 0; g < count; ++g) {
    for (const GroupMember& member : fusion.groups[g].members) {
      for (BufferId id : buffers_read(program.operations()[member.operation])) {
        if (fusion.group_of_buffer[id.value] != g) reads[g].push_back(id.value);
      }
    }
    std::sort(reads[g].begin(), reads[g].end());
    reads[g].erase(std::unique(reads[g].begin(), reads[g].end()), reads[g].end());
    for (uint32_t buffer : reads[g]) ++readers_left[buffer];
  }
  const auto last_operation = [&](uint32_t g) {
    uint32_t last = 0;
    for (const GroupMember& member : fusion.groups[g].members)
      last = std::max(last, member.operation.value);
    return last;
  };
  using Entry = std::pair<uint32_t, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  // A group that only frees memory runs at once; the others in program order.
  const auto priority = [&](uint32_t g) {
    const FusionGroup& group = fusion.groups[g];
    const bool frees =
        group.kind == FusionGroup::Kind::kLoops && !reads[g].empty() &&
        std::all_of(reads[g].begin(), reads[g].end(), [&](uint32_t buffer) {
          return readers_left[buffer] == 1 && fusion.group_of_buffer[buffer] != kNoGroup;
        });
    return frees ? 0u : last_operation(g) + 1;
  };
  for (uint32_t g = 0; g < count; ++g) {
    if (waiting[g] == 0) ready.emplace(priority(g), g);
  }
  std::vector<uint32_t> order;
  order.reserve(count);
  while (!ready.empty()) {
    const uint32_t g = ready.top().second;
    ready.pop();
    order.push_back(g);
    for (uint32_t buffer : reads[g]) --readers_left[buffer];
    for (uint32_t next : successors[g]) {
      if (--waiting[next] == 0) ready.emplace(priority(next), next);
    }
  }
  LITZ_CHECK(order.size() == count, "fusion groups depend on each other in a circle");
  return order;
}

}  // namespace litz
