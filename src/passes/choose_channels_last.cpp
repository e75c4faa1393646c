#include "passes/choose_channels_last.h"

#include <string>
#include <unordered_set>

#include "graph/alias_analysis.h"
#include "graph/bind_arguments.h"
#include "graph/op_traits.h"
#include "passes/channels_last.h"
#include "passes/graph_rewriter.h"
#include "passes/layout_rules.h"

namespace litz {
namespace {

constexpr MemoryFormatArg kRowMajor{0};
constexpr MemoryFormatArg kPreserve{1};

// Not row-major as well.
bool is_channels_last_only(const Graph& graph, Value value) {
  const TensorMeta& meta = graph.tensor(value);
  return is_channels_last(graph.context(), meta) && !is_row_major(graph.context(), meta);
}

class Chooser {
 public:
  explicit Chooser(const Graph& graph)
      : graph_(graph),
        aliases_(graph),
        rewriter_(graph),
        as_in_eager_(graph),
        channels_last_(graph),
        is_seen_(graph) {
    for (uint32_t i = 0; i < graph.num_nodes(); ++i) names_.insert(graph.node(NodeId(i)).name);
    for (NodeId input : graph.inputs()) is_seen_[aliases_.storage({input, 0})] = true;
    for_each_strict_output([&](Value value) { is_seen_[aliases_.storage(value)] = true; });
  }

  Graph run() {
    for (uint32_t i = 0; i < graph_.num_nodes(); ++i) {
      const NodeId id(i);
      const Node& node = graph_.node(id);
      if (const std::optional<Convolution> convolution = find_convolution(graph_, id)) {
        add_convolution(id, *convolution);
      } else if (node.kind == NodeKind::kCall && may_follow(id) &&
                 has_channels_last_argument(node)) {
        add_following(id);
      } else {
        add_unchanged(id);
      }
    }
    for_each_strict_output([&](Value value) { as_in_eager(value); });
    for (uint32_t output : graph_.free_layouts()) save(graph_.outputs()[output].get<Value>());
    return rewriter_.finish();
  }

  // What all copies take together.
  double seconds_for_copies() const { return seconds_; }

 private:
  // ---- nodes ----

  void add_unchanged(NodeId id) {
    const Node& node = graph_.node(id);
    for (const Argument& argument : node.arguments)
      for_each_value(argument, [&](Value value) { as_in_eager(value); });
    const NodeId added = rewriter_.copy(id);
    for (uint32_t i = 0; i < node.outputs.size(); ++i) note({id, i}, {added, i});
  }

  void add_convolution(NodeId id, const Convolution& convolution) {
    const Node& node = graph_.node(id);
    const bool tells = tells_channels_last(node, convolution);
    std::vector<Argument> arguments;
    for (const Argument& argument : node.arguments) {
      const Value value = argument.is_value() ? argument.get<Value>() : Value{};
      if (value.valid() && value == convolution.input && !tells) {
        arguments.emplace_back(copy_channels_last(value));
      } else if (value.valid() && has_channels_last(rank(value))) {
        arguments.emplace_back(channels_last(value));
      } else {
        arguments.push_back(any_layout(argument));
      }
    }
    add_call(id, std::move(arguments), [](Value) { return true; });
  }

  void add_following(NodeId id) {
    const Node& node = graph_.node(id);
    std::vector<Argument> arguments;
    for (const Argument& argument : node.arguments) arguments.push_back(any_layout(argument));
    const bool asked = asks_for_format(node);
    add_call(id, std::move(arguments), [&](Value result) {
      return !asked && !is_visible(result) && !aliases_.is_written(result);
    });
    if (asked) note_copy(id);
  }

