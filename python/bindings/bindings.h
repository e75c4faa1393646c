// The parts of litz._core. Each adds its classes and functions to the module.
#pragma once

#include <nanobind/nanobind.h>

namespace litz {

// The Python classes of the errors; borrowed, valid after bind_errors.
struct ExceptionTypes {
  PyObject* user = nullptr;
  PyObject* internal = nullptr;
};
const ExceptionTypes& exception_types();

void bind_errors(nanobind::module_& module);
void bind_compiled_graph(nanobind::module_& module);
void bind_frozen_graph(nanobind::module_& module);
void bind_graph_builder(nanobind::module_& module);
void bind_compiler(nanobind::module_& module);

}  // namespace litz
