#include "codegen/cpp/cpp_artifact.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "codegen/cpp/cpp_abi.h"
#include "codegen/cpp/cpp_kernel.h"
#include "codegen/cpp/cpp_run.h"
#include "codegen/cpp/cpp_text.h"
#include "schedule/kernel_name.h"
#include "support/error.h"

namespace litz {
namespace {

// One function, and all kernels of the plan that are it.
struct KernelFunction {
  std::string name;
  std::string text;
  std::string comment;
};

}  // namespace

std::string origins_comment(const Kernel& kernel) {
  std::string text = "//";
  for (const std::string& origin : kernel.origins) {
    // The node's name; the user's line would make the text differ from machine to machine.
    const std::string name = origin.substr(0, origin.find(':'));
    if (text.size() + name.size() > 96) return text + " ...";
    text += " " + name;
  }
  return text;
}

CppSources print_cpp_artifact(const Plan& plan, const CppArtifactOptions& options) {
  Prelude prelude(options.target);
  for (DType dtype : {DType::kInt8, DType::kUInt8, DType::kInt16, DType::kInt32, DType::kInt64})
    prelude.type(dtype, 1);

  CppSources sources;
  std::vector<KernelFunction> functions;
  std::unordered_map<std::string, size_t> known;
  std::vector<KernelCall> calls;
  for (const Kernel& kernel : plan.kernels) {
    CppKernel printed = print_cpp_kernel(*plan.program, kernel, prelude, options.target);
    const auto [found, added] = known.emplace(std::move(printed.text), functions.size());
    if (added)
      functions.push_back(
          {kernel_name(kernel.ops, functions.size()), found->first, origins_comment(kernel)});
    const std::string& name = functions[found->second].name;
    calls.push_back(
        {name, std::move(printed.buffers), std::move(printed.symbols), printed.checks_values});
    sources.kernels.push_back(name);
    ++sources.launches;
  }

  const CppRun run = print_cpp_run(plan, calls, prelude, {options.description, false});
  sources.extern_ops = run.extern_ops;

  // Functions go to the unit that has the least text so far; the first one starts with the entry
  // points.
  const size_t units =
      std::max<size_t>(1, std::min<size_t>(static_cast<size_t>(options.units), functions.size()));
  std::vector<std::string> bodies(units);
  std::vector<size_t> sizes(units, 0);
  sizes[0] = run.text.size() / 6;  // calls compile faster than loops
  std::string declarations;
  for (const KernelFunction& function : functions) {
    const std::string text = replace_all(function.text, kKernelName, function.name);
    const size_t unit =
        static_cast<size_t>(std::min_element(sizes.begin(), sizes.end()) - sizes.begin());
    bodies[unit] += function.comment + "\n" + text + "\n";
    sizes[unit] += text.size();
    const size_t begin = text.rfind("void " + function.name + "(");
    declarations += text.substr(begin, text.find(')', begin) - begin) + ");\n";
  }
  const std::string head = prelude.text() + cpp_abi_text();
  for (size_t i = 0; i < units; ++i) {
    CppSource source;
    source.name = i == 0 ? "graph.cpp" : "kernels" + std::to_string(i) + ".cpp";
    source.text = head + bodies[i];
    source.kernels_begin = head.size();
    source.kernels_end = source.text.size();
    if (i == 0) source.text += declarations + "\n" + run.text;
    sources.units.push_back(std::move(source));
  }
  return sources;
}

}  // namespace litz
