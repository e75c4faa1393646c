// Plans of programs given as text (docs/program-text.md), and what tests ask of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schedule/plan.h"
#include "schedule/schedule.h"

namespace litz {

// A program as text. Buffers are such as "x: f32[64] input; m: f32[64] extern; a y: f32[64]",
// inputs in order; results are names, "y z".
std::string program_text(std::string_view buffers, std::string_view operations,
                         std::string_view results);
// y is made from b, b from a and a from x; a and b are read backwards, so that nothing can be
// written in place.
std::string backward_chain();

// The plan of a valid program. It is checked against the invariants of schedule/verify_plan.cpp.
Plan plan_of(std::string_view program, const ScheduleOptions& options = {});

// Nothing shares a kernel.
ScheduleOptions apart();

BufferId buffer_named(const Plan& plan, std::string_view name);
const Storage& storage_of(const Plan& plan, std::string_view buffer);
// Where a buffer lies in the workspace, in bytes; -1 elsewhere.
int64_t offset_of(const Plan& plan, std::string_view buffer);
// Names of the buffers that are written, one entry a kernel, "y z" for two, in order of the steps;
// library ops by name.
std::vector<std::string> written_by_step(const Plan& plan);

// "pointwise NAME[LOOPS] { t0 = load FROM; t1 = OP t0; yield t1 }" as program text.
std::string unary(const std::string& name, const std::string& loops, const std::string& op,
                  const std::string& load);
// The same with two loads.
std::string binary(const std::string& name, const std::string& loops, const std::string& op,
                   const std::string& first, const std::string& second);

}  // namespace litz
