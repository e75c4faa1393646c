// The invariants of a Graph:
//   1. Inputs come before every other node.
//   2. Every node has a name of its own.
//   3. A call has a schema and one argument for each of the schema's.
//   4. A value that a node or the graph's output uses is a result of an earlier node.
//   5. Each argument is stored as graph/bind_arguments.h says for its type, and a value among them
//      is a tensor where the type is Tensor, an integer or another scalar where it is a number.
//   6. The results of a call are those of its schema: a tensor or nothing for each Tensor, a scalar
//      for everything else, and any number of tensors for each list.
//   7. A tensor has as many strides as sizes, an offset, and a device that is one word.
//   8. Sizes, strides, offsets, integers and symbolic arguments are expressions of the graph's own
//      context over size symbols whose names are identifiers; a constant size or offset is not
//      negative.
//   9. An input and a constant have one result and no arguments; an input's is no None.
//  10. A constant's sizes are constant, its layout is strided, its strides are contiguous and its
//      bytes are as many as its elements need.
//  11. An output of the graph is a value, None, a number, a bool or a symbolic integer.
//  12. The outputs whose layouts are free are given in ascending order, and are tensors.
//  13. A view of other sizes (aten::view, aten::_unsafe_view, aten::reshape) has as many elements
//  as
//      its operand, where both numbers are constant.
#pragma once

#include "graph/graph.h"

namespace litz {

// Throws InternalError "graph invariant 4: ... in '%add: ...'" at the first one that does not hold.
void verify_graph(const Graph& graph);

}  // namespace litz
