// Which values share storage, who writes to it and how long it is looked at.
//
// Two values share storage where a chain of views connects them (alias annotations of the schemas,
// and the few views that have none). The answer may be "shares" where the storage is in truth
// separate (aten::reshape that copies), never the other way round, with one exception that belongs
// to the caller of the graph: distinct inputs are taken to be distinct storages.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "graph/value_map.h"

namespace litz {

class AliasAnalysis {
 public:
  explicit AliasAnalysis(const Graph& graph);

  // The first value of the storage that `value` looks into; equal exactly for values that share.
  Value storage(Value value) const { return storage_[value]; }

  // Some call writes to the storage of `value`.
  bool is_written(Value value) const { return !facts(value).writers.empty(); }
  // A call among the nodes first < n <= last does.
  bool is_written_between(Value value, NodeId first, NodeId last) const;
  // How many calls before `node` do.
  size_t writes_before(Value value, NodeId node) const;
  // The last node that reads or writes the storage; the value's own node where none does.
  NodeId last_use(Value value) const { return facts(value).last_use; }
  // The caller can see the storage: an input or an output of the graph looks into it.
  bool is_visible(Value value) const { return facts(value).is_visible; }

 private:
  struct Facts {
    std::vector<NodeId> writers;  // in order
    NodeId last_use;
    bool is_visible = false;
  };
  const Facts& facts(Value value) const { return facts_[storage_[value]]; }
  Facts& facts(Value value) { return facts_[storage_[value]]; }

  void find_storages(const Graph& graph);
  void unite_results(const Node& node, NodeId id);
  void unite(Value a, Value b);
  Value find(Value value);

  ValueMap<Value> storage_;  // union-find parents, then roots
  ValueMap<Facts> facts_;    // by root
};

}  // namespace litz
