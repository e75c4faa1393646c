// Builds a new graph from an old one, node by node in order. A pass walks the old nodes and for
// each one copies it, replaces its results, or leaves it out.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/value_map.h"

namespace litz {

class GraphRewriter {
 public:
  // `old` must outlive the rewriter.
  explicit GraphRewriter(const Graph& old);

  const Graph& old() const { return old_; }
  // The graph so far; a pass may add nodes of its own.
  Graph& result() { return result_; }

  // Copies the node with its arguments mapped; returns the new node.
  NodeId copy(NodeId old_node);
  // The same for a call whose arguments have been mapped already.
  NodeId copy_call(NodeId old_node, std::vector<Argument> mapped_arguments);
  // A new call of an op by its full name, made in the place of an old node, whose line it gets.
  Value add_call(NodeId old_node, std::string_view op, std::vector<Argument> positional,
                 std::vector<std::pair<std::string, Argument>> keywords, TensorMeta meta);
  // A name that no node of the old graph has, and none that this gave before.
  std::string fresh_name(std::string stem);
  // From here on uses of the old value become uses of the new one.
  void replace(Value old_value, Value new_value) { map_[old_value] = new_value; }

  // The new value; InternalError where the old one was left out.
  Value map(Value old_value) const;
  Argument map(const Argument& old_argument) const;
  std::vector<Argument> map(const std::vector<Argument>& old_arguments) const;

  // Maps the outputs, whose layouts are as free as before, and gives the new graph away.
  Graph finish();

 private:
  const Graph& old_;
  Graph result_;
  ValueMap<Value> map_;
  std::unordered_set<std::string> names_;  // of the old graph and those given; filled when needed
};

}  // namespace litz
