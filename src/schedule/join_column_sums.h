// Lets kernels of rows sum up their columns on the way.
//
// Of two neighbours, one reduces rows and the other sums over the rows, for each column, what the
// first has at hand: the backward of a layer norm has the gradient of the input and those of the
// weight and the bias. Both take as long as their operands take to be read, so the sums become
// reductions of the first kernel over its outer loops, and operands are read once.
#pragma once

#include "schedule/plan.h"
#include "schedule/schedule.h"

namespace litz {

// A plan without storage yet.
void join_column_sums(Plan& plan, const ScheduleOptions& options);

}  // namespace litz
