// Groups loop operations that will share one kernel, and decides how each member's loops map to the
// group's.
//
// Operations are visited once, in program order. Each tries to join the group of one of its
// producers (vertical fusion: the value stays in a register), then a group that reads the same
// memory over the same loops (horizontal fusion). Groups have levels, longest paths from the
// inputs: joining is allowed where every other producer lies on a lower level, or where nobody
// depends on the group yet, so no cycle can arise and no path search is needed. At last groups move
// into ones that they depend on, by the same rules.
#pragma once

#include <string>
#include <vector>

#include "ir/program.h"
#include "schedule/match_loops.h"
#include "schedule/plan.h"
#include "schedule/schedule.h"

namespace litz {

struct GroupTag;
using GroupId = Id<GroupTag>;

struct GroupMember {
  OperationId operation;
  LoopMapping mapping;  // the operation's loop variables over the group's
  bool inner = false;   // depends on the group's inner loops (a reduction: its element does)
};

struct FusionGroup {
  enum class Kind : uint8_t { kLoops, kScan, kScatter, kExtern };
  Kind kind = Kind::kLoops;
  std::vector<Index> outer;  // loop variables
  std::vector<Index> inner;
  std::vector<GroupMember> members;
  uint32_t level = 0;
  std::vector<GroupId> predecessors;  // groups it depends on, each once
};

struct FusionResult {
  IdVector<GroupId, FusionGroup> groups;
  // The group that writes it last; invalid for constants, and inputs that nobody writes.
  IdVector<BufferId, GroupId> group_of_buffer;
  std::vector<NotFused> not_fused;
};

FusionResult fuse_loops(const Program& program, const std::vector<OperationId>& operations,
                        const ScheduleOptions& options);

}  // namespace litz
