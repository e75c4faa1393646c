#include "graph_builder.h"

<<<<<<< HEAD
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/bind_arguments.h"
#include "graph/graph.h"
#include "graph/parse_graph.h"
#include "graph/print_graph.h"
#include "graph/verify_graph.h"
#include "support/error.h"
=======
#include <nanobind/stl/string.h>

#include <complex>
#include <utility>

#include "bindings.h"
#include "graph/bind_arguments.h"
#include "graph/print_graph.h"
#include "graph/verify_graph.h"
#include "support/error.h"
#include "torch_door.h"
>>>>>>> runtime

namespace nb = nanobind;

namespace litz {
namespace {

<<<<<<< HEAD
// The text of a symbolic integer, before the builder has read it.
struct Sym {
  std::string text;
};

struct DTypeArg {
  DType value;
};

std::string_view string_of(nb::handle object, const char* what) {
  Py_ssize_t length = 0;
  const char* text =
      PyUnicode_Check(object.ptr()) ? PyUnicode_AsUTF8AndSize(object.ptr(), &length) : nullptr;
  if (text == nullptr) throw nb::type_error((std::string(what) + " must be a str").c_str());
  return {text, static_cast<size_t>(length)};
}

int64_t integer_of(nb::handle object) {
  const long long value = PyLong_AsLongLong(object.ptr());
  if (value == -1 && PyErr_Occurred()) throw nb::python_error();
  return value;
}

DType dtype_of(std::string_view name) {
  if (const std::optional<DType> dtype = parse_dtype(name)) return *dtype;
  return DType::kOther;  // quantized and newer dtypes: carried along, never computed with
}

class GraphBuilder {
 public:
  GraphBuilder() : graph_(std::make_shared<Graph>()) {}

  void symbol(std::string_view name, std::optional<int64_t> low, std::optional<int64_t> high) {
    const ValueRange range{low.value_or(ValueRange::kMin), high.value_or(ValueRange::kMax)};
    const Index symbol = graph_->context().size_symbol(name, range);
    if (!symbols_.emplace(std::string(name), symbol).second)
      throw UserError("symbol '" + std::string(name) + "' is declared twice");
  }

  uint32_t tensor_input(std::string name, std::string_view dtype, nb::handle sizes,
                        nb::handle strides, nb::handle offset, std::string device,
                        std::string_view layout) {
    TensorMeta meta = tensor_meta(dtype, sizes, strides, offset, std::move(device), layout);
    return graph_->add_input(std::move(name), ValueMeta::of(std::move(meta))).value;
  }

  uint32_t symint_input(std::string name, nb::handle expression) {
    return graph_->add_input(std::move(name), ValueMeta::of(index(expression))).value;
  }

  uint32_t scalar_input(std::string name) {
    return graph_->add_input(std::move(name), ValueMeta::other_scalar()).value;
  }

  uint32_t constant(std::string name, std::string_view dtype, nb::handle sizes, nb::bytes data) {
    TensorMeta meta;
    meta.dtype = dtype_of(dtype);
    meta.sizes = indices(sizes);
    meta.strides = contiguous_strides(graph_->context(), meta.sizes);
    meta.offset = graph_->context().constant(0);
    std::vector<std::byte> bytes(data.size());
    if (!bytes.empty()) std::memcpy(bytes.data(), data.c_str(), bytes.size());
    return graph_->add_constant(std::move(name), std::move(meta), std::move(bytes)).value;
  }

  uint32_t call(std::string name, std::string_view op, std::optional<std::string_view> schema_text,
                nb::handle arguments, nb::handle outputs, std::string stack, nb::dict keywords) {
    const OpSchema& schema = find_schema(op, schema_text);
    std::vector<std::pair<std::string, Argument>> named;
    for (auto [key, value] : keywords)
      named.emplace_back(string_of(key, "the name of an argument"), argument(value));
    std::vector<ValueMeta> metas;
    for_each_item(outputs, "outputs", [&](nb::handle meta) { add_meta(meta, metas); });
    std::vector<Argument> bound =
        bind_arguments(schema, argument_list(arguments, "arguments"), std::move(named));
    return graph_
        ->add_call(std::move(name), schema, std::move(bound), std::move(metas), std::move(stack))
        .value;
  }

