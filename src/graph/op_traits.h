// What rewrites may assume about an op. Everything here is conservative: an op that Litz does not
// know (declared by a front end, so without tags) may do anything that its schema does not exclude.
#pragma once

#include <cstddef>

#include "graph/graph.h"

namespace litz {

// Equal arguments give equal results: nothing is written, nothing is drawn from a generator, and no
// element of a result is left uninitialized.
bool is_pure(const OpSchema& schema);

// Pure, and never raises an error when called with the arguments that it was traced with, whatever
// the elements of its tensors are. Eager's checks are part of an op's meaning, so only such an op
// may be dropped where nobody uses its results: an embedding checks its indices, an integer
// division its divisor, and a convolution sizes that tracing lets pass. An explicit list.
bool cannot_fail(const OpSchema& schema);
// The same for one call, whose metadata may rule out the errors that its op has: a matrix product
// of floats of one dtype, whose sizes tracing has checked.
bool cannot_fail(const Graph& graph, const Node& call);

// Whether each element of the results comes from arguments in a way that a memory layout follows:
// element by element, or from a window or a row of them. Of such an op eager's result takes the
// layout of its arguments, and a rewrite that lays out the arguments anew does well to lay out the
// results likewise. Pure, never a view. The pointwise ops and an explicit list.
bool keeps_layout(const OpSchema& schema);

// Whether the call writes to the storage of this argument.
bool writes_argument(const OpSchema& schema, size_t argument);

// Whether results may share storage with any tensor argument although the schema does not say so.
bool has_hidden_aliases(const OpSchema& schema);

// The position in schema.returns that result `output` of `num_outputs` belongs to; lists of tensors
// are flattened, and several of them share evenly what the other returns leave over.
size_t return_of_output(const OpSchema& schema, size_t num_outputs, size_t output);

// Whether some call writes to an argument.
bool has_mutations(const Graph& graph);

}  // namespace litz
