// The exceptions of the Python package, and which C++ exception becomes which.
#include <nanobind/nanobind.h>

#include <exception>
#include <string>

#include "bindings.h"
#include "support/error.h"

namespace nb = nanobind;

namespace litz {
namespace {

nb::object make_exception(nb::module_& module, const char* name, const char* doc,
                          nb::handle bases) {
  const std::string qualified = std::string("litz.") + name;
  nb::object made =
      nb::steal(PyErr_NewExceptionWithDoc(qualified.c_str(), doc, bases.ptr(), nullptr));
  if (!made.is_valid()) throw nb::python_error();
  module.attr(name) = made;
  return made;
}

// Lives as long as the process, like the module.
ExceptionTypes types;

}  // namespace

const ExceptionTypes& exception_types() { return types; }

void bind_errors(nb::module_& m) {
  const nb::object base =
      make_exception(m, "LitzError", "Base of the errors that Litz raises.", PyExc_RuntimeError);
  const nb::object user = make_exception(
      m, "LitzUserError", "What was asked of Litz cannot be done: the message says what to change.",
      nb::make_tuple(base, nb::handle(PyExc_ValueError)));
  const nb::object internal =
      make_exception(m, "LitzInternalError", "A fault in Litz itself. Please report it.", base);
  types = {user.ptr(), internal.ptr()};
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const UserError& error) {
      PyErr_SetString(types.user, error.what());
    } catch (const InternalError& error) {
      PyErr_SetString(types.internal, error.what());
    }
  });
}

}  // namespace litz
