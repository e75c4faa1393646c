// A plan as text, for people: kernels with their loops and stages, steps in order, and where every
// buffer lives; before plan_memory, without the last.
#pragma once

#include <string>

#include "schedule/plan.h"

namespace litz {

std::string to_string(const Plan& plan);

}  // namespace litz
