// A whole plan as C++ sources: kernels, the code that calls them and the library in order, and the
// exported LitzArtifact.
#pragma once

#include <string>
#include <vector>

#include "codegen/cpp/prelude.h"
#include "schedule/plan.h"

namespace litz {

struct CppSource {
  std::string name;  // "graph.cpp", "kernels1.cpp"
  std::string text;
  // The part of the text that is kernels. Before it stands what they use, behind it the entry
  // points.
  size_t kernels_begin = 0;
  size_t kernels_end = 0;
};

struct CppSources {
  std::vector<CppSource> units;   // the first one has the entry points
  std::vector<CppSource> beside;  // for other compilers, to be kept with them
  std::vector<std::string>
      kernels;          // function called for each kernel of the plan; equal kernels share one
  size_t launches = 0;  // calls of them: one for several that run at once
  std::vector<OperationId> extern_ops;  // what LitzHost::call's `op` stands for
};

// "// add relu ...": the graph's nodes that a kernel came from.
std::string origins_comment(const Kernel& kernel);

struct CppArtifactOptions {
  PreludeTarget target;
  int units = 1;            // translation units at most
  std::string description;  // JSON, becomes LitzArtifact::description
};

// The same plan and options give the same text. Throws InternalError where a plan is inconsistent.
CppSources print_cpp_artifact(const Plan& plan, const CppArtifactOptions& options);

}  // namespace litz
