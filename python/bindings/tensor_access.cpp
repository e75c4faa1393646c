#include "tensor_access.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "support/error.h"

namespace nb = nanobind;

namespace litz {
namespace {

// A tensor object holds the pointer that `_cdata` reports shortly after the object's header, alone
// or behind a flag; the slot that holds it is an at::Tensor. Both probes must agree.
ptrdiff_t find_handle_offset(nb::handle torch) {
  const nb::object probes[] = {torch.attr("empty")(2, 3), torch.attr("zeros")(5)};
  for (const size_t offset : {sizeof(PyObject), sizeof(PyObject) + sizeof(void*)}) {
    bool agrees = true;
    for (const nb::object& probe : probes) {
      const auto expected = nb::cast<uintptr_t>(probe.attr("_cdata"));
      uintptr_t found = 0;
      std::memcpy(&found, reinterpret_cast<const char*>(probe.ptr()) + offset, sizeof(found));
      agrees = agrees && found == expected;
    }
    if (agrees) return static_cast<ptrdiff_t>(offset);
  }
  throw UserError("this PyTorch stores tensors in Python objects in a way that Litz does not know");
}

PyObject* (*find_wrap())(TorchTensor) {
  void* library = dlopen("libtorch_python.so", RTLD_NOLOAD | RTLD_LAZY);
  if (library == nullptr) return nullptr;
  void* found = dlsym(library, "_Z16THPVariable_WrapRKN2at10TensorBaseE");
  if (found == nullptr) found = dlsym(library, "_Z16THPVariable_WrapN2at10TensorBaseE");
  dlclose(library);
  return reinterpret_cast<PyObject* (*)(TorchTensor)>(found);
}

}  // namespace

TensorAccess::TensorAccess(const TorchApi& api) : api_(api), wrap_(find_wrap()) {
  const nb::module_ torch = nb::module_::import_("torch");
  tensor_type_ = reinterpret_cast<PyTypeObject*>(torch.attr("Tensor").ptr());
  tensor_base_ = reinterpret_cast<PyTypeObject*>(torch.attr("_C").attr("TensorBase").ptr());
  handle_offset_ = find_handle_offset(torch);
#define LITZ_FIND_DTYPE(name, spelling, torch_name, ...)                      \
  if (nb::hasattr(torch, torch_name)) {                                       \
    dtypes_[static_cast<size_t>(DType::name)] = torch.attr(torch_name).ptr(); \
  }
  LITZ_DTYPES(LITZ_FIND_DTYPE)
#undef LITZ_FIND_DTYPE
  const char* formats[] = {"contiguous_format", "preserve_format", "channels_last",
                           "channels_last_3d"};
  for (size_t i = 0; i < memory_formats_.size(); ++i) {
    memory_formats_[i] = nb::object(torch.attr(formats[i])).ptr();
  }
  strided_ = nb::object(torch.attr("strided")).ptr();
  device_type_ = nb::object(torch.attr("device")).ptr();
  steal_handle_ =
      nb::object(torch.attr("_C").attr("_aoti").attr("alloc_tensor_by_stealing_from_void_ptr"))
          .ptr();
}

PyObject* TensorAccess::wrap(TorchTensor owned) const {
  if (wrap_ != nullptr) {
    PyObject* object = wrap_(owned);
    api_.delete_tensor(owned);
    return object;
  }
  const nb::object capsule = nb::steal(PyCapsule_New(owned, nullptr, nullptr));
  return nb::handle(steal_handle_)(capsule).release().ptr();
}

PyObject* TensorAccess::memory_format(int64_t number) const {
  if (number < 0 || number >= static_cast<int64_t>(memory_formats_.size())) {
    throw UserError("unknown memory format " + std::to_string(number));
  }
  return memory_formats_[static_cast<size_t>(number)];
}

nb::object TensorAccess::device(const char* text) const { return nb::handle(device_type_)(text); }

}  // namespace litz
