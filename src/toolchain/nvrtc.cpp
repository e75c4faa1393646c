#include "toolchain/nvrtc.h"

#include <dlfcn.h>

#include <cstddef>
#include <future>

namespace litz {
namespace {

using Program = void*;  // nvrtcProgram
using Status = int;     // nvrtcResult; 0 is success

constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

// X(member, symbol, signature)
#define LITZ_NVRTC(X)                                                                   \
  X(version, nvrtcVersion, Status(int* major, int* minor))                              \
  X(error_string, nvrtcGetErrorString, const char*(Status))                             \
  X(create, nvrtcCreateProgram,                                                         \
    Status(Program*, const char* source, const char* name, int num_headers,             \
           const char* const* headers, const char* const* include_names))               \
  X(destroy, nvrtcDestroyProgram, Status(Program*))                                     \
  X(compile, nvrtcCompileProgram, Status(Program, int num_options, const char* const*)) \
  X(log_size, nvrtcGetProgramLogSize, Status(Program, size_t*))                         \
  X(get_log, nvrtcGetProgramLog, Status(Program, char*))                                \
  X(cubin_size, nvrtcGetCUBINSize, Status(Program, size_t*))                            \
  X(get_cubin, nvrtcGetCUBIN, Status(Program, char*))                                   \
  X(num_architectures, nvrtcGetNumSupportedArchs, Status(int*))                         \
  X(get_architectures, nvrtcGetSupportedArchs, Status(int*))

std::string failure(const std::string& library, const std::string& why) {
  return "; " + library + ": " + why;
}

// The compiler opens a second library by its bare name, which the loader finds in a wheel's folder
// only if it is open already. Where it is not beside the first one, the library path has it.
void open_builtins(const void* function, int major, int minor) {
  Dl_info info{};
  if (dladdr(function, &info) == 0 || info.dli_fname == nullptr) return;
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return;
  const std::string builtins = path.substr(0, slash) + "/libnvrtc-builtins.so." +
                               std::to_string(major) + "." + std::to_string(minor);
  dlopen(builtins.c_str(), RTLD_LAZY | RTLD_LOCAL);
}

}  // namespace

struct Nvrtc::Functions {
#define LITZ_NVRTC_MEMBER(member, symbol, ...) \
  using member##_type = __VA_ARGS__;           \
  member##_type* member = nullptr;
  LITZ_NVRTC(LITZ_NVRTC_MEMBER)
#undef LITZ_NVRTC_MEMBER
};

Result<Nvrtc> Nvrtc::from_library(void* library, const std::string& name) {
  auto functions = std::make_shared<Functions>();
#define LITZ_NVRTC_FIND(member, symbol, ...)                                                \
  functions->member = reinterpret_cast<Functions::member##_type*>(dlsym(library, #symbol)); \
  if (functions->member == nullptr)                                                         \
    return Unsupported{failure(name, "it has no function " #symbol)};
  LITZ_NVRTC(LITZ_NVRTC_FIND)
#undef LITZ_NVRTC_FIND
  int major = 0;
  int minor = 0;
  if (const Status status = functions->version(&major, &minor); status != 0) {
    return Unsupported{failure(name, functions->error_string(status))};
  }
  open_builtins(reinterpret_cast<const void*>(functions->version), major, minor);
  return Nvrtc(std::move(functions));
}

Result<Nvrtc> Nvrtc::find(const NvrtcOptions& options) {
  struct Candidate {
    std::string name;
    int flags;
  };
  std::vector<Candidate> candidates;
  for (const char* name : kNames) candidates.push_back({name, RTLD_LAZY | RTLD_NOLOAD});
  for (const char* name : kNames) candidates.push_back({name, RTLD_LAZY | RTLD_LOCAL});
  for (const std::string& folder : options.folders) {
    // A relative folder would be another one in each working directory.
    if (!folder.starts_with('/')) continue;
    for (const char* name : kNames)
      candidates.push_back({folder + "/" + name, RTLD_LAZY | RTLD_LOCAL});
  }

  std::string reasons;
  for (const Candidate& candidate : candidates) {
    void* library = dlopen(candidate.name.c_str(), candidate.flags);
    if (library == nullptr) continue;
    Result<Nvrtc> found = from_library(library, candidate.name);
    if (found) return found;
    dlclose(library);
    reasons += found.reason();
  }
  return Unsupported{
      "no CUDA compiler was found: libnvrtc is neither in this process nor on the library path, "
      "nor in a Python package of NVIDIA's; pip install nvidia-cuda-nvrtc" +
      reasons};
}

std::string Nvrtc::version() const {
  int major = 0;
  int minor = 0;
  functions_->version(&major, &minor);
  return "nvrtc " + std::to_string(major) + "." + std::to_string(minor);
}

std::vector<int> Nvrtc::architectures() const {
  int count = 0;
  if (functions_->num_architectures(&count) != 0) return {};
  std::vector<int> numbers(static_cast<size_t>(count));
  if (functions_->get_architectures(numbers.data()) != 0) return {};
  return numbers;
}

Nvrtc::Image Nvrtc::compile(const std::string& source, const std::string& name,
                            const std::string& arch, const std::vector<std::string>& extra) const {
  const Functions& nvrtc = *functions_;
  Image image;
  const auto fail = [&](const std::string& message) {
    if (!image.log.empty() && image.log.back() != '\n') image.log += '\n';
    image.log += version() + " " + message + " for " + arch + " in " + name + "\n";
  };
  LITZ_CHECK(arch.starts_with("sm_"), "device code for the architecture '" + arch + "'");

  Program program = nullptr;
  if (const Status status =
          nvrtc.create(&program, source.c_str(), name.c_str(), 0, nullptr, nullptr);
      status != 0) {
    fail(std::string("reports ") + nvrtc.error_string(status));
    return image;
  }
  std::vector<std::string> options = {"--gpu-architecture=" + arch};
  options.insert(options.end(), extra.begin(), extra.end());
  std::vector<const char*> arguments;
  for (const std::string& option : options) arguments.push_back(option.c_str());
  const Status compiled =
      nvrtc.compile(program, static_cast<int>(arguments.size()), arguments.data());

  size_t size = 0;  // of the log, with its terminating zero
  if (nvrtc.log_size(program, &size) == 0 && size > 1) {
    image.log.resize(size);
    nvrtc.get_log(program, image.log.data());
    image.log.resize(size - 1);
  }
  if (compiled != 0) {
    fail(std::string("reports ") + nvrtc.error_string(compiled));
  } else if (nvrtc.cubin_size(program, &size) != 0 || size == 0) {
    fail("made no device code");
  } else {
    image.cubin.resize(size);
    image.ok = nvrtc.get_cubin(program, image.cubin.data()) == 0;
    if (!image.ok) fail("gave no device code");
  }
  nvrtc.destroy(&program);
  return image;
}

std::vector<Nvrtc::Image> Nvrtc::compile_all(const std::vector<std::string>& sources,
                                             const std::string& name, const std::string& arch,
                                             const std::vector<std::string>& extra) const {
  std::vector<std::future<Image>> others;
  for (size_t i = 1; i < sources.size(); ++i) {
    others.push_back(
        std::async(std::launch::async, [&, i] { return compile(sources[i], name, arch, extra); }));
  }
  std::vector<Image> images = {compile(sources[0], name, arch, extra)};
  for (std::future<Image>& other : others) images.push_back(other.get());
  return images;
}

}  // namespace litz
