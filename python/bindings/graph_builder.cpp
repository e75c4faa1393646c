#include "graph_builder.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <complex>
#include <utility>

#include "bindings.h"
#include "graph/bind_arguments.h"
#include "graph/print_graph.h"
#include "graph/verify_graph.h"
#include "support/error.h"
#include "torch_door.h"

namespace nb = nanobind;

namespace litz {
namespace {

std::string python_type(nb::handle object) { return Py_TYPE(object.ptr())->tp_name; }

bool is_sequence(nb::handle object) {
  return PyTuple_Check(object.ptr()) || PyList_Check(object.ptr());
}

}  // namespace

GraphBuilder::GraphBuilder() : access_(TorchDoor::get().access) {
  node_type_ = nb::module_::import_("torch.fx").attr("Node");
  const nb::module_ torch = nb::module_::import_("torch");
  sym_int_type_ = torch.attr("SymInt");
  device_type_ = torch.attr("device");
  cpu_device_ = device_type_("cpu");
  fake_tensor_type_ = nb::module_::import_("torch._subclasses.fake_tensor").attr("FakeTensor");
}

GraphBuilder::GraphBuilder(Graph graph, std::string device) : GraphBuilder() {
  graph_ = std::move(graph);
  device_ = std::move(device);
  has_tensor_ = true;
}

void GraphBuilder::symbol(const std::string& name, int64_t lo, int64_t hi) {
  symbols_.emplace(name, graph_.context().size_symbol(name, {lo, hi}));
}

bool GraphBuilder::is_node(nb::handle object) const {
  return Py_TYPE(object.ptr()) == reinterpret_cast<PyTypeObject*>(node_type_.ptr());
}

const GraphBuilder::Binding& GraphBuilder::find(nb::handle node) const {
  const auto found = bindings_.find(node.ptr());
  if (found == bindings_.end()) {
    throw InternalError("the graph uses a node before it is defined: " +
                        nb::cast<std::string>(nb::str(node)));
  }
  if (!found->second.unusable.empty()) throw UnsupportedGraph(found->second.unusable);
  return found->second;
}

Index GraphBuilder::expression(nb::handle sym_int) {
  const nb::object expression = sym_int.attr("node").attr("expr");
  if (expressions_.contains(expression)) {
    return expression_[nb::cast<size_t>(expressions_[expression])];
  }
  const auto text = nb::cast<std::string>(nb::str(expression));
  std::string unknown;
  const auto resolve = [&](std::string_view name) {
    const auto found = symbols_.find(std::string(name));
    if (found == symbols_.end()) unknown = name;
    return found == symbols_.end() ? Index() : found->second;
  };
  Index index;
  try {
    index = parse_index(graph_.context(), text, resolve);
  } catch (const UserError& error) {
    if (unknown.empty()) throw UnsupportedGraph("of the size " + text + ": " + error.what());
    throw UnsupportedGraph("the size " + text + " depends on the data of a tensor (" + unknown +
                           ")");
  }
  expressions_[expression] = expression_.size();
  expression_.push_back(index);
  return index;
}

Index GraphBuilder::integer_of(nb::handle value) {
  if (PyLong_Check(value.ptr())) return graph_.context().constant(nb::cast<int64_t>(value));
  if (nb::isinstance(value, sym_int_type_)) return expression(value);
  throw UnsupportedGraph("a size has type " + python_type(value));
}

std::vector<Index> GraphBuilder::integers_of(nb::handle sequence) {
  std::vector<Index> integers;
  for (nb::handle item : sequence) integers.push_back(integer_of(item));
  return integers;
}

// Generated code and library ops of one graph run on one device: a CUDA device, or the CPU, whose
// graphs may hold tensors that live nowhere ("meta").
void GraphBuilder::take_device(const std::string& device) {
  const bool is_cuda = device.starts_with("cuda");
  if (!has_tensor_ && is_cuda) device_ = device;
  if (has_tensor_ && device != device_ && (is_cuda || device_ != "cpu")) {
    throw UnsupportedGraph("its tensors are on more than one device: " + device_ + " and " +
                           device);
  }
  has_tensor_ = true;
}

TensorMeta GraphBuilder::tensor_meta(nb::handle tensor) {
  const TorchApi& api = TorchDoor::get().environment->api;
  const TorchTensor handle = access_.handle(tensor.ptr());
  TensorMeta meta;
  int32_t number = 0;
  api.get_dtype(handle, &number);
  meta.dtype = api.from_torch(number);
  // A fake tensor's `device` goes through its dispatcher, and this does not.
  const nb::object device =
      nb::getattr(tensor, nb::isinstance(tensor, fake_tensor_type_) ? "fake_device" : "device");
  if (!device.equal(cpu_device_)) meta.device = nb::cast<std::string>(nb::str(device));
  take_device(meta.device);
  if (api.get_layout != nullptr && api.get_layout(handle, &number) == 0 && number != api.strided) {
    const nb::object layout = tensor.attr("layout");
    throw UnsupportedGraph("a tensor in it has layout " + nb::cast<std::string>(nb::str(layout)));
  }
  // torch's C interface has no symbolic sizes: asking it for them would specialize the symbols.
  if (nb::cast<bool>(tensor.attr("_has_symbolic_sizes_strides"))) {
    meta.sizes = integers_of(tensor.attr("shape"));
    meta.strides = integers_of(tensor.attr("stride")());
    meta.offset = integer_of(tensor.attr("storage_offset")());
    return meta;
  }
  int64_t ndim = 0;
  int64_t* sizes = nullptr;
  int64_t* strides = nullptr;
  int64_t offset = 0;
  if (api.get_dim(handle, &ndim) != 0 || api.get_sizes(handle, &sizes) != 0 ||
      api.get_strides(handle, &strides) != 0 || api.get_storage_offset(handle, &offset) != 0) {
    throw UnsupportedGraph("a tensor in it has no sizes or strides");
  }
  IndexContext& context = graph_.context();
  for (int64_t d = 0; d < ndim; ++d) {
    meta.sizes.push_back(context.constant(sizes[d]));
    meta.strides.push_back(context.constant(strides[d]));
  }
  meta.offset = context.constant(offset);
  return meta;
}

ValueMeta GraphBuilder::meta_of(nb::handle example) {
  if (example.is_none()) return {};
  if (access_.is_tensor(example.ptr())) return ValueMeta::of(tensor_meta(example));
  if (PyBool_Check(example.ptr()) || PyFloat_Check(example.ptr())) {
    return ValueMeta::other_scalar();
  }
  if (PyLong_Check(example.ptr()) || nb::isinstance(example, sym_int_type_)) {
    return ValueMeta::of(integer_of(example));
  }
  throw UnsupportedGraph("an op in it returns a " + python_type(example));
}

GraphBuilder::Binding GraphBuilder::bind_results(nb::handle example, NodeId node,
                                                 std::vector<ValueMeta>* metas) {
  Binding binding;
  if (is_sequence(example)) {
    binding.is_sequence = true;
    for (nb::handle item : example) binding.items.push_back(bind_results(item, node, metas));
    return binding;
  }
  if (!example.is_none()) {
    binding.value = Value{node, static_cast<uint32_t>(metas->size())};
  }
  metas->push_back(meta_of(example));
  return binding;
}

Argument GraphBuilder::torch_constant(nb::handle object) const {
  for (int i = 0; i < 4; ++i) {
    if (object.ptr() == access_.memory_format(i)) return MemoryFormatArg{i};
  }
  if (object.ptr() == access_.strided()) return LayoutArg{0};
#define LITZ_MATCH_DTYPE(name, ...) \
  if (object.ptr() == access_.dtype(DType::name)) return DType::name;
  LITZ_DTYPES(LITZ_MATCH_DTYPE)
#undef LITZ_MATCH_DTYPE
  if (nb::isinstance(object, device_type_)) {
    return DeviceArg{nb::cast<std::string>(nb::str(object))};
  }
  throw UnsupportedGraph("an op in it has an argument of type " + python_type(object) + ": " +
                         nb::cast<std::string>(nb::repr(object)).substr(0, 80));
}

Argument GraphBuilder::to_argument(nb::handle object) {
  PyObject* raw = object.ptr();
  if (is_node(object)) {
    const Binding& binding = find(object);
    if (!binding.is_sequence) return binding.value;
    ArgumentList list;
    for (const Binding& item : binding.items) list.push_back(item.value);
    return list;
  }
  if (raw == Py_None) return {};
  if (PyBool_Check(raw)) return raw == Py_True;
  if (PyLong_Check(raw)) return nb::cast<int64_t>(object);
  if (PyFloat_Check(raw)) return PyFloat_AS_DOUBLE(raw);
  if (is_sequence(object)) return to_list(object);
  if (PyUnicode_Check(raw)) return nb::cast<std::string>(object);
  if (PyComplex_Check(raw)) {
    return std::complex<double>(PyComplex_RealAsDouble(raw), PyComplex_ImagAsDouble(raw));
  }
  if (nb::isinstance(object, sym_int_type_)) return expression(object);
  return torch_constant(object);
}

ArgumentList GraphBuilder::to_list(nb::handle sequence) {
  ArgumentList list;
  for (nb::handle item : sequence) list.push_back(to_argument(item));
  return list;
}

void GraphBuilder::input(nb::handle node, const std::string& name, nb::handle example,
                         bool is_frozen) {
  nodes_.append(node);
  ValueMeta meta = meta_of(example);
  Binding binding;
  const bool is_integer = meta.kind == ValueMeta::Kind::kInt;
  if (is_integer) binding.value = meta.integer;
  const NodeId id = graph_.add_input(name, std::move(meta), is_frozen && !is_integer);
  if (graph_.meta({id, 0}).is_tensor()) binding.value = Value{id, 0};
  bindings_[node.ptr()] = std::move(binding);
}

void GraphBuilder::call(nb::handle node, const std::string& name, const std::string& op,
                        const std::string& schema, nb::handle args, nb::handle kwargs,
                        nb::handle example, const std::string& stack) {
  nodes_.append(node);
  std::vector<std::pair<std::string, Argument>> keywords;
  for (auto [key, value] : nb::borrow<nb::dict>(kwargs)) {
    keywords.emplace_back(nb::cast<std::string>(key), to_argument(value));
  }
  const OpSchema& declared = graph_.schemas().declare(schema);
  LITZ_CHECK(declared.full_name() == op, "schema " + schema + " of op " + op);
  std::vector<Argument> bound = bind_arguments(declared, to_list(args), std::move(keywords));
  std::vector<ValueMeta> metas;
  // The node that add_call is about to make.
  const NodeId next(static_cast<uint32_t>(graph_.num_nodes()));
  Binding binding = bind_results(example, next, &metas);
  if (declared.returns.empty()) metas.clear();
  const NodeId id = graph_.add_call(name, declared, std::move(bound), std::move(metas), stack);
  LITZ_CHECK(id == next, "node ids are dense");
  bindings_[node.ptr()] = std::move(binding);
}

void GraphBuilder::integer(nb::handle node, nb::handle example) {
  nodes_.append(node);
  Binding binding;
  binding.value = integer_of(example);
  bindings_[node.ptr()] = std::move(binding);
}

void GraphBuilder::item(nb::handle node, nb::handle source, int64_t index) {
  nodes_.append(node);
  const Binding& whole = find(source);
  const auto count = static_cast<int64_t>(whole.items.size());
  if (index < 0) index += count;
  LITZ_CHECK(index >= 0 && index < count, "getitem out of range");
  Binding binding = whole.items[static_cast<size_t>(index)];
  bindings_[node.ptr()] = std::move(binding);
}

void GraphBuilder::unusable(nb::handle node, const std::string& reason) {
  nodes_.append(node);
  Binding binding;
  binding.unusable = reason;
  bindings_[node.ptr()] = std::move(binding);
}

void GraphBuilder::output(nb::handle values, std::vector<uint32_t> free_layouts) {
  graph_.set_outputs(to_list(values));
  graph_.set_free_layouts(std::move(free_layouts));
  verify_graph(graph_);
}

void bind_graph_builder(nb::module_& m) {
  nb::exception<UnsupportedGraph>(m, "UnsupportedGraph");
  nb::class_<GraphBuilder>(m, "GraphBuilder",
                           "Builds a graph from fx nodes, inputs first, in execution order.")
      .def(nb::init<>())
      .def("symbol", &GraphBuilder::symbol, nb::arg("name"), nb::arg("lo"), nb::arg("hi"))
      .def("input", &GraphBuilder::input, nb::arg("node"), nb::arg("name"),
           nb::arg("example").none(), nb::arg("is_frozen") = false)
      .def("call", &GraphBuilder::call, nb::arg("node"), nb::arg("name"), nb::arg("op"),
           nb::arg("schema"), nb::arg("args"), nb::arg("kwargs"), nb::arg("example").none(),
           nb::arg("stack"))
      .def("integer", &GraphBuilder::integer, nb::arg("node"), nb::arg("example"))
      .def("item", &GraphBuilder::item, nb::arg("node"), nb::arg("source"), nb::arg("index"))
      .def("unusable", &GraphBuilder::unusable, nb::arg("node"), nb::arg("reason"))
      .def("output", &GraphBuilder::output, nb::arg("values"),
           nb::arg("free_layouts") = std::vector<uint32_t>(),
           "The outputs, and positions of those whose strides are not the caller's business.")
      .def_prop_ro("device", &GraphBuilder::device,
                   "The device that the graph runs on, as torch prints it.")
      .def_prop_ro("num_nodes", [](const GraphBuilder& b) { return b.graph().num_nodes(); })
      .def("__str__", [](const GraphBuilder& b) { return to_string(b.graph()); });
}

}  // namespace litz
