// What a failure leaves behind, so that it can be looked into.
#pragma once

#include <string>

#include "driver/options.h"
#include "graph/graph.h"

namespace litz {

// Writes the graph to a file in a new folder below temporary_folder(). Returns the end of a
// message, with the command that compiles the graph again with these options:
// "; reproduce it with: litz-opt --compile --option ... FILE". Empty where the
// graph cannot be printed or no file be written.
std::string reproduce_hint(const Graph& graph, const Options& options);

}  // namespace litz
