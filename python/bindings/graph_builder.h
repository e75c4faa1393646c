// litz._core.GraphBuilder: how the Python door builds a Graph, node by node.
//
// Values are Value(node, output). Arguments of calls are None, bool, int, float, complex, str,
// Value, lists or tuples of those, and
//   Sym("2*s0")                          a symbolic integer, sympy's text over declared symbols
//   DTypeArg("float32"), DeviceArg("cuda:0"), LayoutArg("strided"),
//   MemoryFormatArg("channels_last")
// Sizes, strides and offsets are int or such a text. Metadata of results are tuples:
//   ("tensor", dtype, sizes, strides, offset, device, layout)    layout "strided" or any other word
//   ("int", expression), ("scalar",), ("none",), ("list", [metadata, ...])
// A list is flattened: its elements become results of the node.
#pragma once

#include <nanobind/nanobind.h>

namespace litz {

void bind_graph_builder(nanobind::module_& module);

}  // namespace litz
