// Checks what stands between two steps of the scheduler: the program, then the groups, whose
// invariants are listed at the top of schedule/verify_schedule.cpp, then the plan.
#pragma once

#include <string>
#include <vector>

#include "schedule/schedule_steps.h"

namespace litz {

// What is wrong with the groups, one message each, such as "G4: group 3: runs before group 5".
std::vector<std::string> find_group_faults(const ScheduleState& state);

// Throws InternalError with the faults of the last part.
void verify_schedule(const ScheduleState& state);

}  // namespace litz
