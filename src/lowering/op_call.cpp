#include "lowering/lowering.h"
#include "lowering/lowering_context.h"
#include "support/error.h"

namespace litz {

OpCall::OpCall(LoweringContext& context, NodeId id) : context_(context), id_(id) {}

const Graph& OpCall::graph() const { return context_.graph(); }
const Node& OpCall::node() const { return context_.graph().node(id_); }
Program& OpCall::program() const { return context_.program(); }
IndexContext& OpCall::indices() const { return context_.program().indices(); }
ExprContext& OpCall::exprs() const { return context_.program().exprs(); }

// ---- arguments ----

const Argument& OpCall::argument(std::string_view name) const {
  const int position = node().schema->find(name);
  LITZ_CHECK(position >= 0, node().schema->full_name() + " has no argument " + std::string(name));
  return node().arguments[static_cast<size_t>(position)];
}

bool OpCall::is_none(std::string_view name) const { return argument(name).is_none(); }

bool OpCall::is_tensor(std::string_view name) const {
  const auto* value = std::get_if<Value>(&argument(name).v);
  return value != nullptr && graph().meta(*value).is_tensor();
}

const std::string& OpCall::device(std::string_view name) const {
  return graph().tensor(std::get<Value>(argument(name).v)).device;
}

const TensorValue& OpCall::tensor(std::string_view name) const {
  const auto* value = std::get_if<Value>(&argument(name).v);
  LITZ_CHECK(value != nullptr,
             "argument " + std::string(name) + " of " + node().name + " is not a tensor");
  return context_.tensor(*value);
}

std::optional<TensorValue> OpCall::optional_tensor(std::string_view name) const {
  if (is_none(name)) return std::nullopt;
  return tensor(name);
}

std::vector<std::optional<TensorValue>> OpCall::tensor_list(std::string_view name) const {
  std::vector<std::optional<TensorValue>> tensors;
  for (const Argument& entry : std::get<ArgumentList>(argument(name).v)) {
    if (entry.is_none()) {
      tensors.emplace_back();
    } else {
      tensors.emplace_back(context_.tensor(std::get<Value>(entry.v)));
    }
  }
  return tensors;
}

namespace {

Index as_index(const OpCall& call, const Argument& argument) {
  if (const auto* integer = std::get_if<int64_t>(&argument.v))
    return call.indices().constant(*integer);
  if (const auto* boolean = std::get_if<bool>(&argument.v))
    return call.indices().constant(*boolean ? 1 : 0);
  if (const auto* index = std::get_if<Index>(&argument.v)) return *index;
  if (const auto* value = std::get_if<Value>(&argument.v)) {
    const ValueMeta& meta = call.graph().meta(*value);
    LITZ_CHECK(meta.kind == ValueMeta::Kind::kInt,
               "an argument of " + call.node().name + " is not an integer");
    return meta.integer;
  }
  LITZ_CHECK(false, "an argument of " + call.node().name + " is not an integer");
}

}  // namespace

Index OpCall::index(std::string_view name) const { return as_index(*this, argument(name)); }

int64_t OpCall::integer(std::string_view name) const {
  const Index value = index(name);
  LITZ_CHECK(value.is_constant(),
             "argument " + std::string(name) + " of " + node().name + " is symbolic");
  return value.constant();
}

std::vector<Index> OpCall::index_list(std::string_view name) const {
  std::vector<Index> out;
  const Argument& a = argument(name);
  if (!a.is_list()) return {as_index(*this, a)};
  for (const Argument& entry : std::get<ArgumentList>(a.v)) out.push_back(as_index(*this, entry));
  return out;
}

std::vector<int64_t> OpCall::integer_list(std::string_view name) const {
  std::vector<int64_t> out;
  for (Index value : index_list(name)) {
    LITZ_CHECK(value.is_constant(),
               "argument " + std::string(name) + " of " + node().name + " is symbolic");
    out.push_back(value.constant());
  }
  return out;
}

bool OpCall::boolean(std::string_view name) const { return std::get<bool>(argument(name).v); }
std::string_view OpCall::string(std::string_view name) const {
  return std::get<std::string>(argument(name).v);
}

std::optional<DType> OpCall::dtype(std::string_view name) const {
  if (is_none(name)) return std::nullopt;
  return std::get<DType>(argument(name).v);
}

Argument OpCall::scalar(std::string_view name) const {
  const Argument& a = argument(name);
  if (const auto* value = std::get_if<Value>(&a.v)) {
    const ValueMeta& meta = graph().meta(*value);
    if (meta.kind == ValueMeta::Kind::kInt) {
      if (meta.integer.is_constant()) return Argument(meta.integer.constant());
      return Argument(meta.integer);
    }
  }
  return a;
}

// ---- results ----

const TensorMeta& OpCall::result(size_t output) const { return node().outputs[output].tensor; }
size_t OpCall::num_results() const { return node().outputs.size(); }
void OpCall::set(size_t output, TensorValue value) {
  context_.set({id_, static_cast<uint32_t>(output)}, std::move(value));
}
void OpCall::set_index(size_t output, Index value) {
  context_.set_index({id_, static_cast<uint32_t>(output)}, value);
}

// ---- building ----

bool OpCall::draws_in_kernels() const { return context_.draws_in_kernels(); }
Expr OpCall::draw_seed(const std::string& device) { return context_.draw_seed(device); }

Expr OpCall::load(const TensorValue& value, std::span<const Index> position) {
  return context_.load(value, position);
}

Expr OpCall::load(const TensorValue& value, std::span<const Index> position,
                  std::span<const Expr> runtime_indices) {
  return context_.load(value, position, runtime_indices);
}

Expr OpCall::load_broadcast(const TensorValue& value, std::span<const Index> position) {
  LITZ_CHECK(position.size() >= value.sizes.size(),
             "a value of higher rank than what it is broadcast to, in " + node().name);
  const size_t skipped = position.size() - value.sizes.size();
  std::vector<Index> own;
  own.reserve(value.sizes.size());
  for (size_t i = 0; i < value.sizes.size(); ++i) {
    own.push_back(value.sizes[i].is_constant(1) ? indices().constant(0) : position[skipped + i]);
  }
  return load(value, own);
}

Expr OpCall::scalar_expr(const Argument& scalar, DType dtype) {
  if (const auto* integer = std::get_if<int64_t>(&scalar.v))
    return exprs().constant_int(dtype, *integer);
  if (const auto* real = std::get_if<double>(&scalar.v)) return exprs().constant(dtype, *real);
  if (const auto* boolean = std::get_if<bool>(&scalar.v))
    return exprs().constant_int(dtype, *boolean ? 1 : 0);
  const auto* index = std::get_if<Index>(&scalar.v);
  LITZ_CHECK(index != nullptr, "a scalar argument of " + node().name + " is not a number");
  return exprs().cast(exprs().index_value(*index), dtype);
}

TensorValue OpCall::pointwise(const TensorMeta& meta, const Body& body) {
  Buffer buffer;
  buffer.name = context_.fresh_name(node().name);
  buffer.dtype = meta.dtype;
  buffer.sizes = meta.sizes;
  buffer.strides = meta.strides;
  return context_.add_pointwise(std::move(buffer), body);
}

TensorValue OpCall::pointwise(DType dtype, std::span<const Index> sizes, const Body& body) {
  Buffer buffer;
  buffer.name = context_.fresh_name(node().name);
  buffer.dtype = dtype;
  buffer.sizes.assign(sizes.begin(), sizes.end());
  buffer.strides = contiguous_strides(indices(), sizes);
  return context_.add_pointwise(std::move(buffer), body);
}

TensorValue OpCall::reduce(ReductionKind kind, std::span<const Index> sizes,
                           std::span<const size_t> dims, bool keep_dims, const Body& body) {
  std::vector<bool> reduced(sizes.size(), false);
  for (size_t dim : dims) reduced[dim] = true;
  std::vector<Index> kept;
  std::vector<Index> inner;
  for (size_t i = 0; i < sizes.size(); ++i) (reduced[i] ? inner : kept).push_back(sizes[i]);
  Reduction op;
  op.kind = kind;
  op.loops = make_loops(indices(), kept);
  op.reduction = make_loops(indices(), inner, static_cast<uint32_t>(kept.size()));
  std::vector<Index> position(sizes.size());
  size_t next_kept = 0;
  size_t next_inner = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    position[i] =
        reduced[i] ? op.reduction.variables[next_inner++] : op.loops.variables[next_kept++];
  }
  op.value = body(position);
  Buffer buffer;
  buffer.name = context_.fresh_name(node().name);
  buffer.dtype = result_dtype(kind, op.value.dtype());
  buffer.sizes = kept;
  buffer.strides = contiguous_strides(indices(), kept);
  op.output = program().add_buffer(std::move(buffer));
  const BufferId output = op.output;
  context_.add(std::move(op));
  TensorValue value = context_.whole(output);
  if (!keep_dims) return value;
  std::vector<Index> full;
  for (size_t i = 0; i < sizes.size(); ++i)
    full.push_back(reduced[i] ? indices().constant(1) : sizes[i]);
  return view(value, full, [&](std::span<const Index> p) {
    std::vector<Index> own;
    for (size_t i = 0; i < p.size(); ++i) {
      if (!reduced[i]) own.push_back(p[i]);
    }
    return own;
  });
}

