// litz._core.freeze_graph: a graph in two parts, the frozen one as calls that Python makes.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "driver/environment.h"
#include "driver/freeze_graph.h"
#include "graph/value_map.h"
#include "graph_builder.h"
#include "options_from_python.h"
#include "support/error.h"
#include "torch_door.h"

namespace nb = nanobind;

namespace litz {
namespace {

// Stands in arguments for a tensor: the inputs in order, then the results of one call after the
// other.
struct FrozenValue {
  size_t number = 0;
};

class CallList {
 public:
  explicit CallList(const Graph& graph)
      : graph_(graph), access_(TorchDoor::get().access), numbers_(graph) {}

  // (name, overload, arguments by position, number of results) of each.
  nb::list calls() {
    nb::list calls;
    for (uint32_t i = 0; i < graph_.num_nodes(); ++i) {
      const Node& node = graph_.node(NodeId(i));
      for (uint32_t k = 0; k < node.outputs.size(); ++k) numbers_[{NodeId(i), k}] = next_++;
      if (node.kind == NodeKind::kInput) continue;
      if (node.kind == NodeKind::kConstant)
        throw InternalError("a front end that has no constants got one: " + node.name);
      nb::list arguments;
      for (const Argument& argument : node.arguments) arguments.append(to_python(argument));
      calls.append(
          nb::make_tuple(node.schema->name, node.schema->overload, arguments, node.outputs.size()));
    }
    return calls;
  }

  // (value, sizes, strides) of each output; without sizes and strides where torch does not show
  // them.
  nb::list outputs() const {
    nb::list outputs;
    for (const Argument& output : graph_.outputs()) {
      const Value value = output.get<Value>();
      const TensorMeta& meta = graph_.tensor(value);
      const bool is_opaque = meta.layout != TensorLayout::kStrided;
      outputs.append(nb::make_tuple(FrozenValue{numbers_[value]},
                                    is_opaque ? nb::none() : integers(meta.sizes),
                                    is_opaque ? nb::none() : integers(meta.strides)));
    }
    return outputs;
  }

 private:
  static nb::object integers(const std::vector<Index>& extents) {
    nb::list list;
    for (Index extent : extents) list.append(extent.constant());
    return nb::tuple(list);
  }

  nb::object to_python(const Argument& argument) const {
    return std::visit(
        [&](const auto& a) -> nb::object {
          using T = std::decay_t<decltype(a)>;
          if constexpr (std::is_same_v<T, std::monostate>) {
            return nb::none();
          } else if constexpr (std::is_same_v<T, Value>) {
            return nb::cast(FrozenValue{numbers_[a]});
          } else if constexpr (std::is_same_v<T, int64_t>) {
            return nb::int_(a);
          } else if constexpr (std::is_same_v<T, double>) {
            return nb::float_(a);
          } else if constexpr (std::is_same_v<T, bool>) {
            return nb::bool_(a);
          } else if constexpr (std::is_same_v<T, std::string>) {
            return nb::str(a.c_str(), a.size());
          } else if constexpr (std::is_same_v<T, std::complex<double>>) {
            return nb::steal(PyComplex_FromDoubles(a.real(), a.imag()));
          } else if constexpr (std::is_same_v<T, DType>) {
            return nb::borrow(access_.dtype(a));
          } else if constexpr (std::is_same_v<T, DeviceArg>) {
            return access_.device(a.value.c_str());
          } else if constexpr (std::is_same_v<T, MemoryFormatArg>) {
            return nb::borrow(access_.memory_format(a.value));
          } else if constexpr (std::is_same_v<T, LayoutArg>) {
            return nb::borrow(access_.strided());
          } else if constexpr (std::is_same_v<T, ArgumentList>) {
            nb::list list;
            for (const Argument& item : a) list.append(to_python(item));
            return list;
          } else {
            throw InternalError("a frozen call has a symbolic argument");
          }
        },
        argument.v);
  }

  const Graph& graph_;
  const TensorAccess& access_;
  ValueMap<size_t> numbers_;
  size_t next_ = 0;
};

// None where there is nothing to compute ahead, else (calls, outputs, positions of the inputs that
// they take, builder of the rest, (is computed, is opaque, position) of each input of the rest).
nb::object freeze(GraphBuilder& builder, const nb::dict& given,
                  const std::vector<std::string>& schemas) {
  const Options options = options_from_python(given);
  for (const std::string& schema : schemas) builder.graph().schemas().declare(schema);
  SplitGraph split = [&] {
    nb::gil_scoped_release released;
    return freeze_graph(builder.graph(), options);
  }();
  if (split.frozen.outputs().empty()) return nb::none();
  CallList list(split.frozen);
  nb::list calls = list.calls();
  nb::list sources;
  for (size_t i = 0; i < split.rest_inputs.size(); ++i) {
    const ValueMeta& meta = split.rest.node(split.rest.inputs()[i]).outputs[0];
    const bool is_opaque = meta.is_tensor() && meta.tensor.layout != TensorLayout::kStrided;
    sources.append(
        nb::make_tuple(split.rest_inputs[i].is_computed, is_opaque, split.rest_inputs[i].position));
  }
  auto rest = std::make_unique<GraphBuilder>(std::move(split.rest), builder.device());
  return nb::make_tuple(calls, list.outputs(), split.frozen_inputs,
                        nb::cast(rest.release(), nb::rv_policy::take_ownership), sources);
}

}  // namespace

void bind_frozen_graph(nb::module_& m) {
  nb::class_<FrozenValue>(m, "FrozenValue", "Stands for a tensor in the calls of freeze_graph.")
      .def_ro("number", &FrozenValue::number, "Of the inputs in order, then of all results.");
  m.def("freeze_graph", &freeze, nb::arg("builder"), nb::arg("options"), nb::arg("schemas"),
        "Splits a graph into what depends on frozen inputs alone and the rest: None where there is "
        "nothing to compute ahead, else (calls, outputs, frozen_inputs, rest, sources). `schemas` "
        "are those of library ops that this PyTorch has beside ATen's.");
}

}  // namespace litz
