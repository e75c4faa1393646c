// The invariants of fusion groups.
//
//   G1   Every operation that is to be done is a member of one group, and members are no others. A
//        group of a scatter or a library op has one member; that of a scan begins with it, and the
//        others are computed of each running value.
//   G2   `group_of_buffer` names the group that writes the buffer last.
//   G3   The group whose value a member reads, where it is another one, is a predecessor, and every
//        predecessor lies on a lower level.
//   G4   Where there is an order, each group is in it once, behind its predecessors.
#include "schedule/verify_schedule.h"

#include <algorithm>

#include "ir/verify_program.h"
#include "schedule/verify_plan.h"
#include "support/error.h"

namespace litz {
namespace {

class Verifier {
 public:
  explicit Verifier(const ScheduleState& state)
      : state_(state), program_(*state.program), groups_(state.fusion->groups) {}

  std::vector<std::string> run() {
    check_members();
    if (!faults_.empty()) return std::move(faults_);
    check_buffers();
    check_levels();
    if (!state_.order.empty()) check_order();
    return std::move(faults_);
  }

 private:
  void require(bool condition, int number, GroupId group, const std::string& message) {
    if (condition) return;
    faults_.push_back("G" + std::to_string(number) + ": group " + std::to_string(group.value) +
                      ": " + message);
  }
  static std::string text(GroupId group) { return "group " + std::to_string(group.value); }

  void check_members() {
    group_of_.resize(program_.operations().size());
    std::vector<bool> to_be_done(program_.operations().size(), false);
    for (OperationId id : state_.operations) to_be_done[id.value] = true;
    for (uint32_t i = 0; i < groups_.size(); ++i) {
      const GroupId g(i);
      const size_t count = groups_[g].members.size();
      const FusionGroup::Kind kind = groups_[g].kind;
      const bool many = kind == FusionGroup::Kind::kLoops || kind == FusionGroup::Kind::kScan;
      require(many ? count > 0 : count == 1, 1, g, std::to_string(count) + " members");
      for (const GroupMember& member : groups_[g].members) {
        const std::string operation = "operation " + std::to_string(member.operation.value);
        require(to_be_done[member.operation.value], 1, g, operation + " is not to be done");
        require(!group_of_[member.operation].valid(), 1, g, operation + " is in another group");
        group_of_[member.operation] = g;
        const Operation& v = program_.operations()[member.operation];
        const bool first = &member == &groups_[g].members.front();
        if (kind == FusionGroup::Kind::kScan) {
          require(
              first ? std::holds_alternative<Scan>(v.v) : std::holds_alternative<Pointwise>(v.v), 1,
              g, operation + " has no place beside a running value");
        }
      }
    }
    for (OperationId id : state_.operations) {
      require(group_of_[id].valid(), 1, GroupId(),
              "operation " + std::to_string(id.value) + " is in none");
    }
  }

  void check_buffers() {
    IdVector<BufferId, GroupId> last;
    last.resize(program_.buffers().size());
    for (OperationId id : state_.operations) {
      const GroupId g = group_of_[id];
      for (BufferId read : buffers_read(program_.operations()[id])) {
        const GroupId from = last[read];
        const std::vector<GroupId>& before = groups_[g].predecessors;
        require(!from.valid() || from == g ||
                    std::find(before.begin(), before.end(), from) != before.end(),
                3, g, "reads " + program_.buffer(read).name + " without waiting for it");
      }
      for (BufferId written : buffers_written(program_.operations()[id])) last[written] = g;
    }
    for (uint32_t i = 0; i < last.size(); ++i) {
      const BufferId id(i);
      require(state_.fusion->group_of_buffer[id] == last[id], 2, last[id],
              program_.buffer(id).name + " is said to be another group's");
    }
  }

  void check_levels() {
    for (uint32_t i = 0; i < groups_.size(); ++i) {
      const GroupId g(i);
      for (GroupId before : groups_[g].predecessors) {
        require(groups_[before].level < groups_[g].level, 3, g,
                "is not above its predecessor " + text(before));
      }
    }
  }

  void check_order() {
    std::vector<bool> ran(groups_.size(), false);
    for (GroupId g : state_.order) {
      require(!ran[g.value], 4, g, "runs twice");
      ran[g.value] = true;
      for (GroupId before : groups_[g].predecessors)
        require(ran[before.value], 4, g, "runs before " + text(before));
    }
    for (uint32_t i = 0; i < groups_.size(); ++i) require(ran[i], 4, GroupId(i), "never runs");
  }

  const ScheduleState& state_;
  const Program& program_;
  const IdVector<GroupId, FusionGroup>& groups_;
  IdVector<OperationId, GroupId> group_of_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> find_group_faults(const ScheduleState& state) {
  return Verifier(state).run();
}

void verify_schedule(const ScheduleState& state) {
  if (state.plan) return verify_plan(*state.plan);
  if (!state.fusion) return verify_program(*state.program);
  std::string text;
  for (const std::string& fault : find_group_faults(state)) text += "\n  " + fault;
  if (!text.empty()) throw InternalError("invalid groups:" + text);
}

}  // namespace litz