namespace {

bool is_made_of_sizes(Index index) {
  for (Index symbol : free_symbols(index)) {
    if (symbol.symbol_kind() != SymbolKind::kSize) return false;
  }
  return true;
}

// The memory that the value walks, where its place is linear in the position.
std::optional<BufferView> find_strided_window(const Program& program, const TensorValue& value) {
  const Buffer& buffer = program.buffer(value.buffer);
  IndexContext& indices = program.indices();
  Index place = dot(indices, value.coordinates, buffer.strides);
  BufferView window{value.buffer, value.dtype, value.sizes, {}, {}};
  const std::vector<Index> defaults = contiguous_strides(indices, value.sizes);
  for (size_t i = 0; i < value.sizes.size(); ++i) {
    if (value.sizes[i].is_constant(1)) {
      window.strides.push_back(defaults[i]);
      continue;
    }
    const std::optional<LinearIn> parts =
        linear_in(place, indices.variable(static_cast<uint32_t>(i), value.sizes[i]));
    if (!parts) return std::nullopt;
    window.strides.push_back(parts->stride);
    place = parts->rest;
  }
  for (Index stride : window.strides) {
    if (!is_made_of_sizes(stride)) return std::nullopt;
  }
  window.offset = place;
  return window;
}

}  // namespace

