// Which values of a graph are computed from frozen inputs alone, so that one computation serves
// many calls.
#pragma once

#include "graph/alias_analysis.h"
#include "graph/graph.h"
#include "graph/value_map.h"

namespace litz {

class FrozenValues {
 public:
  // Both must outlive this.
  FrozenValues(const Graph& graph, const AliasAnalysis& aliases);

  // No input but frozen ones has a part in the value, nobody writes to it, and it takes little
  // memory beside those inputs: no more than twice the largest of them, or a mebibyte.
  bool is_frozen(Value value) const { return facts_[value].is_frozen; }
  // And a frozen input does have a part in it: else it is made of numbers, as aten::arange is.
  bool depends_on_input(Value value) const {
    return is_frozen(value) && facts_[value].input_bytes >= 0;
  }

 private:
  struct Facts {
    bool is_frozen = false;
    double input_bytes = -1;  // of the largest frozen input; negative where there is none
  };
  Facts facts_of(NodeId id) const;
  Facts facts_of_call(const Node& node) const;

  const Graph& graph_;
  const AliasAnalysis& aliases_;
  ValueMap<Facts> facts_;
};

// Whether the graph has a frozen input at all.
bool has_frozen_inputs(const Graph& graph);

}  // namespace litz
