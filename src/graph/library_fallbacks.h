// What options send to the library, whatever Litz has for it: the passes leave it alone and
// lowering makes calls of it.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace litz {

struct LibraryFallbacks {
  bool fallback_everything = false;         // every op: for bisecting
  std::vector<std::string> fallback_ops;    // these ops ("aten::sum", "aten::sum.dim_IntList")
  std::vector<std::string> fallback_nodes;  // nodes of these names

  bool is_library_call(const Node& node) const;
};

}  // namespace litz
