// Fits the arguments of a call to its schema.
//
// Each schema type is stored in these alternatives; what stands in brackets is converted:
//   Tensor           Value, or a number that stands for a wrapped 0-dim tensor, stored as for
//   Scalar int, SymInt      int64_t, Index, Value              [bool; a constant Index] float
//   double, Index, Value               [int64_t, bool; a constant Index] bool             bool,
//   Value                        [int64_t] complex          complex, Value [double, int64_t, bool]
//   Scalar           int64_t, double, bool, complex, Index, Value   [a constant Index]
//   str              string
//   ScalarType       DType
//   Device           DeviceArg                          [string]
//   Layout, MemoryFormat   LayoutArg, MemoryFormatArg
//   Generator, other None only
// A list holds such elements; for "T[N]" one element stands for N of them, and for "T[]" of scalars
// one element for a list of one. None fits where the type ends in "?" (or the element does).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/argument.h"
#include "graph/op_schema.h"

namespace litz {

// Converts the argument to the stored alternative; false (and the argument in any state) where it
// does not fit.
bool fit_argument(const SchemaArgument& schema, Argument& argument);

// The arguments of a call in schema order, defaults filled in. Throws UserError naming the op and
// the argument where one is missing, unknown, given twice, or does not fit.
std::vector<Argument> bind_arguments(const OpSchema& schema, std::vector<Argument> positional,
                                     std::vector<std::pair<std::string, Argument>> keywords = {});

}  // namespace litz