  void output(nb::handle values) { graph_->set_outputs(argument_list(values, "outputs")); }

  const std::shared_ptr<Graph>& graph() const { return graph_; }

 private:
  template <class Visitor>
  static void for_each_item(nb::handle sequence, const char* what, Visitor&& visit) {
    if (!PyList_Check(sequence.ptr()) && !PyTuple_Check(sequence.ptr()))
      throw nb::type_error((std::string(what) + " must be a list or a tuple").c_str());
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(sequence.ptr());
    for (Py_ssize_t i = 0; i < count; ++i)
      visit(nb::handle(PySequence_Fast_GET_ITEM(sequence.ptr(), i)));
  }

  const OpSchema& find_schema(std::string_view op, std::optional<std::string_view> text) {
    if (text) {
      const OpSchema& schema = graph_->schemas().declare(*text);
      if (schema.full_name() != op)
        throw UserError("the schema of " + std::string(op) + " is of " + schema.full_name());
      return schema;
    }
    const OpSchema* schema = graph_->schemas().find(op);
    if (schema == nullptr)
      throw UserError("unknown op " + std::string(op) + "; one outside torch's own needs a schema");
    return *schema;
  }

  ArgumentList argument_list(nb::handle sequence, const char* what) {
    ArgumentList list;
    for_each_item(sequence, what, [&](nb::handle item) { list.push_back(argument(item)); });
    return list;
  }

  Argument argument(nb::handle object) {
    PyObject* raw = object.ptr();
    if (raw == Py_None) return {};
    if (PyBool_Check(raw)) return raw == Py_True;
    if (PyLong_Check(raw)) return integer_of(object);
    if (PyFloat_Check(raw)) return PyFloat_AS_DOUBLE(raw);
    if (PyUnicode_Check(raw)) return std::string(string_of(object, "an argument"));
    if (PyList_Check(raw) || PyTuple_Check(raw)) return argument_list(object, "an argument");
    if (nb::isinstance<Value>(object)) return value(object);
    if (nb::isinstance<Sym>(object)) return number(parse(nb::cast<Sym&>(object).text));
    if (nb::isinstance<DTypeArg>(object)) return nb::cast<DTypeArg>(object).value;
    if (nb::isinstance<DeviceArg>(object)) return nb::cast<DeviceArg>(object);
    if (nb::isinstance<LayoutArg>(object)) return nb::cast<LayoutArg>(object);
    if (nb::isinstance<MemoryFormatArg>(object)) return nb::cast<MemoryFormatArg>(object);
    if (PyComplex_Check(raw))
      return std::complex<double>(PyComplex_RealAsDouble(raw), PyComplex_ImagAsDouble(raw));
    throw nb::type_error(
        (std::string("an argument of type ") + Py_TYPE(raw)->tp_name + " cannot stand in a graph")
            .c_str());
  }

  Value value(nb::handle object) const {
    const Value value = nb::cast<Value>(object);
    if (!graph_->contains(value))
      throw UserError("Value(" + std::to_string(value.node.value) + ", " +
                      std::to_string(value.output) + ") is no result of a node of this graph");
    return value;
  }

  // A known integer is an int64_t, also where it came as an expression.
  static Argument number(Index index) {
    if (index.is_constant()) return index.constant();
    return index;
  }

  // A few expressions stand for most sizes, so each text is read once.
  Index parse(std::string_view text) {
    if (const auto known = indices_.find(text); known != indices_.end()) return known->second;
    const Index index =
        parse_index(graph_->context(), text, [this](std::string_view name) -> Index {
          const auto symbol = symbols_.find(name);
          return symbol == symbols_.end() ? Index() : symbol->second;
        });
    indices_.emplace(std::string(text), index);
    return index;
  }

