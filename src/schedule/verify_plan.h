// Checks a Plan against the invariants that code generation and the artifact rely on. They are
// listed, with their numbers, at the top of schedule/verify_plan.cpp. A plan without storage, as
// it is before plan_memory, is checked up to S7.
#pragma once

#include <string>
#include <vector>

#include "schedule/plan.h"

namespace litz {

// What is wrong, one message each, such as "S9: step 3: y and z share bytes"; empty for a valid
// plan.
std::vector<std::string> find_plan_faults(const Plan& plan);

// Throws InternalError with the faults.
void verify_plan(const Plan& plan);

}  // namespace litz
