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

// A tensor and what it is detached to share the counter of writes, and what `.data` gives has one
// of its own: the one word at which the three are so. -1: not one.
template <class WordsOf>
ptrdiff_t find_counter_offset(const WordsOf& words_of) {
  constexpr size_t kWords = 12;
  const nb::module_ torch = nb::module_::import_("torch");
  const nb::object mode = torch.attr("inference_mode")(false);
  mode.attr("__enter__")();
  ptrdiff_t found = -1;
  size_t matches = 0;
  const nb::object probes[] = {torch.attr("empty")(2, 3), torch.attr("zeros")(5)};
  const nb::object detached[] = {probes[0].attr("detach")(), probes[1].attr("detach")()};
  const nb::object apart[] = {probes[0].attr("data"), probes[1].attr("data")};
  for (size_t word = 0; word < kWords; ++word) {
    const auto value = [&](const nb::object& tensor) { return words_of(tensor.ptr())[word]; };
    bool agrees = value(probes[0]) != value(probes[1]);
    for (size_t i = 0; i < 2; ++i) {
      agrees = agrees && value(probes[i]) != 0 && value(probes[i]) == value(detached[i]) &&
               value(probes[i]) != value(apart[i]);
    }
    if (!agrees) continue;
    ++matches;
    found = static_cast<ptrdiff_t>(word * sizeof(uintptr_t));
  }
  mode.attr("__exit__")(nb::none(), nb::none(), nb::none());
  return matches == 1 ? found : -1;
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

const void* TensorAccess::version_counter(PyObject* tensor) const {
  const auto words_of = [&](PyObject* object) {
    const uintptr_t* words = nullptr;
    std::memcpy(&words, handle(object), sizeof(words));
    return words;
  };
  if (counter_offset_ == kNotSought) counter_offset_ = find_counter_offset(words_of);
  if (counter_offset_ == kUnknown) return nullptr;
  return reinterpret_cast<const void*>(
      words_of(tensor)[static_cast<size_t>(counter_offset_) / sizeof(uintptr_t)]);
}

PyObject* TensorAccess::memory_format(int64_t number) const {
  if (number < 0 || number >= static_cast<int64_t>(memory_formats_.size())) {
    throw UserError("unknown memory format " + std::to_string(number));
  }
  return memory_formats_[static_cast<size_t>(number)];
}

nb::object TensorAccess::device(const char* text) const { return nb::handle(device_type_)(text); }

}  // namespace litz
