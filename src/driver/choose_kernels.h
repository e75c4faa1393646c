// Chooses by measuring which matrix products and which attention of a graph are kernels and which
// are the library's calls.
//
// Candidates that are alike are decided together. The graph is planned both ways; the steps that
// the plans do not have in common are timed on the device, kernels of candidates with several
// tiles, and the difference decides. So what reads a product counts as it is in either plan: as
// part of the product's kernel, as a kernel of its own, or as part of another one.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "driver/tunable_triton.h"
#include "driver/tune_kernels.h"
#include "lowering/lowering.h"
#include "schedule/plan.h"
#include "support/error.h"

namespace litz {

// By KernelCandidate::key: whether they are kernels.
using KernelChoices = std::map<std::string, bool>;

struct PlannedCandidates {
  Plan plan;
  std::vector<KernelCandidate> candidates;
};

struct ChoosingTools {
  std::function<PlannedCandidates(const KernelChoices&)> plan;
  // Seconds that a call of the library takes (library_call.h).
  std::function<Result<double>(const std::string&)> time_library;
  CompileTriton compile;
};

struct MeasuredCandidate {
  std::string key;
  size_t count = 0;  // candidates of the graph that are alike
  bool is_kernel = false;
  double kernel_seconds = 0;   // of all steps of the plans that differ: with the kernel
  double library_seconds = 0;  // and without
};

struct ChosenKernels {
  KernelChoices choices;
  std::vector<MeasuredCandidate> measured;
  std::string log;
  bool is_finished = false;  // there was time for all of it
  double seconds = 0;        // that measuring took
};

// Candidates are what they are without choices where measuring fails, and where the library is no
// slower they are its calls. Where the device cannot be used at all, why.
Result<ChosenKernels> choose_kernels(const ChoosingTools& choosing, const TuningTools& tools,
                                     const TritonDevice& device);

}  // namespace litz
