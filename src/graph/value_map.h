// A dense map from the values of one graph.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace litz {

template <class T>
class ValueMap {
 public:
  // The graph as it stands now; values of nodes added later are not in the map.
  explicit ValueMap(const Graph& graph, T initial = T()) {
    first_.reserve(graph.num_nodes() + 1);
    first_.push_back(0);
    for (uint32_t i = 0; i < graph.num_nodes(); ++i) {
      first_.push_back(first_.back() + static_cast<uint32_t>(graph.node(NodeId(i)).outputs.size()));
    }
    items_.resize(first_.back(), std::move(initial));
  }

  T& operator[](Value value) { return items_[first_[value.node.value] + value.output]; }
  const T& operator[](Value value) const { return items_[first_[value.node.value] + value.output]; }

 private:
  std::vector<uint32_t> first_;  // by node: position of its output 0 in items_
  std::vector<T> items_;
};

}  // namespace litz