TensorValue OpCall::scan(ScanKind kind, std::span<const Index> sizes, size_t axis,
                         const Body& body) {
  Scan op;
  op.kind = kind;
  op.axis = static_cast<uint32_t>(axis);
  op.loops = make_loops(indices(), sizes);
  op.value = body(op.loops.variables);
  Buffer buffer;
  buffer.name = context_.fresh_name(node().name);
  buffer.dtype = op.value.dtype();
  buffer.sizes.assign(sizes.begin(), sizes.end());
  buffer.strides = contiguous_strides(indices(), sizes);
  op.output = program().add_buffer(std::move(buffer));
  const BufferId output = op.output;
  context_.add(std::move(op));
  return context_.whole(output);
}

TensorValue OpCall::scatter(const TensorMeta& meta, const Body& initial, StoreMode mode,
                            std::span<const Index> sizes,
                            const std::function<Store(std::span<const Index> position)>& store) {
  Scatter op;
  op.mode = mode;
  op.initial_loops = make_loops(indices(), meta.sizes);
  op.initial = initial(op.initial_loops.variables);
  op.loops = make_loops(indices(), sizes);
  Store stored = store(op.loops.variables);
  op.target = std::move(stored.target);
  op.runtime_indices = std::move(stored.runtime_indices);
  op.value = stored.value;
  LITZ_CHECK(op.initial.dtype() == meta.dtype && op.value.dtype() == meta.dtype,
             "lowering of " + node().name + " scatters another dtype than its result's");
  Buffer buffer;
  buffer.name = context_.fresh_name(node().name);
  buffer.dtype = meta.dtype;
  buffer.sizes = meta.sizes;
  buffer.strides = meta.strides;
  op.output = program().add_buffer(std::move(buffer));
  const BufferId output = op.output;
  context_.add(std::move(op));
  return context_.whole(output);
}

TensorValue OpCall::view(
    const TensorValue& base, std::span<const Index> sizes,
    const std::function<std::vector<Index>(std::span<const Index> position)>& map) {
  const std::vector<Index> own = make_loops(indices(), sizes).variables;
  const std::vector<Index> in_base = map(own);
  LITZ_CHECK(in_base.size() == base.sizes.size(),
             "a view maps to a position of another rank, in " + node().name);
  TensorValue value;
  value.buffer = base.buffer;
  value.dtype = base.dtype;
  value.sizes.assign(sizes.begin(), sizes.end());
  value.coordinates = coordinates_at(base, in_base);
  value.strided = find_strided_window(program(), value);
  return value;
}

TensorValue OpCall::whole(BufferId buffer) const { return context_.whole(buffer); }
bool OpCall::has_strides(const TensorValue& value, const TensorMeta& meta) const {
  return LoweringContext::has_strides(value, meta);
}
Index OpCall::storage_offset(BufferId buffer) const { return context_.storage_offset(buffer); }

std::optional<Unsupported> OpCall::overwrite_input(const TensorValue& target, const Body& body) {
  return context_.overwrite_input(id_, target, body);
}

std::optional<Unsupported> lower_to_library(OpCall&) {
  return Unsupported{"it is meant for the library"};
}

}  // namespace litz
