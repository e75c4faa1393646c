#include "graph_builder.h"

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

namespace nb = nanobind;

namespace litz {
namespace {

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
}

}  // namespace

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
}

}  // namespace litz