  // The call with other operands, and results channels-last where `may_follow` says so.
  template <class MayFollow>
  void add_call(NodeId id, std::vector<Argument> arguments, MayFollow may_follow) {
    const Node& node = graph_.node(id);
    std::vector<ValueMeta> outputs = node.outputs;
    for (uint32_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].is_tensor() || !has_channels_last(outputs[i].tensor.sizes.size())) continue;
      // Where only strides of dimensions of size 1 differ, the caller alone could tell.
      const bool same =
          is_channels_last(graph_.context(), outputs[i].tensor) && !is_visible(Value{id, i});
      if (!same && may_follow(Value{id, i})) outputs[i].tensor = laid_out(outputs[i].tensor);
    }
    const NodeId added = rewriter_.result().add_call(node.name, *node.schema, std::move(arguments),
                                                     outputs, node.stack);
    for (uint32_t i = 0; i < outputs.size(); ++i) {
      const Value old{id, i};
      if (outputs[i] == node.outputs[i]) {
        note(old, {added, i});
        continue;
      }
      channels_last_[old] = {added, i};
      // The caller and whoever writes see one tensor, so all views are of this one.
      if (is_visible(old) || aliases_.is_written(old)) as_in_eager(old);
      if (aliases_.is_written(old)) channels_last_[old] = {};
    }
  }

  // The source of a copy in another format has the same elements channels-last.
  void note_copy(NodeId id) {
    const Node& node = graph_.node(id);
    const Value copy{id, 0};
    if (node.schema->name != "aten::clone" || is_visible(copy) || aliases_.is_written(copy)) return;
    const Value source = node.arguments[0].get<Value>();
    if (!aliases_.is_written(source)) channels_last_[copy] = channels_last_[source];
  }

  // An output for the backward graph.
  void save(Value old) {
    if (channels_last_[old].valid() && !is_visible(old)) {
      rewriter_.replace(old, channels_last_[old]);
    } else {
      as_in_eager(old);
    }
  }

  // ---- values ----

  void note(Value old, Value added) {
    as_in_eager_[old] = added;
    rewriter_.replace(old, added);
    if (graph_.meta(old).is_tensor() && is_channels_last(graph_.context(), graph_.tensor(old)))
      channels_last_[old] = added;
  }

  Value as_in_eager(Value old) {
    if (!as_in_eager_[old].valid()) {
      const TensorMeta& meta = graph_.tensor(old);
      const MemoryFormatArg format = is_row_major(graph_.context(), meta) ? kRowMajor : kPreserve;
      as_in_eager_[old] = add_clone(old, channels_last_[old], "_as_in_eager", format, meta);
      rewriter_.replace(old, as_in_eager_[old]);
    }
    return as_in_eager_[old];
  }

  Value channels_last(Value old) {
    if (channels_last_[old].valid()) return channels_last_[old];
    const Value copied = copy_channels_last(old);
    // What is written to later has another copy then.
    if (!aliases_.is_written(old)) channels_last_[old] = copied;
    return copied;
  }

  Value copy_channels_last(Value old) {
    return add_clone(old, as_in_eager(old), "_channels_last", channels_last_format(rank(old)),
                     laid_out(graph_.tensor(old)));
  }

  // Whatever there is of each value.
  Argument any_layout(const Argument& argument) {
    if (argument.is_value()) {
      const Value old = argument.get<Value>();
      return channels_last_[old].valid() ? channels_last_[old] : as_in_eager(old);
    }
    if (!argument.is_list()) return argument;
    ArgumentList list;
    for (const Argument& entry : argument.get<ArgumentList>()) list.push_back(any_layout(entry));
    return list;
  }

  Value add_clone(Value old, Value source, const char* suffix, MemoryFormatArg format,
                  TensorMeta meta) {
    const OpSchema& clone = *rewriter_.result().schemas().find("aten::clone");
    const Node& node = graph_.node(old.node);
    std::string name =
        node.name + (old.output == 0 ? "" : "_" + std::to_string(old.output)) + suffix;
    while (!names_.insert(name).second) name += "_";
    seconds_ += seconds_to_copy(meta);
    return {rewriter_.result().add_call(
                name, clone, bind_arguments(clone, {source}, {{"memory_format", format}}),
                {ValueMeta::of(std::move(meta))}, node.stack),
            0};
  }

  // ---- questions ----

