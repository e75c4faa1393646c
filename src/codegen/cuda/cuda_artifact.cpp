#include "codegen/cuda/cuda_artifact.h"

#include <algorithm>
#include <unordered_map>

#include "codegen/cpp/cpp_abi.h"
#include "codegen/cpp/cpp_text.h"
#include "codegen/cuda/cuda_kernel.h"

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

CudaProgram print_cuda_program(const Plan& plan) {
  PreludeTarget target;
  target.cuda = true;
  Prelude prelude(target);
  CudaProgram program;
  std::string kernels;
  std::unordered_map<std::string, size_t> known;
  for (const Kernel& kernel : plan.kernels) {
    CudaKernel printed = print_cuda_kernel(*plan.program, kernel, prelude);
    const auto [found, added] =
        known.emplace(printed.device_text + printed.host_text, program.kernels.size());
    if (added) {
      const std::string number = std::to_string(program.kernels.size());
      const std::string name = "k" + number;
      program.kernels.push_back(name);
      if (printed.scratch_bytes != 0) program.kernels.push_back(name + std::string(kCudaFinish));
      kernels += "\n" + origins_comment(kernel) + "\n" +
                 replace_all(printed.device_text, kCudaKernelName, name);
      program.host_text += "\n" + replace_all(replace_all(printed.host_text, kCudaKernelName, name),
                                              kCudaKernelNumber, number);
    }
    program.scratch_bytes = std::max(program.scratch_bytes, printed.scratch_bytes);
    program.calls.push_back({program.kernels[found->second], std::move(printed.buffers),
                             std::move(printed.symbols), true});
  }
  program.text = prelude.text();
  program.kernels_begin = program.text.size();
  program.text += kernels;
  return program;
}

CppSources print_cuda_artifact(const Plan& plan, const CudaProgram& program, const CudaImage& image,
                               const std::string& description) {
  Prelude prelude(PreludeTarget{});
  for (DType dtype : {DType::kInt8, DType::kUInt8, DType::kInt16, DType::kInt32, DType::kInt64})
    prelude.type(dtype, 1);
  std::string code = "static const char image[] =\n" + bytes_literal(image.bytes) + ";\n";
  std::string names;
  for (const std::string& name : program.kernels) names += "\"" + name + "\", ";
  code += "static const char* const kernel_names[] = {" + (names.empty() ? "0" : names) + "};\n";
  code += "static const LitzDeviceCode device_code = {" + cpp_string_literal(image.target) +
          ", image, " + std::to_string(image.bytes.size()) + ", kernel_names, " +
          std::to_string(program.kernels.size()) + "};\n";

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