  Index index(nb::handle object) {
    if (PyLong_Check(object.ptr())) return graph_->context().constant(integer_of(object));
    if (nb::isinstance<Sym>(object)) return parse(nb::cast<Sym&>(object).text);
    return parse(string_of(object, "an integer that is not an int"));
  }

  std::vector<Index> indices(nb::handle sequence) {
    std::vector<Index> result;
    for_each_item(sequence, "sizes and strides",
                  [&](nb::handle item) { result.push_back(index(item)); });
    return result;
  }

  TensorMeta tensor_meta(std::string_view dtype, nb::handle sizes, nb::handle strides,
                         nb::handle offset, std::string device, std::string_view layout) {
    TensorMeta meta;
    meta.dtype = dtype_of(dtype);
    meta.sizes = indices(sizes);
    meta.strides = indices(strides);
    meta.offset = index(offset);
    meta.device = std::move(device);
    meta.layout = layout == "strided" ? TensorLayout::kStrided : TensorLayout::kOther;
    return meta;
  }

  void add_meta(nb::handle object, std::vector<ValueMeta>& metas) {
    PyObject* tuple = object.ptr();
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) == 0)
      throw nb::type_error("the metadata of a result must be a tuple");
    auto item = [tuple](Py_ssize_t i) { return nb::handle(PyTuple_GET_ITEM(tuple, i)); };
    const std::string_view kind = string_of(item(0), "the kind of a result");
    const Py_ssize_t length = PyTuple_GET_SIZE(tuple);
    if (kind == "tensor" && length == 7) {
      metas.push_back(ValueMeta::of(tensor_meta(
          string_of(item(1), "a dtype"), item(2), item(3), item(4),
          std::string(string_of(item(5), "a device")), string_of(item(6), "a layout"))));
    } else if (kind == "int" && length == 2) {
      metas.push_back(ValueMeta::of(index(item(1))));
    } else if (kind == "scalar" && length == 1) {
      metas.push_back(ValueMeta::other_scalar());
    } else if (kind == "none" && length == 1) {
      metas.emplace_back();
    } else if (kind == "list" && length == 2) {
      for_each_item(item(1), "a list of results",
                    [&](nb::handle element) { add_meta(element, metas); });
    } else {
      throw nb::value_error(
          ("unknown metadata '" + std::string(kind) + "' of " + std::to_string(length) + " items")
              .c_str());
    }
  }

  struct StringHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using IndexByText = std::unordered_map<std::string, Index, StringHash, std::equal_to<>>;

  std::shared_ptr<Graph> graph_;
  IndexByText symbols_;
  IndexByText indices_;
};

LayoutArg make_layout(std::string_view name) {
  if (const std::optional<LayoutArg> layout = parse_layout(name)) return *layout;
  throw UserError("unknown layout '" + std::string(name) + "'");
}

MemoryFormatArg make_memory_format(std::string_view name) {
  if (const std::optional<MemoryFormatArg> format = parse_memory_format(name)) return *format;
  throw UserError("unknown memory format '" + std::string(name) + "'");
}

template <class T>
std::string repr(const char* name, const T& content) {
  return std::string(name) + "(" + std::string(content) + ")";
}

