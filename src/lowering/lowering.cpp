#include "lowering/lowering.h"

#include <algorithm>
#include <limits>

#include "graph/op_traits.h"
#include "graph/packed_linear.h"
#include "lowering/lowering_context.h"
#include "support/error.h"

namespace litz {
namespace {

constexpr const char* kOnPurpose = "";

std::vector<Index> placeholders(IndexContext& context, std::span<const Index> sizes) {
  return make_loops(context, sizes).variables;
}

// True if the strides walk the same memory: those of dimensions of size 1 do not matter.
bool same_strides(std::span<const Index> sizes, std::span<const Index> a,
                  std::span<const Index> b) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!sizes[i].is_constant(1) && a[i] != b[i]) return false;
  }
  return true;
}

// Whether two elements may lie in the same place, but for dimensions that are expanded: rows that
// reach into each other count, also where their elements miss each other. False where sizes or
// strides are symbolic.
bool overlaps_itself(const ValueMeta& meta) {
  if (!meta.is_tensor()) return false;
  std::vector<std::pair<int64_t, int64_t>> steps;  // stride and size
  for (size_t i = 0; i < meta.tensor.sizes.size(); ++i) {
    const Index size = meta.tensor.sizes[i];
    const Index stride = meta.tensor.strides[i];
    if (!size.is_constant() || !stride.is_constant()) return false;
    if (size.constant() == 0) return false;
    if (size.constant() > 1 && stride.constant() != 0)
      steps.emplace_back(stride.constant(), size.constant());
  }
  std::sort(steps.begin(), steps.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : steps) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

}  // namespace

std::vector<Index> coordinates_at(const TensorValue& value, std::span<const Index> position) {
  Substitution substitution;
  for (size_t i = 0; i < position.size(); ++i) {
    const Index placeholder =
        position[i].context().variable(static_cast<uint32_t>(i), value.sizes[i]);
    if (placeholder.is_symbol()) substitution.set(placeholder, position[i]);
  }
  std::vector<Index> coordinates;
  coordinates.reserve(value.coordinates.size());
  for (Index c : value.coordinates) coordinates.push_back(substitution.apply(c));
  return coordinates;
}

// ---- the walk over the graph ----

LoweringContext::LoweringContext(const Graph& graph, const LoweringOptions& options)
    : graph_(graph),
      options_(options),
      program_(graph.shared_context()),
      values_(graph),
      users_(graph),
      is_output_(graph) {
  for (uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const Node& node = graph.node(NodeId(i));
    if (node.kind == NodeKind::kCall && node.schema->mutates()) mutations_.emplace_back(i);
    for (const Argument& argument : node.arguments) {
      for_each_value(argument, [&](Value value) {
        std::vector<NodeId>& users = users_[value];
        if (users.empty() || users.back() != NodeId(i)) users.emplace_back(i);
      });
    }
  }
  for (const Argument& output : graph.outputs()) {
    for_each_value(output, [&](Value value) { is_output_[value] = true; });
  }
}

LoweringResult LoweringContext::run() {
  for (uint32_t i = 0; i < graph_.num_nodes(); ++i) {
    const NodeId id(i);
    switch (graph_.node(id).kind) {
      case NodeKind::kInput:
        add_input(id);
        break;
      case NodeKind::kConstant:
        add_constant(id);
        break;
      case NodeKind::kCall:
        lower_call(id);
        break;
    }
  }
  add_outputs();
  return {std::move(program_), std::move(fallbacks_), std::move(candidates_)};
}

void LoweringContext::add_input(NodeId id) {
  const Node& node = graph_.node(id);
  const ValueMeta& meta = node.outputs[0];
  const uint32_t number = static_cast<uint32_t>(program_.inputs.size());
  if (meta.kind == ValueMeta::Kind::kInt) {
    program_.inputs.push_back({node.name, {}, meta.integer});
    set_index({id, 0}, meta.integer);
    return;
  }
  if (!meta.is_tensor())
    throw UserError("input " + node.name + " is neither a tensor nor an integer");
  Buffer buffer;
  buffer.name = fresh_name(node.name);
  buffer.dtype = meta.tensor.dtype;
  buffer.sizes = meta.tensor.sizes;
  buffer.strides = meta.tensor.strides;
  buffer.kind = BufferKind::kInput;
  buffer.number = number;
  const BufferId added = program_.add_buffer(std::move(buffer));
  if (!meta.tensor.offset.is_constant(0)) storage_offsets_[added.value] = meta.tensor.offset;
  program_.inputs.push_back({node.name, added, {}});
  set({id, 0}, whole(added));
}

