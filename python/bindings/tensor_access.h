// Python tensors and torch's tensor handles, without libtorch's headers.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>

#include "runtime/torch_api.h"

namespace litz {

class TensorAccess {
 public:
  // Finds out how this torch stores a tensor in its Python object. Throws UserError where that is
  // in no known way. Needs the GIL, like everything here.
  explicit TensorAccess(const TorchApi& api);

  bool is_tensor(PyObject* object) const {
    return Py_TYPE(object) == tensor_type_ || PyType_IsSubtype(Py_TYPE(object), tensor_base_);
  }

  // The handle inside a tensor object: borrowed, valid as long as the object.
  TorchTensor handle(PyObject* tensor) const {
    return reinterpret_cast<char*>(tensor) + handle_offset_;
  }

  // The Python object of a tensor: the one it has, or a new one. Takes over `owned`. New reference.
  PyObject* wrap(TorchTensor owned) const;

  // What counts the writes to a tensor, shared by its views and what it is detached to; nullptr
  // where this torch keeps it in a way that is not known. As long as one of these tensors lives no
  // other counter has that address.
  const void* version_counter(PyObject* tensor) const;

  // torch.float32 and so on; borrowed. nullptr where this torch lacks the dtype.
  PyObject* dtype(DType dtype) const { return dtypes_[static_cast<size_t>(dtype)]; }
  // torch.contiguous_format and so on, by torch's number; borrowed. Throws UserError for others.
  PyObject* memory_format(int64_t number) const;
  PyObject* strided() const { return strided_; }
  nanobind::object device(const char* text) const;

 private:
  // THPVariable_Wrap: by its C++ name, whose argument is a reference to the tensor in all releases.
  using Wrap = PyObject* (*)(TorchTensor);

  const TorchApi& api_;
  // Borrowed from the torch module, which is never unloaded.
  PyTypeObject* tensor_type_ = nullptr;
  PyTypeObject* tensor_base_ = nullptr;
  std::array<PyObject*, 32> dtypes_{};
  std::array<PyObject*, 4> memory_formats_{};
  PyObject* strided_ = nullptr;
  PyObject* device_type_ = nullptr;
  PyObject* steal_handle_ = nullptr;  // torch._C._aoti.alloc_tensor_by_stealing_from_void_ptr
  Wrap wrap_ = nullptr;
  ptrdiff_t handle_offset_ = 0;
  mutable ptrdiff_t counter_offset_ = kNotSought;  // in what the handle points to
  static constexpr ptrdiff_t kNotSought = -2;
  static constexpr ptrdiff_t kUnknown = -1;
};

}  // namespace litz
