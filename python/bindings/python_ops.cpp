#include "python_ops.h"

#include "support/error.h"

namespace nb = nanobind;

namespace litz {

nb::object PythonOpCalls::to_python(const LitzValue& value) const {
  switch (static_cast<LitzValueKind>(value.kind)) {
    case LITZ_NONE:
      return nb::none();
    case LITZ_TENSOR: {
      // Workspace memory is lent: the temporary goes, the Python object keeps the tensor.
      TorchTemporaries temporaries(api_, device_);
      const TorchTensor handle = temporaries.handle(*value.u.tensor);
      TorchTensor owned = nullptr;
      if (handle == nullptr || api_.new_handle(handle, &owned) != 0) {
        throw UserError("an argument could not be made a tensor: " + api_.last_error());
      }
      nb::object tensor = nb::steal(access_.wrap(owned));
      if (!tensor.is_valid()) throw nb::python_error();
      return tensor;
    }
    case LITZ_INT:
      return nb::int_(value.u.i);
    case LITZ_DOUBLE:
      return nb::float_(value.u.d);
    case LITZ_BOOL:
      return nb::bool_(value.u.i != 0);
    case LITZ_STRING:
      return nb::str(value.u.s);
    case LITZ_DTYPE:
      return nb::borrow(access_.dtype(static_cast<DType>(value.u.i)));
    case LITZ_LIST: {
      nb::list list;
      for (int32_t i = 0; i < value.count; ++i) list.append(to_python(value.u.list[i]));
      return list;
    }
    case LITZ_DEVICE:
      return access_.device(value.u.s);
    case LITZ_LAYOUT:
      if (value.u.i != 0) throw UserError("unknown layout " + std::to_string(value.u.i));
      return nb::borrow(access_.strided());
    case LITZ_MEMORY_FORMAT:
      return nb::borrow(access_.memory_format(value.u.i));
    case LITZ_SAME_INPUT:
    case LITZ_SAME_OUTPUT:
      break;
  }
  throw InternalError("argument of unknown kind " + std::to_string(value.kind));
}

void PythonOpCalls::deliver(nb::handle value, LitzValue* results, int32_t num_results,
                            int32_t* next) const {
  if (nb::isinstance<nb::tuple>(value) || nb::isinstance<nb::list>(value)) {
    for (nb::handle item : value) deliver(item, results, num_results, next);
    return;
  }
  const int32_t index = (*next)++;
  if (index >= num_results) return;
  LitzValue& result = results[index];
  if (value.is_none()) {
    result.kind = LITZ_NONE;
  } else if (access_.is_tensor(value.ptr())) {
    TorchTensor owned = nullptr;
    if (api_.new_handle(access_.handle(value.ptr()), &owned) != 0) {
      throw InternalError("a result has no handle: " + api_.last_error());
    }
    const std::string fault = deliver_tensor(api_, device_, owned, &result);
    if (!fault.empty()) throw InternalError(fault);
  } else if (nb::isinstance<nb::bool_>(value)) {
    result.kind = LITZ_BOOL;
    result.u.i = nb::cast<bool>(value) ? 1 : 0;
  } else if (nb::isinstance<nb::int_>(value)) {
    result.kind = LITZ_INT;
    result.u.i = nb::cast<int64_t>(value);
  } else if (nb::isinstance<nb::float_>(value)) {
    result.kind = LITZ_DOUBLE;
    result.u.d = nb::cast<double>(value);
  } else {
    throw InternalError("the op returned a value of type " +
                        std::string(nb::str(value.type().attr("__name__")).c_str()));
  }
}

int PythonOpCalls::call(int32_t op, const LitzValue* args, int32_t num_args, LitzValue* results,
                        int32_t num_results, std::string* message) {
  nb::gil_scoped_acquire gil;
  // A dispatch mode written in Python may have failed on the way here; the call below says why.
  PyErr_Clear();
  try {
    nb::object arguments = nb::steal(PyTuple_New(num_args));
    if (!arguments.is_valid()) throw nb::python_error();
    for (int32_t i = 0; i < num_args; ++i) {
      PyTuple_SET_ITEM(arguments.ptr(), i, to_python(args[i]).release().ptr());
    }
    const nb::object result =
        nb::steal(PyObject_CallObject(callables_[static_cast<size_t>(op)].ptr(), arguments.ptr()));
    if (!result.is_valid()) throw nb::python_error();
    int32_t next = 0;
    deliver(result, results, num_results, &next);
    if (next != num_results) {
      throw InternalError("the op returned " + std::to_string(next) +
                          " results, the graph expects " + std::to_string(num_results));
    }
    return LITZ_OK;
  } catch (nb::python_error& error) {
    *message = error.what();
    raised_ = nb::borrow(error.value());
  } catch (const std::exception& error) {
    *message = error.what();
  }
  return LITZ_ERROR;
}

void PythonOpCalls::drop_input(int32_t input) {
  const nb::gil_scoped_acquire acquired;
  PyObject** place = &reinterpret_cast<PyTupleObject*>(owned_)->ob_item[input];
  PyObject* dropped = *place;
  *place = Py_NewRef(Py_None);
  Py_DECREF(dropped);
}

}  // namespace litz
