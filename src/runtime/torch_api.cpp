#include "runtime/torch_api.h"

#include <dlfcn.h>

#include <charconv>
#include <system_error>

#include "support/error.h"

namespace litz {

TorchApi TorchApi::load() {
  // Python loads torch with RTLD_LOCAL, so only a handle of the library itself finds its symbols.
  void* library = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
  if (library == nullptr) {
    throw UserError("PyTorch is not loaded in this process: libtorch_cpu.so was not found");
  }
  TorchApi api;
#define LITZ_TORCH_FIND(member, symbol, ...) \
  api.member = reinterpret_cast<TorchApi::member##_type*>(dlsym(library, #symbol));
  LITZ_TORCH_REQUIRED(LITZ_TORCH_FIND)
  LITZ_TORCH_OPTIONAL(LITZ_TORCH_FIND)
#undef LITZ_TORCH_FIND
  if (void* cuda = dlopen("libtorch_cuda.so", RTLD_NOLOAD | RTLD_LAZY); cuda != nullptr) {
#define LITZ_TORCH_FIND_CUDA(member, symbol, ...) \
  api.member = reinterpret_cast<TorchApi::member##_type*>(dlsym(cuda, #symbol));
    LITZ_TORCH_CUDA(LITZ_TORCH_FIND_CUDA)
#undef LITZ_TORCH_FIND_CUDA
    dlclose(cuda);
  }
#define LITZ_TORCH_CHECK(member, symbol, ...)                                             \
  if (api.member == nullptr) {                                                            \
    throw UserError("this PyTorch has no function " #symbol "; Litz needs 2.6 or newer"); \
  }
  LITZ_TORCH_REQUIRED(LITZ_TORCH_CHECK)
#undef LITZ_TORCH_CHECK

  api.to_torch_.fill(-1);
  api.from_torch_.fill(DType::kOther);
#define LITZ_TORCH_DTYPE(name, spelling, torch_name, ...)                                    \
  if (auto* number =                                                                         \
          reinterpret_cast<int32_t (*)()>(dlsym(library, "aoti_torch_dtype_" torch_name))) { \
    api.to_torch_[static_cast<size_t>(DType::name)] = number();                              \
    api.from_torch_.at(static_cast<size_t>(number())) = DType::name;                         \
  }
  LITZ_DTYPES(LITZ_TORCH_DTYPE)
#undef LITZ_TORCH_DTYPE
  api.cpu = api.device_type_cpu();
  api.cuda = api.device_type_cuda();
  if (api.layout_strided != nullptr) api.strided = api.layout_strided();
  dlclose(library);
  return api;
}

std::optional<TorchDevice> TorchApi::device(std::string_view text) const {
  if (text == "cpu") return TorchDevice{cpu, kNoDeviceIndex};
  if (!text.starts_with("cuda")) return std::nullopt;
  text.remove_prefix(4);
  TorchDevice device{cuda, kNoDeviceIndex};
  if (text.empty()) return device;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + 1, end, device.index);
  if (text[0] != ':' || parsed.ec != std::errc() || parsed.ptr != end || device.index < 0) {
    return std::nullopt;
  }
  return device;
}

std::string TorchApi::device_text(const TorchDevice& device) const {
  if (device.type == cpu) return "cpu";
  if (device.type != cuda) return "another device";
  return device.index < 0 ? "cuda" : "cuda:" + std::to_string(device.index);
}

}  // namespace litz
