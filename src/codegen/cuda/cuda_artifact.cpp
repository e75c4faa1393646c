#include "codegen/cuda/cuda_artifact.h"

#include "codegen/cpp/cpp_abi.h"
#include "codegen/cpp/cpp_run.h"
#include "codegen/cpp/cpp_text.h"
#include "codegen/cuda/cuda_dialect.h"

namespace litz {
namespace {

// Lines of a bounded length: compilers are quick with those.
std::string bytes_literal(std::string_view bytes) {
  constexpr size_t kLine = 2048;
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += kLine)
    text += "  " + cpp_string_literal(bytes.substr(at, kLine)) + "\n";
  return text.empty() ? "\"\"" : text;
}

}  // namespace

SimtProgram print_cuda_program(const Plan& plan) {
  return print_simt_program(plan, cuda_dialect(), ThreadHeuristics{});
}

CppSources print_cuda_artifact(const Plan& plan, const SimtProgram& program, const CudaImage& image,
                               const std::string& description) {
  Prelude prelude(PreludeTarget{});
  for (DType dtype : {DType::kInt8, DType::kUInt8, DType::kInt16, DType::kInt32, DType::kInt64})
    prelude.type(dtype, 1);
  std::string code = "static const char image[] =\n" + bytes_literal(image.bytes) + ";\n";
  std::string names;
  for (const SimtFunction& function : program.functions) names += "\"" + function.name + "\", ";
  code += "static const char* const kernel_names[] = {" + (names.empty() ? "0" : names) + "};\n";
  code += "static const LitzDeviceCode device_code = {" + cpp_string_literal(image.target) +
          ", image, " + std::to_string(image.bytes.size()) + ", kernel_names, " +
          std::to_string(program.functions.size()) + "};\n";

  CppRunOptions options;
  options.description = description;
  options.on_device = true;
  options.scratch_bytes = program.scratch_bytes;
  const CppRun run = print_cpp_run(plan, program.calls, prelude, options);
  CppSources sources;
  sources.extern_ops = run.extern_ops;
  for (const KernelCall& call : program.calls) sources.kernels.push_back(call.function);
  CppSource source;
  source.name = "graph.cpp";
  source.text = prelude.text() + cpp_abi_text();
  source.kernels_begin = source.text.size();
  source.text += program.host_text;
  source.kernels_end = source.text.size();
  source.text += "\n" + code + run.text;
  sources.units.push_back(std::move(source));
  return sources;
}

}  // namespace litz
