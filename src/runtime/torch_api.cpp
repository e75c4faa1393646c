#include "runtime/torch_api.h"

#include <dlfcn.h>

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
  if (api.layout_strided != nullptr) api.strided = api.layout_strided();
  dlclose(library);
  return api;
}

}  // namespace litz