void bind_arguments_and_values(nb::module_& module) {
  nb::class_<Value>(module, "Value", "Result `output` of node number `node`.")
      .def(
          "__init__",
          [](Value* self, uint32_t node, uint32_t output) {
            new (self) Value{NodeId(node), output};
          },
          nb::arg("node"), nb::arg("output") = 0)
      .def_prop_ro("node", [](const Value& self) { return self.node.value; })
      .def_ro("output", &Value::output)
      .def("__eq__", [](const Value& a, const Value& b) { return a == b; })
      .def("__hash__",
           [](const Value& self) {
             return (static_cast<uint64_t>(self.node.value) << 32) | self.output;
           })
      .def("__repr__", [](const Value& self) {
        return "Value(" + std::to_string(self.node.value) + ", " + std::to_string(self.output) +
               ")";
      });
  nb::class_<Sym>(module, "Sym", "A symbolic integer: sympy's text over declared symbols.")
      .def(nb::init<std::string>(), nb::arg("text"))
      .def("__repr__", [](const Sym& self) { return repr("Sym", self.text); });
  nb::class_<DTypeArg>(module, "DTypeArg", "A dtype as an argument: torch's name.")
      .def(
          "__init__",
          [](DTypeArg* self, std::string_view name) { new (self) DTypeArg{dtype_of(name)}; },
          nb::arg("name"))
      .def("__repr__", [](DTypeArg self) { return repr("DTypeArg", torch_name(self.value)); });
  nb::class_<DeviceArg>(module, "DeviceArg", "A device as an argument, as torch prints it.")
      .def(nb::init<std::string>(), nb::arg("name"))
      .def("__repr__", [](const DeviceArg& self) { return repr("DeviceArg", self.value); });
  nb::class_<LayoutArg>(module, "LayoutArg", "A layout as an argument: \"strided\", ...")
      .def(
          "__init__",
          [](LayoutArg* self, std::string_view name) { new (self) LayoutArg(make_layout(name)); },
          nb::arg("name"))
      .def("__repr__", [](LayoutArg self) { return repr("LayoutArg", layout_name(self)); });
  nb::class_<MemoryFormatArg>(module, "MemoryFormatArg",
                              "A memory format as an argument: \"channels_last\", ...")
      .def(
          "__init__",
          [](MemoryFormatArg* self, std::string_view name) {
            new (self) MemoryFormatArg(make_memory_format(name));
          },
          nb::arg("name"))
      .def("__repr__",
           [](MemoryFormatArg self) { return repr("MemoryFormatArg", memory_format_name(self)); });
=======
std::string python_type(nb::handle object) { return Py_TYPE(object.ptr())->tp_name; }

bool is_sequence(nb::handle object) {
  return PyTuple_Check(object.ptr()) || PyList_Check(object.ptr());
>>>>>>> runtime
}

}  // namespace