void LoweringContext::add_constant(NodeId id) {
  const Node& node = graph_.node(id);
  const TensorMeta& meta = node.outputs[0].tensor;
  Buffer buffer;
  buffer.name = fresh_name(node.name);
  buffer.dtype = meta.dtype;
  buffer.sizes = meta.sizes;
  buffer.strides = contiguous_strides(program_.indices(), meta.sizes);
  buffer.kind = BufferKind::kConstant;
  buffer.bytes = node.constant_bytes;
  set({id, 0}, whole(program_.add_buffer(std::move(buffer))));
}

void LoweringContext::lower_call(NodeId id) {
  const Node& node = graph_.node(id);
  origin_ = node_origin(node.name, node.stack);
  op_ = node.schema->name;
  const std::string op = node.schema->full_name();
  if (options_.is_library_call(node)) {
    call_library(id, "an option asks for the library");
    return;
  }
  if (op == kPackedLinear && compute_packed_product(id)) return;
  const LoweringFunction function = find_lowering(op);
  if (function == nullptr) {
    call_library(id, "Litz has no lowering for it");
    return;
  }
  if (applied_.contains(id)) {
    set({id, 0}, tensor(node.arguments[0].get<Value>()));
    return;
  }
  if (function == lower_to_library) {
    if (!lower_product(id) && !compute_convolution_on_cpu(id) && !lower_attention(id))
      call_library(id, kOnPurpose);
    return;
  }
  const bool native = std::all_of(
      node.outputs.begin(), node.outputs.end(),
      [](const ValueMeta& meta) { return !meta.is_tensor() || is_native(meta.tensor.dtype); });
  if (!native) {
    call_library(id, "its result has a dtype that Litz does not compute with");
    return;
  }
  // Eager writes the elements of such a result one over the other.
  const bool is_view = !node.schema->returns.empty() && !node.schema->returns[0].alias_set.empty();
  if (!is_view && std::any_of(node.outputs.begin(), node.outputs.end(), overlaps_itself)) {
    call_library(id, "elements of its result may share memory");
    return;
  }
  if (const std::string reason = argument_obstacle(node); !reason.empty()) {
    call_library(id, reason);
    return;
  }
  OpCall call(*this, id);
  if (const std::optional<Unsupported> refused = function(call)) call_library(id, refused->reason);
}

std::string LoweringContext::argument_obstacle(const Node& node) const {
  std::string obstacle;
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    const Argument& argument = node.arguments[i];
    const SchemaArgument& wanted = node.schema->arguments[i];
    if (argument.is_none() && wanted.base == SchemaType::kTensor && !wanted.is_optional)
      obstacle = "an argument is an undefined tensor";
    if (argument.holds<std::complex<double>>()) obstacle = "an argument is a complex number";
    for_each_value(argument, [&](Value value) {
      const ValueMeta& meta = graph_.meta(value);
      if (meta.kind == ValueMeta::Kind::kOtherScalar)
        obstacle = "an argument is a number known only at run time";
      if (meta.is_tensor() && !is_native(meta.tensor.dtype))
        obstacle = "an argument has a dtype that Litz does not compute with";
      if (meta.is_tensor() && meta.tensor.layout != TensorLayout::kStrided)
        obstacle = "an argument is not a strided tensor";
    });
  }
  return obstacle;
}

