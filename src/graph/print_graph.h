// The text form of a Graph; graph/parse_graph.h reads it back.
//
//   schema mylib::scale(Tensor x, float by) -> Tensor
//
//   graph(s0: int[2, inf], %x: f32[s0, 16], %n: int(s0)) {
//     %c: f32[2] = constant(1.0, -2.5)
//     %add: f32[s0, 16] = aten::add.Tensor(%x, %x, alpha=2)  # model.py:12 in forward, x + 2 * x
//     %split:0: f32[s0, 8]{16, 1}, %split:1: f32[s0, 8]{16, 1} offset(8) = aten::split.Tensor(...)
//     return (%add, %split:1, none)
//   }
//
// Grammar; blanks, line ends and "// comments" may stand between any two tokens:
//   text      = { "schema" schema-up-to-end-of-line } graph
//   graph     = "graph" "(" [ item { "," item } ] ")" "{" { node } "return" "(" arguments ")"
//               [ "free_layout" "(" position { "," position } ")" ] "}"
//   item      = symbol ":" "int" "[" low "," high "]"     a size symbol and its range; "inf",
//   "-inf"
//             | value ":" meta                            an input
//   node      = results "=" op "(" arguments ")" [ "#" stack-up-to-end-of-line ]
//             | result "=" "constant" "(" [ elements | "hex" string ] ")"
//   results   = result { "," result } | value             the latter for a call without results
//   result    = value ":" meta
//   value     = "%" name [ ":" number ]                   result `number` of the node; 0 where
//   absent name      = letters, digits, "_" and ".", or a quoted string meta      = dtype "[" sizes
//   "]" [ "{" strides "}" ] [ "offset(" index ")" ]
//               [ "device(" text ")" ] [ "layout(other)" ]
//             | "int(" index ")" | "scalar" | "none"
//   arguments = positional ones, then name "=" argument; what equals the schema's default is left
//   out argument  = value | integer | number with "." or "e", "inf", "-inf", "nan", "nan(0xbits)"
//             | "complex(" number "," number ")" | "true" | "false" | "none" | string | dtype
//             | index | "device(" text ")" | "memory_format(" word ")" | "layout(" word ")"
//             | "[" arguments "]"
// Strides are left out where they are the contiguous ones, the offset where it is zero, the device
// where it is "cpu". Elements and strings are exact: floating-point numbers are the shortest
// decimals that read back to the same bits, and constants of more than 16 elements or of dtypes
// without such a form are the hexadecimal bytes of the memory.
#pragma once

#include <string>

#include "graph/graph.h"

namespace litz {

std::string to_string(const Graph& graph);

// One node, as it stands in the text of the graph, without indentation and line end.
std::string to_string(const Graph& graph, NodeId id);

// Pieces that messages use: "%split:1", "f32[s0, 16]", "aten::add.Tensor".
std::string to_string(const Graph& graph, Value value);
std::string to_string(const TensorMeta& meta);
std::string to_string(const ValueMeta& meta);

}  // namespace litz
