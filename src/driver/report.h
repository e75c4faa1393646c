// What a compilation tells about itself, as JSON.
#pragma once

#include <string>
#include <vector>

#include "codegen/cpp/cpp_artifact.h"
#include "driver/choose_kernels.h"
#include "driver/timings.h"
#include "graph/graph.h"
#include "lowering/lowering.h"
#include "schedule/plan.h"

namespace litz {

// Fields kernels, launches, library_calls, fallbacks, buffers and not_fused, as
// python/litz/report.py reads them; interpreted is empty.
std::string report_plan(const Plan& plan, const CppSources& sources,
                        const std::vector<LoweringNote>& fallbacks);

// The report of a graph for a GPU with the dialect of its kernels, and why it is that one where
// another was wanted.
std::string with_dialect(const std::string& report, const std::string& dialect,
                         const std::string& reason);

// The report of a graph with the products, convolutions and attention that were measured: what each
// is, how many are alike, whether they are kernels, and what both ways took.
std::string with_candidates(const std::string& report,
                            const std::vector<MeasuredCandidate>& measured);

// The report of a graph with the positions of outputs that are channels-last and not as in eager.
std::string with_layouts(const std::string& report, const std::vector<uint32_t>& channels_last);

// The same for a program that is interpreted: no kernels and no buffers between them.
std::string report_interpreted(const Program& program, const std::vector<LoweringNote>& fallbacks,
                               const std::string& reason);

// A report as the cache keeps it, with the names and lines of the graph's nodes, and back: the
// report as it is for another graph that is the same but for names and lines. Messages of the
// library still have those of the first graph; the field "places" says for each what takes its
// place.
std::string with_nodes(const std::string& report, const Graph& graph);
std::string for_nodes_of(const std::string& cached_report, const Graph& graph);

// The report with the fields that belong to one call of the compiler added.
std::string complete_report(const std::string& report, const Timings& timings,
                            const std::string& source_path, bool cached);

// With the device of a backend outside Litz that the graph runs on, or why it runs on the CPU.
std::string report_with_device(const std::string& report, const std::string& device,
                               const std::string& note);

}  // namespace litz
