// litz._core: the door between the Python package and the C++ compiler.
#include <nanobind/nanobind.h>

#include <string>

#include "bindings.h"
#include "support/version.h"

namespace nb = nanobind;

NB_MODULE(_core, m) {
  // Dynamo keeps compiled graphs until the interpreter ends, when nothing is freed any more.
  nb::set_leak_warnings(false);
  m.doc() = "The C++ core of Litz.";
  m.attr("__version__") = nb::str(std::string(litz::version()).c_str());
  litz::bind_errors(m);
  litz::bind_compiled_graph(m);
  litz::bind_graph_builder(m);
  litz::bind_frozen_graph(m);
  litz::bind_compiler(m);
}