void LoweringContext::call_library(NodeId id, std::string reason) {
  const Node& node = graph_.node(id);
  const OpSchema& schema = *node.schema;
  if (!reason.empty()) fallbacks_.push_back({schema.full_name(), node.name, node.stack, reason});
  ExternKernel kernel;
  kernel.name = schema.name;
  kernel.overload = schema.overload;
  kernel.schema = to_string(schema);
  kernel.node = node.name;
  kernel.reason = std::move(reason);
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    kernel.arguments.push_back(extern_argument(node.arguments[i]));
    if (!schema.arguments[i].is_mutated) continue;
    if (const auto* view = std::get_if<BufferView>(&kernel.arguments.back().v))
      kernel.mutated.push_back(view->buffer);
  }
  if (!kernel.mutated.empty()) padded_.clear();
  kernel.results_are_views =
      std::any_of(schema.returns.begin(), schema.returns.end(),
                  [](const SchemaArgument& r) { return !r.alias_set.empty() && !r.is_mutated; });
  kernel.results_may_alias =
      has_hidden_aliases(schema) ||
      std::any_of(schema.returns.begin(), schema.returns.end(),
                  [](const SchemaArgument& r) { return !r.alias_set.empty() && r.is_mutated; });
  kernel.has_side_effects = !cannot_fail(graph_, node);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueMeta& meta = node.outputs[i];
    if (!meta.is_tensor()) {
      // An integer that tracing knows, such as the lengths that attention returns, is a constant.
      if (meta.kind == ValueMeta::Kind::kInt && !meta.integer.is_constant()) {
        throw UserError("the graph computes with an integer that " + schema.full_name() +
                        " (node " + node.name +
                        ") takes from a tensor's values; Litz has no way to do that yet");
      }
      if (meta.kind == ValueMeta::Kind::kInt)
        set_index({id, static_cast<uint32_t>(i)}, meta.integer);
      kernel.outputs.emplace_back();
      continue;
    }
    // What nobody uses may be anything: some ops return less than they are traced with.
    const Value value{id, static_cast<uint32_t>(i)};
    if (users_[value].empty() && !is_output_[value]) {
      kernel.outputs.emplace_back();
      continue;
    }
    Buffer buffer;
    buffer.name = fresh_name(node.name);
    buffer.dtype = meta.tensor.dtype;
    buffer.sizes = meta.tensor.sizes;
    buffer.strides = kernel.results_are_views
                         ? contiguous_strides(program_.indices(), meta.tensor.sizes)
                         : meta.tensor.strides;
    buffer.kind = BufferKind::kExtern;
    const BufferId added = program_.add_buffer(std::move(buffer));
    kernel.outputs.push_back(added);
    if (kernel.results_are_views && !meta.tensor.offset.is_constant(0))
      storage_offsets_[added.value] = meta.tensor.offset;
    set({id, static_cast<uint32_t>(i)}, whole(added));
  }
  add(std::move(kernel));
}

ExternArgument LoweringContext::extern_argument(const Argument& argument) {
  return std::visit(
      [&](const auto& a) -> ExternArgument {
        using T = std::decay_t<decltype(a)>;
        if constexpr (std::is_same_v<T, Value>) {
          const auto& held = values_[a];
          if (const auto* index = std::get_if<Index>(&held)) return {*index};
          return {strided(tensor(a), graph_.tensor(a))};
        } else if constexpr (std::is_same_v<T, int64_t>) {
          return {program_.indices().constant(a)};
        } else if constexpr (std::is_same_v<T, DeviceArg>) {
          return {ExternDevice{a.value}};
        } else if constexpr (std::is_same_v<T, LayoutArg>) {
          return {ExternLayout{a.value}};
        } else if constexpr (std::is_same_v<T, MemoryFormatArg>) {
          return {ExternMemoryFormat{a.value}};
        } else if constexpr (std::is_same_v<T, ArgumentList>) {
          ExternList list;
          for (const Argument& entry : a) list.push_back(extern_argument(entry));
          return {std::move(list)};
        } else if constexpr (std::is_constructible_v<decltype(ExternArgument::v), T>) {
          return {a};
        } else {
          throw UserError("an argument of a kind that a library call cannot pass on");
        }
      },
      argument.v);
}

void LoweringContext::add_outputs() {
  for (const Argument& output : graph_.outputs()) {
    if (output.is_none()) {
      program_.outputs.push_back({});
    } else if (const auto* value = std::get_if<Value>(&output.v)) {
      if (const auto* index = std::get_if<Index>(&values_[*value])) {
        program_.outputs.push_back({*index});
      } else {
        origin_ = "output";
        op_ = "";
        BufferView view = strided(tensor(*value), graph_.tensor(*value));
        const auto input = overwritten_.find(view.buffer.value);
        if (input != overwritten_.end()) view.buffer = input->second;
        program_.outputs.push_back({std::move(view)});
      }
    } else if (const auto* index = std::get_if<Index>(&output.v)) {
      program_.outputs.push_back({*index});
    } else if (const auto* integer = std::get_if<int64_t>(&output.v)) {
      program_.outputs.push_back({program_.indices().constant(*integer)});
    } else {
      throw UserError("the graph returns something that is neither a tensor nor an integer");
    }
  }
}

// ---- values ----

const TensorValue& LoweringContext::tensor(Value value) const {
  const auto* tensor = std::get_if<TensorValue>(&values_[value]);
  LITZ_CHECK(tensor != nullptr,
             "value of node " + graph_.node(value.node).name + " is not a tensor");
  return *tensor;
}