<<<<<<< HEAD
void bind_graph_builder(nb::module_& module) {
  bind_arguments_and_values(module);

  nb::class_<Graph>(module, "Graph", "An ATen-level graph.")
      .def_static("from_text", &parse_graph, nb::arg("text"), "Reads the text form.")
      .def(
          "text", [](const Graph& self) { return to_string(self); }, "The text form.")
      .def("verify", &verify_graph, "Raises where an invariant does not hold.")
      .def_prop_ro("num_nodes", &Graph::num_nodes);

  nb::class_<GraphBuilder>(module, "GraphBuilder",
                           "Builds a Graph; every method that adds a node returns its number.")
      .def(nb::init<>())
      .def("symbol", &GraphBuilder::symbol, nb::arg("name"), nb::arg("lo").none() = nb::none(),
           nb::arg("hi").none() = nb::none(),
           "Declares a size symbol and its closed range; None is unbounded.")
      .def("tensor_input", &GraphBuilder::tensor_input, nb::arg("name"), nb::arg("dtype"),
           nb::arg("sizes"), nb::arg("strides"), nb::arg("offset") = 0, nb::arg("device") = "cpu",
           nb::arg("layout") = "strided")
      .def("symint_input", &GraphBuilder::symint_input, nb::arg("name"), nb::arg("expr"))
      .def("scalar_input", &GraphBuilder::scalar_input, nb::arg("name"))
      .def("constant", &GraphBuilder::constant, nb::arg("name"), nb::arg("dtype"), nb::arg("sizes"),
           nb::arg("data"), "A tensor from its elements' bytes, row-major.")
      .def("call", &GraphBuilder::call, nb::arg("name"), nb::arg("op"), nb::arg("schema").none(),
           nb::arg("args"), nb::arg("outputs"), nb::arg("stack") = "",
           nb::arg("kwargs") = nb::dict(),
           "Adds a call; schema is the op's text where it may differ from the built-in table.")
      .def("output", &GraphBuilder::output, nb::arg("values"))
      .def("text", [](const GraphBuilder& self) { return to_string(*self.graph()); })
      .def(
          "graph", [](GraphBuilder& self) -> Graph& { return *self.graph(); },
          nb::rv_policy::reference_internal, "The graph so far; it stays the builder's.");
=======
GraphBuilder::GraphBuilder() : access_(TorchDoor::get().access) {
  node_type_ = nb::module_::import_("torch.fx").attr("Node");
  const nb::module_ torch = nb::module_::import_("torch");
  sym_int_type_ = torch.attr("SymInt");
  device_type_ = torch.attr("device");
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

TensorMeta GraphBuilder::tensor_meta(nb::handle tensor) {
  const TorchApi& api = TorchDoor::get().environment->api;
  const TorchTensor handle = access_.handle(tensor.ptr());
  TensorMeta meta;
  int32_t number = 0;
  api.get_dtype(handle, &number);
  meta.dtype = api.from_torch(number);
  // A fake tensor answers for the device that it pretends to be on.
  if (api.get_device_type(handle, &number) != 0 || number != api.cpu) {
    meta.device = nb::cast<std::string>(nb::str(tensor.attr("device")));
  }
  if (api.get_layout != nullptr && api.get_layout(handle, &number) == 0 && number != api.strided) {
    throw UnsupportedGraph("a tensor in it has layout " +
                           nb::cast<std::string>(nb::str(tensor.attr("layout"))));
  }
  int64_t ndim = 0;
  int64_t* sizes = nullptr;
  int64_t* strides = nullptr;
  int64_t offset = 0;
  IndexContext& context = graph_.context();
  if (api.get_dim(handle, &ndim) == 0 && api.get_sizes(handle, &sizes) == 0 &&
      api.get_strides(handle, &strides) == 0 && api.get_storage_offset(handle, &offset) == 0) {
    for (int64_t d = 0; d < ndim; ++d) {
      meta.sizes.push_back(context.constant(sizes[d]));
      meta.strides.push_back(context.constant(strides[d]));
    }
    meta.offset = context.constant(offset);
    return meta;
  }
  // torch's C interface knows no symbolic sizes.
  meta.sizes = integers_of(tensor.attr("shape"));
  meta.strides = integers_of(tensor.attr("stride")());
  meta.offset = integer_of(tensor.attr("storage_offset")());
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

void GraphBuilder::input(nb::handle node, const std::string& name, nb::handle example) {
  nodes_.append(node);
  ValueMeta meta = meta_of(example);
  Binding binding;
  if (meta.kind == ValueMeta::Kind::kInt) {
    binding.value = meta.integer;
  }
  const NodeId id = graph_.add_input(name, std::move(meta));
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

void GraphBuilder::output(nb::handle values) {
  graph_.set_outputs(to_list(values));
  verify_graph(graph_);
}

void bind_graph_builder(nb::module_& m) {
  nb::exception<UnsupportedGraph>(m, "UnsupportedGraph");
  nb::class_<GraphBuilder>(m, "GraphBuilder",
                           "Builds a graph from fx nodes, inputs first, in execution order.")
      .def(nb::init<>())
      .def("symbol", &GraphBuilder::symbol, nb::arg("name"), nb::arg("lo"), nb::arg("hi"))
      .def("input", &GraphBuilder::input, nb::arg("node"), nb::arg("name"),
           nb::arg("example").none())
      .def("call", &GraphBuilder::call, nb::arg("node"), nb::arg("name"), nb::arg("op"),
           nb::arg("schema"), nb::arg("args"), nb::arg("kwargs"), nb::arg("example").none(),
           nb::arg("stack"))
      .def("integer", &GraphBuilder::integer, nb::arg("node"), nb::arg("example"))
      .def("item", &GraphBuilder::item, nb::arg("node"), nb::arg("source"), nb::arg("index"))
      .def("unusable", &GraphBuilder::unusable, nb::arg("node"), nb::arg("reason"))
      .def("output", &GraphBuilder::output, nb::arg("values"))
      .def_prop_ro("num_nodes", [](const GraphBuilder& b) { return b.graph().num_nodes(); })
      .def("__str__", [](const GraphBuilder& b) { return to_string(b.graph()); });
>>>>>>> runtime
}

}  // namespace litz
