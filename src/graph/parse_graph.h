// Reads the text form of a Graph; graph/print_graph.h has the grammar.
#pragma once

#include <string_view>

#include "graph/graph.h"

namespace litz {

// Throws UserError "line 3, column 14: expected ..." where the text is not a graph, names something
// that is not defined above, or calls an op with arguments that its schema does not admit. The
// result may still break an invariant of graph/verify_graph.h.
Graph parse_graph(std::string_view text);

}  // namespace litz
