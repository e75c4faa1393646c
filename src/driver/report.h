// What a compilation tells about itself, as JSON.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lowering/lowering.h"
#include "schedule/plan.h"

namespace litz {

// Fields kernels, library_calls, fallbacks, buffers and not_fused, as python/litz/report.py reads
// them; interpreted is empty.
std::string report_plan(const Plan& plan, const std::vector<std::string>& kernel_names,
                        const std::vector<LoweringNote>& fallbacks);

// The same for a program that is interpreted: no kernels and no buffers between them.
std::string report_interpreted(const Program& program, const std::vector<LoweringNote>& fallbacks,
                               const std::string& reason);

// The report with the fields that belong to one call of the compiler added.
std::string complete_report(const std::string& report, const std::map<std::string, double>& timings,
                            const std::string& source_path, bool cached);

}  // namespace litz