  template <class Function>
  void for_each_strict_output(const Function& function) {
    const std::vector<uint32_t>& free = graph_.free_layouts();
    size_t next = 0;
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      if (next < free.size() && free[next] == i) {
        ++next;
      } else {
        for_each_value(graph_.outputs()[i], function);
      }
    }
  }

  // Who looks at the value's storage sees eager's strides.
  bool is_visible(Value old) const { return is_seen_[aliases_.storage(old)]; }

  bool may_follow(NodeId id) const {
    const OpSchema& schema = *graph_.node(id).schema;
    if (schema.name == "aten::detach" || schema.name == "aten::alias")
      return !is_visible({id, 0}) && !aliases_.is_written({id, 0});
    return keeps_layout(schema);
  }

  size_t rank(Value old) const { return graph_.tensor(old).sizes.size(); }

  TensorMeta laid_out(TensorMeta meta) const {
    meta.strides = channels_last_strides(graph_.context(), meta.sizes);
    meta.offset = graph_.context().constant(0);
    return meta;
  }

  bool has_channels_last_argument(const Node& node) {
    bool found = false;
    for (const Argument& argument : node.arguments) {
      for_each_value(argument, [&](Value old) {
        found = found || (channels_last_[old].valid() &&
                          is_channels_last_only(rewriter_.result(), channels_last_[old]));
      });
    }
    return found;
  }

  static bool asks_for_format(const Node& node) {
    const int position = node.schema->find("memory_format");
    if (position < 0) return false;
    const Argument& format = node.arguments[static_cast<size_t>(position)];
    return !format.is_none() && format != Argument(kPreserve);
  }

  // Where operands are row-major and channels-last at once, the library goes by the strides of
  // dimensions of size 1, and the results may come row-major; a copy has the right ones.
  bool tells_channels_last(const Node& call, const Convolution& convolution) {
    bool matters = false;
    for (const ValueMeta& output : call.outputs) {
      matters = matters || (output.is_tensor() && has_channels_last(output.tensor.sizes.size()) &&
                            !is_row_major(graph_.context(), laid_out(output.tensor)));
    }
    if (!matters) return true;
    for (Value old : {convolution.input, convolution.weight, convolution.gradient}) {
      if (!old.valid()) continue;
      if (!channels_last_[old].valid()) return true;  // a copy
      const TensorMeta& meta = rewriter_.result().tensor(channels_last_[old]);
      if (meta.strides == channels_last_strides(graph_.context(), meta.sizes)) return true;
    }
    return false;
  }

  const Graph& graph_;
  AliasAnalysis aliases_;
  GraphRewriter rewriter_;
  // The new values that stand for an old one; at least one of the two is there.
  ValueMap<Value> as_in_eager_;
  ValueMap<Value> channels_last_;
  ValueMap<char> is_seen_;  // by storage
  std::unordered_set<std::string> names_;
  double seconds_ = 0;
};

struct Convolutions {
  size_t count = 0;
  double seconds_saved = 0;
};

Convolutions count_convolutions(const Graph& graph) {
  Convolutions all;
  for (uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const std::optional<Convolution> convolution = find_convolution(graph, NodeId(i));
    if (!convolution) continue;
    ++all.count;
    // The user has seen to it already.
    if (is_channels_last_only(graph, convolution->input) ||
        is_channels_last_only(graph, convolution->weight))
      continue;
    all.seconds_saved += seconds_saved(graph, *convolution);
  }
  return all;
}

}  // namespace

Graph choose_channels_last(const Graph& graph, const PassOptions& options) {
  if (options.layout_optimization == LayoutOptimization::kOff) return graph;
  const Convolutions convolutions = count_convolutions(graph);
  if (convolutions.count == 0) return graph;
  const bool forced = options.layout_optimization == LayoutOptimization::kOn;
  if (!forced && convolutions.seconds_saved <= 0) return graph;
  Chooser chooser(graph);
  Graph result = chooser.run();
  if (!forced && convolutions.seconds_saved <= chooser.seconds_for_copies()) return graph;
  return result;
}

}  // namespace litz