void LoweringContext::set(Value value, TensorValue tensor) {
  const TensorMeta& meta = graph_.tensor(value);
  const std::string& name = graph_.node(value.node).name;
  LITZ_CHECK(tensor.dtype == meta.dtype, "result of " + name + " is " +
                                             std::string(to_string(tensor.dtype)) +
                                             ", eager gives " + std::string(to_string(meta.dtype)));
  LITZ_CHECK(tensor.sizes == meta.sizes, "result of " + name + " has other sizes than in eager");
  values_[value] = std::move(tensor);
}

void LoweringContext::set_index(Value value, Index index) { values_[value] = index; }

Index LoweringContext::storage_offset(BufferId buffer) const {
  const auto found = storage_offsets_.find(buffer.value);
  return found == storage_offsets_.end() ? program_.indices().constant(0) : found->second;
}

bool LoweringContext::has_strides(const TensorValue& value, const TensorMeta& meta) {
  return value.strided && same_strides(meta.sizes, value.strided->strides, meta.strides);
}

std::optional<Unsupported> LoweringContext::overwrite_input(NodeId id, const TensorValue& target,
                                                            const OpCall::Body& body) {
  const Buffer input = program_.buffer(target.buffer);
  const bool is_whole = target.strided && is_whole_buffer(program_, *target.strided) &&
                        target.coordinates == placeholders(program_.indices(), input.sizes);
  if (input.kind != BufferKind::kInput || !is_whole)
    return Unsupported{"it writes to a part of a tensor"};
  const LoopNest loops = make_loops(program_.indices(), input.sizes);
  Expr value = body(loops.variables);
  bool reads_elsewhere = false;
  visit_postorder(std::span(&value, 1), [&](Expr e) {
    if (e.op() != ExprOp::kLoad || e.buffer() != target.buffer) return;
    reads_elsewhere |= !std::equal(e.coordinates().begin(), e.coordinates().end(),
                                   loops.variables.begin(), loops.variables.end());
  });
  // No operation may read an input after it was written, nor while elements are out of place: then
  // the new elements get a buffer of their own first.
  if (reads_elsewhere || is_read_after(id, target.buffer)) {
    Buffer buffer = input;
    buffer.name = fresh_name(input.name + "_new");
    buffer.kind = BufferKind::kComputed;
    const TensorValue copy =
        add_pointwise(std::move(buffer), [&](std::span<const Index>) { return value; });
    value = program_.exprs().load(copy.buffer, input.dtype, loops.variables);
    redirect(target.buffer, copy.buffer);
    overwritten_[copy.buffer.value] = target.buffer;
  }
  add(Pointwise{target.buffer, loops, value});
  const Value self = std::get<Value>(graph_.node(id).arguments[0].v);
  set({id, 0}, tensor(self));
  return std::nullopt;
}

bool LoweringContext::is_read_after(NodeId id, BufferId buffer) const {
  const auto looks_into_it = [&](Value value) {
    const auto* tensor = std::get_if<TensorValue>(&values_[value]);
    return (tensor != nullptr && tensor->buffer == buffer) || value == Value{id, 0};
  };
  bool found = false;
  for (uint32_t i = id.value + 1; i < graph_.num_nodes(); ++i) {
    for (const Argument& argument : graph_.node(NodeId(i)).arguments)
      for_each_value(argument, [&](Value value) { found |= looks_into_it(value); });
  }
  // An output that is a window of the input in memory is read by nobody here.
  for (const Argument& output : graph_.outputs()) {
    for_each_value(output, [&](Value value) {
      if (!looks_into_it(value) || value == Value{id, 0}) return;
      found |= !has_strides(tensor(value), graph_.tensor(value));
    });
  }
  return found;
}

void LoweringContext::redirect(BufferId from, BufferId to) {
  for (uint32_t i = 0; i < graph_.num_nodes(); ++i) {
    for (uint32_t k = 0; k < graph_.node(NodeId(i)).outputs.size(); ++k) {
      auto* tensor = std::get_if<TensorValue>(&values_[Value{NodeId(i), k}]);
      if (tensor == nullptr || tensor->buffer != from) continue;
      tensor->buffer = to;
      if (tensor->strided) tensor->strided->buffer = to;
    }
  }
}

