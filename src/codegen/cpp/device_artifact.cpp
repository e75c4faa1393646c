#include "codegen/cpp/device_artifact.h"

#include <utility>

#include "codegen/cpp/cpp_abi.h"
#include "codegen/cpp/cpp_text.h"

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

std::string code_text(const DeviceCode& code) {
  const auto text = [](size_t n) { return std::to_string(n); };
  std::string arrays;
  std::string images;
  for (size_t i = 0; i < code.images.size(); ++i) {
    const std::string name = "image" + text(i);
    arrays += "static const char " + name + "[] =\n" + bytes_literal(code.images[i]) + ";\n";
    images += "{" + name + ", " + text(code.images[i].size()) + "}, ";
  }
  std::string functions;
  for (const DeviceCode::Function& f : code.functions)
    functions += "{" + cpp_string_literal(f.name) + ", " + text(f.image) + "}, ";
  return arrays + "static const LitzDeviceImage images[] = {" +
         (images.empty() ? "{0, 0}" : images) + "};\n" +
         "static const LitzDeviceKernel functions[] = {" +
         (functions.empty() ? "{0, 0}" : functions) + "};\n" +
         "static const LitzDeviceCode device_code = {" + cpp_string_literal(code.target) +
         ", images, functions, " + text(code.images.size()) + ", " + text(code.functions.size()) +
         "};\n";
}

}  // namespace

void add_host_types(Prelude& prelude) {
  for (DType dtype : {DType::kInt8, DType::kUInt8, DType::kInt16, DType::kInt32, DType::kInt64})
    prelude.type(dtype, 1);
}

CppSources print_device_artifact(const Plan& plan, const std::vector<KernelCall>& calls,
                                 const std::string& launchers, const DeviceCode& code,
                                 Prelude& prelude, CppRunOptions options) {
  add_host_types(prelude);
  options.on_device = true;
  const CppRun run = print_cpp_run(plan, calls, prelude, options);
  CppSources sources;
  sources.extern_ops = run.extern_ops;
  for (const KernelCall& call : calls) {
    const bool launches = !call.function.empty();
    sources.launches += launches ? 1 : 0;
    sources.kernels.push_back(launches ? call.function : calls[call.launched_with.value].function);
  }
  CppSource source;
  source.name = "graph.cpp";
  source.text = prelude.text() + cpp_abi_text();
  source.kernels_begin = source.text.size();
  source.text += launchers;
  source.kernels_end = source.text.size();
  source.text += "\n" + code_text(code) + run.text;
  sources.units.push_back(std::move(source));
  return sources;
}

}  // namespace litz
