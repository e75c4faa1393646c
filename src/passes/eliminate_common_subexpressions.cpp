#include "passes/eliminate_common_subexpressions.h"

#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/alias_analysis.h"
#include "graph/hash.h"
#include "graph/op_traits.h"
#include "passes/graph_rewriter.h"

namespace litz {
namespace {

// Equal calls that must stay apart are not compared with more than this many others, so that a
// hundred thousand of them take linear time.
constexpr size_t kMaxCandidates = 8;

class Eliminator {
 public:
  explicit Eliminator(const Graph& graph)
      : graph_(graph), aliases_(graph), rewriter_(graph), is_visible_(graph), is_output_(graph) {
    for (const Argument& output : graph.outputs()) {
      for_each_value(output, [&](Value value) { is_output_[value] = true; });
    }
    for (uint32_t i = 0; i < graph.num_nodes(); ++i) {
      for (uint32_t k = 0; k < graph.node(NodeId(i)).outputs.size(); ++k) {
        const Value value{NodeId(i), k};
        is_visible_[value] = aliases_.is_visible(value);
      }
    }
  }

  Graph run() {
    for (uint32_t i = 0; i < graph_.num_nodes(); ++i) {
      const NodeId id(i);
      const Node& node = graph_.node(id);
      if (node.kind == NodeKind::kCall && is_pure(*node.schema)) {
        merge_or_copy(id);
      } else {
        rewriter_.copy(id);
      }
    }
    return rewriter_.finish();
  }

 private:
  // A call that stayed: its ids in the old and in the new graph.
  struct Kept {
    NodeId old_id;
    NodeId new_id;
  };

  void merge_or_copy(NodeId id) {
    const Node& node = graph_.node(id);
    std::vector<Argument> arguments = rewriter_.map(node.arguments);
    uint64_t key = std::hash<const void*>()(node.schema);
    for (const Argument& argument : arguments) key = mix_hash(key, hash(argument));
    std::vector<Kept>& candidates = kept_[key];
    for (const Kept& kept : candidates) {
      if (!is_same_call(kept, id, arguments) || !may_merge(kept.old_id, id)) continue;
      merge(kept, id);
      return;
    }
    const NodeId copied = rewriter_.copy_call(id, std::move(arguments));
    if (candidates.size() < kMaxCandidates) candidates.push_back({id, copied});
  }

  bool is_same_call(const Kept& kept, NodeId id, const std::vector<Argument>& arguments) {
    const Node& a = graph_.node(kept.old_id);
    const Node& b = graph_.node(id);
    return a.schema == b.schema && rewriter_.result().node(kept.new_id).arguments == arguments &&
           a.outputs == b.outputs && versions(kept.old_id) == versions(id);
  }

  // How often each argument's storage was written before the call. Where the two calls' arguments
  // are different values that were merged, neither storage is ever written.
  std::vector<size_t> versions(NodeId id) const {
    std::vector<size_t> result;
    for (const Argument& argument : graph_.node(id).arguments) {
      for_each_value(argument,
                     [&](Value value) { result.push_back(aliases_.writes_before(value, id)); });
    }
    return result;
  }

  bool may_merge(NodeId kept, NodeId id) const {
    for (uint32_t k = 0; k < graph_.node(id).outputs.size(); ++k) {
      const Value a{kept, k};
      const Value b{id, k};
      if (is_output_[a] && is_output_[b]) return false;
      if (aliases_.storage(a) == aliases_.storage(b)) continue;
      if (aliases_.is_written(a) || aliases_.is_written(b)) return false;
      if (is_visible_[aliases_.storage(a)] && is_visible_[aliases_.storage(b)]) return false;
    }
    return true;
  }

  void merge(const Kept& kept, NodeId id) {
    for (uint32_t k = 0; k < graph_.node(id).outputs.size(); ++k) {
      const Value a{kept.old_id, k};
      const Value b{id, k};
      rewriter_.replace(b, {kept.new_id, k});
      is_output_[a] = is_output_[a] || is_output_[b];
      is_visible_[aliases_.storage(a)] =
          is_visible_[aliases_.storage(a)] || is_visible_[aliases_.storage(b)];
    }
  }

  const Graph& graph_;
  AliasAnalysis aliases_;
  GraphRewriter rewriter_;
  std::unordered_map<uint64_t, std::vector<Kept>> kept_;  // by hash of op and arguments
  ValueMap<char> is_visible_;                             // by storage, merged ones counted in
  ValueMap<char> is_output_;                              // is itself an output of the graph
};

}  // namespace

Graph eliminate_common_subexpressions(const Graph& graph) { return Eliminator(graph).run(); }

}  // namespace litz