Expr LoweringContext::load(const TensorValue& value, std::span<const Index> position,
                           std::span<const Expr> runtime_indices) {
  LITZ_CHECK(position.size() == value.sizes.size(),
             "a position of another rank than the value, in " + origin_);
  ExprContext& exprs = program_.exprs();
  const bool is_empty = std::any_of(value.sizes.begin(), value.sizes.end(),
                                    [](Index size) { return size.is_constant(0); });
  if (is_empty) {
    // Nothing is loaded, but indices are still checked against the size 0.
    Expr nothing = exprs.constant_int(DType::kInt64, 0);
    for (Expr index : runtime_indices) {
      nothing =
          exprs.binary(ExprOp::kBitOr, nothing,
                       exprs.binary(ExprOp::kBitAnd, index, exprs.constant_int(DType::kInt64, 0)));
    }
    return exprs.cast(nothing, value.dtype);
  }
  const Expr loaded =
      exprs.load(value.buffer, program_.buffer(value.buffer).dtype, coordinates_at(value, position),
                 {runtime_indices.begin(), runtime_indices.end()});
  return exprs.bitcast(loaded, value.dtype);
}

TensorValue LoweringContext::whole(BufferId id) const {
  const Buffer& buffer = program_.buffer(id);
  TensorValue value;
  value.buffer = id;
  value.dtype = buffer.dtype;
  value.sizes = buffer.sizes;
  value.coordinates = placeholders(program_.indices(), buffer.sizes);
  value.strided =
      BufferView{id, buffer.dtype, buffer.sizes, buffer.strides, program_.indices().constant(0)};
  return value;
}

TensorValue LoweringContext::add_pointwise(Buffer buffer, const OpCall::Body& body) {
  const LoopNest loops = make_loops(program_.indices(), buffer.sizes);
  const Expr value = body(loops.variables);
  LITZ_CHECK(value.dtype() == buffer.dtype,
             "lowering of " + origin_ + " computes " + std::string(to_string(value.dtype())) +
                 " where " + std::string(to_string(buffer.dtype)) + " is wanted");
  const BufferId id = program_.add_buffer(std::move(buffer));
  add(Pointwise{id, loops, value});
  return whole(id);
}

BufferView LoweringContext::strided(const TensorValue& value, const TensorMeta& meta) {
  if (has_strides(value, meta)) {
    BufferView window = *value.strided;
    window.strides = meta.strides;  // also of dimensions of size 1
    return window;
  }
  Buffer buffer;
  buffer.name = fresh_name("copy");
  buffer.dtype = value.dtype;
  buffer.sizes = meta.sizes;
  buffer.strides = meta.strides;
  // An expanded dimension has stride 0 in eager; memory of our own holds every element once.
  const bool overlaps = std::any_of(buffer.strides.begin(), buffer.strides.end(),
                                    [](Index s) { return s.is_constant(0); });
  if (overlaps) buffer.strides = contiguous_strides(program_.indices(), meta.sizes);
  const TensorValue source = value;
  const TensorValue copy = add_pointwise(
      std::move(buffer), [&](std::span<const Index> position) { return load(source, position); });
  return *copy.strided;
}

// The library call stands where the first seed is needed, and grows with every other one.
Expr LoweringContext::draw_seed(const std::string& device) {
  IndexContext& indices = program_.indices();
  if (!seeds_.valid()) {
    Buffer buffer;
    buffer.name = fresh_name("seeds");
    buffer.dtype = DType::kInt64;
    buffer.sizes = {indices.constant(0)};
    buffer.strides = {indices.constant(1)};
    buffer.kind = BufferKind::kExtern;
    seeds_ = program_.add_buffer(std::move(buffer));
    ExternKernel kernel;
    kernel.name = "aten::randint";
    kernel.overload = "low";
    kernel.schema =
        "aten::randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=4, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor";
    kernel.node = "seeds";
    kernel.arguments = {{indices.constant(0)},
                        {indices.constant(std::numeric_limits<int64_t>::max())},
                        {ExternList{{indices.constant(0)}}},
                        {DType::kInt64},
                        {},
                        {ExternDevice{device}},
                        {}};
    kernel.outputs = {seeds_};
    kernel.has_side_effects = true;
    draws_seeds_ = program_.add_operation({std::move(kernel), "seeds", ""});
  }
  Buffer& buffer = program_.buffer(seeds_);
  const Index number = buffer.sizes[0];
  buffer.sizes[0] = number + 1;
  auto& kernel = std::get<ExternKernel>(program_.operations()[draws_seeds_].v);
  std::get<ExternList>(kernel.arguments[2].v)[0] = {buffer.sizes[0]};
  return program_.exprs().load(seeds_, DType::kInt64, {number}, {});
}

std::string LoweringContext::fresh_name(std::string_view stem) {
  const uint32_t count = names_[std::string(stem)]++;
  return count == 0 ? std::string(stem) : std::string(stem) + "_" + std::to_string(count);
}

LoweringResult lower_graph(const Graph& graph, const LoweringOptions& options) {
  return LoweringContext(graph, options).run();
}

}  // namespace litz
