#include "codegen/triton/triton_artifact.h"

#include <algorithm>

#include "codegen/cpp/cpp_run.h"
#include "codegen/cpp/cpp_text.h"
#include "codegen/cpp/device_artifact.h"
#include "support/error.h"
#include "support/indented_buffer.h"

namespace litz {
namespace {

std::string text(int64_t value) { return std::to_string(value); }

// The function that launches several kernels together; it gets an array of the pointers.
std::string combined_launcher(const TritonProgram::Kernel& kernel, const TritonImage& image) {
  const TritonFunction& function = kernel.printed.functions[0];
  const std::string count = std::to_string(kernel.printed.buffers.size());
  IndentedBuffer h;
  h.line("");
  h.open("static void " + kernel.name +
         "(const LitzHost* host, i32* status, char*, char** pointers) {");
  h.line("if (*status != 0) return;");
  h.line("void* none = 0;");
  h.line("void* arguments[" + count + " + " + text(image.added_arguments) + "];");
  h.line("for (i32 i = 0; i < " + count + "; ++i) arguments[i] = pointers + i;");
  h.line("for (i32 i = 0; i < " + text(image.added_arguments) + "; ++i) arguments[" + count +
         " + i] = &none;");
  h.line("const i64 grid[3] = {" + text(function.programs.constant()) + ", 1, 1};");
  h.line("*status = host->launch(host->self, " + std::to_string(kernel.first) + ", grid, " +
         text(image.threads) + ", " + text(image.shared_bytes) + ", arguments);");
  h.close();
  return h.text();
}

// The function that launches a kernel's functions, with the names that the kernel has them for.
std::string launcher(const TritonProgram::Kernel& kernel, const std::vector<TritonImage>& images,
                     Prelude& prelude) {
  const TritonKernel& printed = kernel.printed;
  if (printed.is_combined) return combined_launcher(kernel, images[kernel.first]);
  const auto index = [&](Index e) {
    return cpp_index(e, prelude, [&](Index symbol) {
      const auto found = std::find(printed.symbols.begin(), printed.symbols.end(), symbol);
      LITZ_CHECK(found != printed.symbols.end(),
                 "a launch depends on what its kernel does not get");
      return "n" + text(found - printed.symbols.begin());
    });
  };
  std::string parameters = "char* scratch";
  std::string addresses;
  const auto pass = [&](const std::string& name) {
    addresses += (addresses.empty() ? "&" : ", &") + name;
  };
  for (size_t i = 0; i < printed.partials.size(); ++i) pass("s" + text(static_cast<int64_t>(i)));
  for (size_t i = 0; i < printed.buffers.size(); ++i) {
    const std::string name = "p" + text(static_cast<int64_t>(i));
    parameters += ", char* " + name;
    pass(name);
  }
  for (size_t i = 0; i < printed.symbols.size(); ++i) {
    const std::string name = "n" + text(static_cast<int64_t>(i));
    parameters += ", i64 " + name;
    pass(name);
  }
  IndentedBuffer h;
  h.line("");
  h.open("static void " + kernel.name + "(const LitzHost* host, i32* status, " + parameters +
         ") {");
  h.line("(void)scratch;");
  int64_t offset = 0;
  for (size_t i = 0; i < printed.partials.size(); ++i) {
    h.line("char* s" + text(static_cast<int64_t>(i)) + " = scratch + " + text(offset) + ";");
    offset += partial_bytes(printed.partials[i]);
  }
  for (size_t i = 0; i < printed.functions.size(); ++i) {
    const TritonFunction& function = printed.functions[i];
    const TritonImage& image = images[kernel.first + i];
    h.open("{");
    h.line("const i64 grid[3] = {" + index(function.programs) + ", " + text(function.splits) +
           ", 1};");
    h.line("if (*status != 0 || grid[0] <= 0) return;");
    std::string arguments = addresses;
    if (image.added_arguments > 0) {
      h.line("void* none = 0;");
      if (image.scratch_bytes > 0) h.line("void* own = scratch + " + text(offset) + ";");
    }
    for (int a = 0; a < image.added_arguments; ++a) {
      arguments += arguments.empty() ? "&" : ", &";
      arguments += a == 0 && image.scratch_bytes > 0 ? "own" : "none";
    }
    h.line("void* arguments[] = {" + (arguments.empty() ? "0" : arguments) + "};");
    h.line("*status = host->launch(host->self, " + text(static_cast<int64_t>(kernel.first + i)) +
           ", grid, " + text(image.threads) + ", " + text(image.shared_bytes) + ", arguments);");
    h.close();
  }
  h.close();
  return h.text();
}

// Partial results, and behind them what one of the kernel's functions needs for itself.
int64_t scratch_bytes(const TritonProgram::Kernel& kernel, const std::vector<TritonImage>& images) {
  int64_t partials = 0;
  for (const TritonKernel::Partial& p : kernel.printed.partials) partials += partial_bytes(p);
  int64_t own = 0;
  for (size_t i = 0; i < kernel.printed.functions.size(); ++i) {
    const TritonFunction& function = kernel.printed.functions[i];
    const int64_t each = images[kernel.first + i].scratch_bytes;
    if (each == 0) continue;
    LITZ_CHECK(function.programs.is_constant(), "memory for each of an unknown number of programs");
    own = std::max(own, each * function.programs.constant() * function.splits);
  }
  return partials + own;
}

}  // namespace

CppSources print_triton_artifact(const Plan& plan, const TritonProgram& program,
                                 const std::string& target, const std::vector<TritonImage>& images,
                                 const std::string& description) {
  Prelude prelude(PreludeTarget{});
  DeviceCode code;
  code.target = target;
  for (size_t i = 0; i < program.functions.size(); ++i) {
    code.images.push_back(images[i].bytes);
    code.functions.push_back({program.functions[i].name, i});
  }
  CppRunOptions options;
  options.description = description;
  options.aligned = true;
  std::string launchers;
  for (const TritonProgram::Kernel& kernel : program.kernels) {
    launchers += launcher(kernel, images, prelude);
    options.scratch_bytes = std::max(options.scratch_bytes, scratch_bytes(kernel, images));
  }
  std::vector<KernelCall> calls;
  for (uint32_t i = 0; i < program.calls.size(); ++i) {
    const DeviceCall& call = program.calls[i];
    if (call.launched_with == KernelId(i)) {
      const TritonProgram::Kernel& kernel = program.kernels[call.kernel];
      calls.push_back(
          {kernel.name, call.buffers, call.symbols, true, kernel.printed.is_combined, {}});
    } else {
      calls.push_back({"", {}, {}, false, false, call.launched_with});
    }
  }
  return print_device_artifact(plan, calls, launchers, code, prelude, options);
}

}  // namespace litz
