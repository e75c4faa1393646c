// Splits a graph into what depends on frozen inputs alone and the rest.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace litz {

struct SplitGraph {
  // An input of `rest`: an input of the whole graph, or an output of `frozen`, by position.
  struct Source {
    bool is_computed = false;
    uint32_t position = 0;
  };
  Graph frozen;
  std::vector<uint32_t> frozen_inputs;  // positions in the inputs of the whole graph
  Graph rest;
  std::vector<Source> rest_inputs;
};

// `frozen` has no outputs where there is nothing to compute ahead.
//
// What `frozen` computes is memory of its own: views of inputs stay in `rest`, where they cost
// nothing, and so does what the caller gets to see and may write to. Frozen inputs that only
// `frozen` reads are no inputs of `rest`, which has no frozen ones: it is compiled like any other.
SplitGraph split_frozen(const Graph& graph);

}  // namespace litz
