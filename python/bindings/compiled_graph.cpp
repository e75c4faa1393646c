// The callable that torch.compile gets back.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "cuda_recordings.h"
#include "driver/interpreted_graph.h"
#include "frozen_inputs.h"
#include "graph/op_schema.h"
#include "python_ops.h"
#include "runtime/backend_run.h"
#include "runtime/frame.h"
#include "runtime/loaded_artifact.h"
#include "runtime/torch_host.h"
#include "support/error.h"
#include "tensor_access.h"
#include "torch_door.h"

namespace nb = nanobind;

namespace litz {
namespace {

// The objects that a graph is called with; somebody has references to them.
using Inputs = std::span<PyObject* const>;

Inputs items_of(const nb::object& tuple) {
  return {reinterpret_cast<PyTupleObject*>(tuple.ptr())->ob_item,
          static_cast<size_t>(PyTuple_GET_SIZE(tuple.ptr()))};
}

nb::object tuple_of(Inputs inputs) {
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(inputs.size())));
  if (!tuple.is_valid()) throw nb::python_error();
  for (size_t i = 0; i < inputs.size(); ++i)
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), Py_NewRef(inputs[i]));
  return tuple;
}

// An input that is on another device than the graph was compiled for.
class OtherDevice : public UserError {
 public:
  using UserError::UserError;
};

class CompiledGraph {
 public:
  CompiledGraph(std::shared_ptr<const Executable> executable, std::string path,
                nb::handle describe_op, nb::handle captured,
                std::map<std::string, std::string> places, const std::string& device,
                nb::handle elsewhere, std::shared_ptr<BackendDevice> backend)
      : door_(TorchDoor::get()),
        executable_(std::move(executable)),
        path_(std::move(path)),
        frames_(table()),
        host_(door_.environment, table(), take_ops(describe_op), device, backend != nullptr),
        captured_(nb::steal<nb::tuple>(PySequence_Tuple(captured.ptr()))),
        places_(std::move(places)),
        elsewhere_(nb::borrow(elsewhere)) {
    if (!captured_.is_valid()) throw nb::python_error();
    if (backend != nullptr) backend_ = std::make_unique<BackendModule>(std::move(backend), table());
  }

  // With the list of inputs, which is emptied.
  nb::object call(nb::handle arguments);
  // With the inputs themselves, which the caller keeps.
  nb::object call_unpacked(Inputs arguments);
  // One run with all inputs, the captured ones too.
  nb::object run(Inputs inputs);
  void record_runs(nb::object record, const std::optional<std::vector<size_t>>& unasked_saved) {
    std::vector<bool> computed(static_cast<size_t>(table().num_inputs));
    for (size_t i = 0; i < computed.size() && frozen_ != nullptr; ++i)
      computed[i] = frozen_->is_computed(i);
    std::optional<std::vector<bool>> saved;
    if (unasked_saved) {
      saved.emplace(static_cast<size_t>(table().num_outputs));
      for (const size_t output : *unasked_saved) saved->at(output) = true;
    }
    recordings_ = std::make_unique<CudaRecordings>(
        door_, table(), host_.device(), std::move(record), std::move(computed), std::move(saved));
  }
  // Calls bring the inputs that the graph had before it was split.
  void freeze(nb::object compute, std::vector<uint32_t> frozen, const nb::list& sources,
              size_t count);
  const FrozenInputs* frozen() const { return frozen_.get(); }
  void forget_frozen() {
    if (frozen_ != nullptr) frozen_->forget();
  }
  std::vector<uint64_t> frozen_storages() const {
    return frozen_ == nullptr ? std::vector<uint64_t>() : frozen_->storages();
  }
  void drop_frozen(const std::vector<uint64_t>& storages) {
    if (frozen_ != nullptr) frozen_->drop_storages({storages.begin(), storages.end()});
  }
  // What calls bring is given up as soon as the run needs it no more.
  void drop_inputs() { drops_inputs_ = true; }
  size_t num_recordings() const { return recordings_ == nullptr ? 0 : recordings_->count(); }

  const LitzArtifact& table() const { return executable_->table(); }
  const std::string& path() const { return path_; }
  nb::list library_ops() const;
  int traverse(visitproc visit, void* arg) const;
  void clear() {
    callables_.clear();
    captured_ = nb::tuple();
    elsewhere_ = nb::none();
    if (recordings_ != nullptr) recordings_->clear();
    if (frozen_ != nullptr) frozen_->clear();
  }

 private:
  std::vector<TorchOpTypes> take_ops(nb::handle describe_op);
  nb::object take_inputs(nb::handle arguments) const;
  Py_ssize_t num_own_inputs() const {
    const auto all = frozen_ == nullptr ? static_cast<Py_ssize_t>(table().num_inputs)
                                        : static_cast<Py_ssize_t>(frozen_->count());
    return all - PyTuple_GET_SIZE(captured_.ptr());
  }
  void check_count(Py_ssize_t given, Py_ssize_t wanted) const;
  nb::object with_captured(nb::object inputs) const;
  nb::object call_with(const nb::object& given);
  // Whether all tensors are on the graph's device; what is only passed on may be on another one.
  bool read_inputs(Inputs inputs, Frame& frame) const;
  void read_opaque(PyObject* object, size_t index, Frame& frame) const;
  bool read_tensor(PyObject* object, size_t index, Frame& frame) const;
  nb::object call_elsewhere(nb::handle inputs, const OtherDevice& fault) const;
  nb::object run_frame(Frame& frame, Inputs inputs, PythonOpCalls& python,
                       HostBound* timed = nullptr);
  PythonOpCalls python_calls() {
    return {door_.environment->api, host_.device(), door_.access, callables_};
  }
  nb::object collect(const Frame& frame, Inputs inputs) const;
  std::string in_this_graph(const std::string& message) const;
  [[noreturn]] void raise(int status, const TorchRun& run, PythonOpCalls& python) const;
  std::string input_text(size_t index) const;
  [[noreturn]] void reject(size_t index, const std::string& fault) const;

  TorchDoor& door_;
  std::shared_ptr<const Executable> executable_;
  std::string path_;  // empty where the graph is interpreted
  FramePool frames_;
  std::vector<nb::object> callables_;
  TorchHost host_;
  std::unique_ptr<BackendModule> backend_;  // of kernels that are not the artifact's own
  nb::tuple captured_;                      // inputs that every call gets, after its own
  std::map<std::string, std::string> places_;
  std::unique_ptr<FrozenInputs> frozen_;
  std::unique_ptr<CudaRecordings> recordings_;
  bool drops_inputs_ = false;
  nb::object elsewhere_;  // called instead where inputs are on another device, or None
};

TorchOpTypes types_of(const OpSchema& schema) {
  TorchOpTypes types;
  for (const SchemaArgument& argument : schema.arguments) types.arguments.push_back(argument.type);
  for (const SchemaArgument& result : schema.returns) types.returns.push_back(result.type);
  return types;
}

std::vector<TorchOpTypes> CompiledGraph::take_ops(nb::handle describe_op) {
  std::vector<TorchOpTypes> types;
  for (int32_t i = 0; i < table().num_extern_ops; ++i) {
    const nb::object op = describe_op(table().extern_ops[i].name, table().extern_ops[i].overload);
    callables_.push_back(op[0]);
    types.push_back(types_of(parse_schema(nb::cast<std::string>(op[1]))));
  }
  return types;
}

std::string CompiledGraph::input_text(size_t index) const {
  return "input " + std::to_string(index) + " (" + table().inputs[index].name + ") ";
}

void CompiledGraph::reject(size_t index, const std::string& fault) const {
  throw UserError(input_text(index) + fault);
}

std::string device_of(PyObject* tensor) {
  const nb::object device = nb::handle(tensor).attr("device");
  return nb::cast<std::string>(nb::str(device));
}

void CompiledGraph::freeze(nb::object compute, std::vector<uint32_t> frozen,
                           const nb::list& sources, size_t count) {
  std::vector<FrozenInputs::Source> read;
  for (nb::handle source : sources) {
    read.push_back(
        {nb::cast<bool>(source[0]), nb::cast<bool>(source[1]), nb::cast<uint32_t>(source[2])});
  }
  if (read.size() != static_cast<size_t>(table().num_inputs))
    throw InternalError("a frozen graph has other inputs than were compiled");
  frozen_ = std::make_unique<FrozenInputs>(door_, host_.device(), std::move(compute),
                                           std::move(frozen), std::move(read), count);
}

// Of a tensor whose layout the library alone knows nothing but the handle is looked at.
void CompiledGraph::read_opaque(PyObject* object, size_t index, Frame& frame) const {
  const LitzInputSpec& spec = table().inputs[index];
  LitzTensor& tensor = frame.input_tensors[index];
  tensor = {.data = nullptr,
            .sizes = spec.sizes,
            .strides = spec.strides,
            .ndim = spec.ndim,
            .dtype = spec.dtype,
            .handle = door_.access.handle(object)};
  frame.inputs[index] = {.kind = LITZ_TENSOR, .count = 0, .u = {.tensor = &tensor}};
}

bool CompiledGraph::read_tensor(PyObject* object, size_t index, Frame& frame) const {
  const TorchApi& api = door_.environment->api;
  const TorchTensor handle = door_.access.handle(object);
  int64_t ndim = 0;
  int64_t* sizes = nullptr;
  int64_t* strides = nullptr;
  int32_t dtype = 0;
  TorchDevice device;
  LitzTensor& tensor = frame.input_tensors[index];
  const TorchDevice& wanted = host_.device();
  const bool known = api.get_device_type(handle, &device.type) == 0 &&
                     (wanted.type != api.cuda || api.get_device_index(handle, &device.index) == 0);
  const bool here = known && device == wanted;
  if (!here && (!known || table().inputs[index].is_passed_on == 0)) {
    throw OtherDevice(input_text(index) + "is on the device " + device_of(object) +
                      ", the graph was compiled for " + api.device_text(wanted));
  }
  if (api.get_dim(handle, &ndim) != 0 || api.get_sizes(handle, &sizes) != 0 ||
      api.get_strides(handle, &strides) != 0 || api.get_dtype(handle, &dtype) != 0 ||
      api.get_data_ptr(handle, &tensor.data) != 0) {
    reject(index, "is not a dense tensor");
  }
  tensor.sizes = sizes;
  tensor.strides = strides;
  tensor.ndim = static_cast<int32_t>(ndim);
  tensor.dtype = static_cast<LitzDType>(api.from_torch(dtype));
  tensor.handle = handle;
  frame.inputs[index] = {.kind = LITZ_TENSOR, .count = 0, .u = {.tensor = &tensor}};
  return here;
}

bool CompiledGraph::read_inputs(Inputs inputs, Frame& frame) const {
  bool all_here = true;
  for (size_t i = 0; i < frame.inputs.size(); ++i) {
    PyObject* object = inputs[i];
    if (frozen_ != nullptr && frozen_->is_opaque(i)) {
      read_opaque(object, i, frame);
    } else if (door_.access.is_tensor(object)) {
      all_here &= read_tensor(object, i, frame);
    } else if (PyLong_Check(object)) {
      const int64_t value = PyLong_AsLongLong(object);
      if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
      frame.inputs[i] = {.kind = LITZ_INT, .count = 0, .u = {.i = value}};
    } else {
      reject(i, std::string("has type ") + Py_TYPE(object)->tp_name +
                    ", which is neither a tensor nor an int");
    }
  }
  if (const std::string fault = check_inputs(table(), frame); !fault.empty()) {
    throw UserError(fault);
  }
  return all_here;
}

nb::object CompiledGraph::collect(const Frame& frame, Inputs inputs) const {
  const auto count = static_cast<Py_ssize_t>(frame.outputs.size());
  nb::object outputs = nb::steal(PyTuple_New(count));
  if (!outputs.is_valid()) throw nb::python_error();
  for (Py_ssize_t k = 0; k < count; ++k) {
    const LitzValue& value = frame.outputs[static_cast<size_t>(k)];
    PyObject* item = nullptr;
    switch (value.kind) {
      case LITZ_TENSOR:
        item = door_.access.wrap(frame.output_tensors[static_cast<size_t>(k)].handle);
        break;
      case LITZ_INT:
        item = PyLong_FromLongLong(value.u.i);
        break;
      case LITZ_DOUBLE:
        item = PyFloat_FromDouble(value.u.d);
        break;
      case LITZ_BOOL:
        item = PyBool_FromLong(value.u.i != 0);
        break;
      case LITZ_NONE:
        item = Py_NewRef(Py_None);
        break;
      case LITZ_SAME_INPUT:
        item = Py_NewRef(inputs[static_cast<size_t>(value.u.i)]);
        break;
      case LITZ_SAME_OUTPUT:
        item = Py_NewRef(PyTuple_GET_ITEM(outputs.ptr(), static_cast<Py_ssize_t>(value.u.i)));
        break;
      default:
        throw InternalError("output " + std::to_string(k) + " has unknown kind " +
                            std::to_string(value.kind));
    }
    if (item == nullptr) throw nb::python_error();
    PyTuple_SET_ITEM(outputs.ptr(), k, item);
  }
  return outputs;
}

// A message of the library ends in the place; a library from the cache was made for a graph that
// may have other names and lines.
std::string CompiledGraph::in_this_graph(const std::string& message) const {
  for (size_t in = message.find(" in "); in != message.npos; in = message.find(" in ", in + 1)) {
    const auto found = places_.find(message.substr(in + 4));
    if (found != places_.end()) return message.substr(0, in + 4) + found->second;
  }
  return message;
}

void CompiledGraph::raise(int status, const TorchRun& run, PythonOpCalls& python) const {
  if (python.raised().is_valid()) {
    const nb::object raised = std::move(python.raised());
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.ptr())), raised.ptr());
    throw nb::python_error();
  }
  const std::string message =
      run.message().empty() ? "the compiled graph failed" : in_this_graph(run.message());
  nb::object kind =
      nb::borrow(status == LITZ_INDEX_OUT_OF_RANGE ? PyExc_IndexError : PyExc_RuntimeError);
  if (status == LITZ_OUT_OF_MEMORY && host_.is_cuda()) {
    kind = nb::module_::import_("torch").attr("OutOfMemoryError");
  }
  PyErr_SetString(kind.ptr(), message.c_str());
  throw nb::python_error();
}

void CompiledGraph::check_count(Py_ssize_t given, Py_ssize_t wanted) const {
  if (given == wanted) return;
  throw UserError("the graph has " + std::to_string(wanted) + " inputs, " + std::to_string(given) +
                  " were given");
}

// A reference of our own to each input, because another thread may change the list while the graph
// runs; empties the list, so that the caller's frame does not keep the inputs alive.
nb::object CompiledGraph::take_inputs(nb::handle arguments) const {
  nb::object inputs = nb::steal(PySequence_Tuple(arguments.ptr()));
  if (!inputs.is_valid()) throw nb::python_error();
  check_count(PyTuple_GET_SIZE(inputs.ptr()), num_own_inputs());
  if (PyList_CheckExact(arguments.ptr())) {
    PyList_SetSlice(arguments.ptr(), 0, PyList_GET_SIZE(arguments.ptr()), nullptr);
  }
  return with_captured(std::move(inputs));
}

nb::object CompiledGraph::with_captured(nb::object inputs) const {
  if (PyTuple_GET_SIZE(captured_.ptr()) == 0) return inputs;
  inputs = nb::steal(PySequence_Concat(inputs.ptr(), captured_.ptr()));
  if (!inputs.is_valid()) throw nb::python_error();
  return inputs;
}

// `inputs` end with the captured ones, which the other function has itself.
nb::object CompiledGraph::call_elsewhere(nb::handle inputs, const OtherDevice& fault) const {
  const Py_ssize_t own = PyTuple_GET_SIZE(inputs.ptr()) - PyTuple_GET_SIZE(captured_.ptr());
  const nb::object taken = nb::steal(PyTuple_GetSlice(inputs.ptr(), 0, own));
  if (!taken.is_valid()) throw nb::python_error();
  return elsewhere_(taken, std::string(fault.what()));
}

nb::object CompiledGraph::call(nb::handle arguments) { return call_with(take_inputs(arguments)); }

nb::object CompiledGraph::call_unpacked(Inputs arguments) {
  check_count(static_cast<Py_ssize_t>(arguments.size()), num_own_inputs());
  const bool may_record = recordings_ != nullptr && !recordings_->is_over();
  if (PyTuple_GET_SIZE(captured_.ptr()) != 0 || may_record || frozen_ != nullptr)
    return call_with(with_captured(tuple_of(arguments)));
  FramePool::Lease frame(frames_);
  try {
    read_inputs(arguments, *frame);
  } catch (const OtherDevice& fault) {
    if (elsewhere_.is_none()) throw;
    return call_elsewhere(tuple_of(arguments), fault);
  }
  PythonOpCalls python = python_calls();
  return run_frame(*frame, arguments, python);
}

nb::object CompiledGraph::call_with(const nb::object& given) {
  const nb::object inputs = frozen_ == nullptr ? given : frozen_->arrange(items_of(given));
  FramePool::Lease frame(frames_);
  bool all_here = true;
  try {
    all_here = read_inputs(items_of(inputs), *frame);
  } catch (const OtherDevice& fault) {
    if (elsewhere_.is_none()) throw;
    return call_elsewhere(given, fault);
  }
  // A recording would keep what a library op read on the host.
  HostBound* timed = nullptr;
  if (recordings_ != nullptr && all_here) {
    nb::object outputs = recordings_->call(*frame, inputs, &timed);
    if (outputs.is_valid()) return outputs;
  }
  PythonOpCalls python = python_calls();
  // Captured inputs are another tuple's as well, and so are those of other calls.
  if (drops_inputs_ && frozen_ == nullptr && Py_REFCNT(inputs.ptr()) <= 2) python.own(inputs);
  return run_frame(*frame, items_of(inputs), python, timed);
}

nb::object CompiledGraph::run(Inputs inputs) {
  check_count(static_cast<Py_ssize_t>(inputs.size()), table().num_inputs);
  FramePool::Lease frame(frames_);
  read_inputs(inputs, *frame);
  PythonOpCalls python = python_calls();
  return run_frame(*frame, inputs, python);
}

nb::object CompiledGraph::run_frame(Frame& frame, Inputs inputs, PythonOpCalls& python,
                                    HostBound* timed) {
  TorchRun run(host_, python);
  int status = LITZ_OK;
  const bool is_timed = timed != nullptr && timed->begin(run.stream());
  {
    nb::gil_scoped_release released;
    BlockPool* blocks = host_.is_cuda() ? nullptr : door_.environment->blocks.get();
    status = backend_ == nullptr ? executable_->run(run.table(), frame, blocks)
                                 : BackendRun(*backend_, run.table()).run(*executable_, frame);
  }
  if (is_timed) timed->end();
  if (status != LITZ_OK) raise(status, run, python);
  return collect(frame, inputs);
}

nb::list CompiledGraph::library_ops() const {
  nb::list ops;
  for (int32_t i = 0; i < table().num_extern_ops; ++i) {
    const LitzExternOp& op = table().extern_ops[i];
    ops.append(nb::make_tuple(op.name, op.overload, op.node, host_.way(i)));
  }
  return ops;
}

int CompiledGraph::traverse(visitproc visit, void* arg) const {
  for (const nb::object& callable : callables_) Py_VISIT(callable.ptr());
  Py_VISIT(captured_.ptr());
  Py_VISIT(elsewhere_.ptr());
  if (frozen_ != nullptr) {
    if (const int result = frozen_->traverse(visit, arg); result != 0) return result;
  }
  if (recordings_ != nullptr) return recordings_->traverse(visit, arg);
  return 0;
}

// What act() returns, or nullptr with the error set.
template <class Act>
PyObject* guarded(const Act& act) {
  try {
    return act().release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const UserError& error) {
    PyErr_SetString(exception_types().user, error.what());
  } catch (const std::exception& error) {
    PyErr_SetString(exception_types().internal, error.what());
  }
  return nullptr;
}

// Called for graph(inputs). The slot, not a method, because it saves two look-ups a call.
PyObject* call_slot(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (PyTuple_GET_SIZE(args) != 1 || (kwargs != nullptr && PyDict_GET_SIZE(kwargs) != 0)) {
    PyErr_SetString(PyExc_TypeError, "a compiled graph takes one argument: the list of its inputs");
    return nullptr;
  }
  return guarded(
      [&] { return nb::inst_ptr<CompiledGraph>(self)->call(PyTuple_GET_ITEM(args, 0)); });
}

PyObject* call_unpacked(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    return nb::inst_ptr<CompiledGraph>(self)->call_unpacked({args, static_cast<size_t>(count)});
  });
}

PyMethodDef unpacked_method = {
    "call_unpacked", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_unpacked)),
    METH_FASTCALL, "Runs the graph with its inputs as arguments; returns a tuple."};

int traverse_slot(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  return nb::inst_ptr<CompiledGraph>(self)->traverse(visit, arg);
}

int clear_slot(PyObject* self) {
  nb::inst_ptr<CompiledGraph>(self)->clear();
  return 0;
}

PyType_Slot slots[] = {
    {Py_tp_call, reinterpret_cast<void*>(call_slot)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_slot)},
    {Py_tp_clear, reinterpret_cast<void*>(clear_slot)},
    {0, nullptr},
};

}  // namespace

void bind_compiled_graph(nb::module_& m) {
  nb::class_<CompiledGraph> graph(
      m, "CompiledGraph", nb::type_slots(slots), nb::dynamic_attr(), nb::is_weak_referenceable(),
      "A compiled graph, loaded. Called with the list of its inputs, which it empties; returns a "
      "tuple. Any number of threads may call it at once.");
  graph
      .def(
          "__init__",
          [](CompiledGraph* self, const std::string& path, nb::handle describe_op,
             nb::handle captured, std::map<std::string, std::string> places,
             const std::string& device, nb::handle elsewhere,
             std::shared_ptr<BackendDevice> backend) {
            new (self) CompiledGraph(LoadedArtifact::load(path), path, describe_op, captured,
                                     std::move(places), device, elsewhere, std::move(backend));
          },
          nb::arg("path"), nb::arg("describe_op"), nb::arg("captured") = nb::tuple(),
          nb::arg("places") = std::map<std::string, std::string>(), nb::arg("device") = "cpu",
          nb::arg("elsewhere") = nb::none(), nb::arg("backend").none() = nb::none(),
          "Loads the library at `path`. `describe_op(name, overload)` is called for each library "
          "op of the artifact and returns a callable that takes all arguments by position, and "
          "the op's schema. The tensors of `captured` are the artifact's last inputs, the same at "
          "every call. `places` has what messages are to say instead of a place of the graph that "
          "the library was made for. `device` is where the inputs are and the graph runs: \"cpu\" "
          "or \"cuda:0\"; where an input is on another one, `elsewhere(inputs, fault)` is called "
          "instead, with the tuple of inputs and a sentence; without it that is an error. "
          "`backend` is the device that its kernels were compiled for, where the tensors are the "
          "CPU's and the kernels are not.")
      .def(
          "__init__",
          [](CompiledGraph* self, const Program& program, nb::handle describe_op,
             nb::handle captured, std::map<std::string, std::string> places) {
            new (self) CompiledGraph(make_interpreted_graph(program), "", describe_op, captured,
                                     std::move(places), "cpu", nb::none(), nullptr);
          },
          nb::arg("program"), nb::arg("describe_op"), nb::arg("captured") = nb::tuple(),
          nb::arg("places") = std::map<std::string, std::string>(),
          "The same for a program that is interpreted, on the CPU.")
      .def_prop_ro("path", &CompiledGraph::path)
      .def_prop_ro("num_inputs", [](const CompiledGraph& g) { return g.table().num_inputs; })
      .def_prop_ro("num_outputs", [](const CompiledGraph& g) { return g.table().num_outputs; })
      .def_prop_ro(
          "description", [](const CompiledGraph& g) { return g.table().description; },
          "What the compiler says about the graph, as JSON.")
      .def(
          "run",
          [](CompiledGraph& g, nb::handle inputs) {
            const nb::object taken = nb::steal(PySequence_Tuple(inputs.ptr()));
            if (!taken.is_valid()) throw nb::python_error();
            return g.run(items_of(taken));
          },
          nb::arg("inputs"), "One run, not recorded, with all inputs, the captured ones too.")
      .def_prop_ro(
          "unpacked",
          [](nb::handle self) {
            // The method reads `self` as what it has to be.
            if (!nb::isinstance<CompiledGraph>(self) || !nb::inst_ready(self))
              throw nb::type_error("only a compiled graph can be called so");
            nb::object method = nb::steal(PyCFunction_New(&unpacked_method, self.ptr()));
            if (!method.is_valid()) throw nb::python_error();
            return method;
          },
          "The graph as a function of its inputs, rather than of a list of them.")
      .def("record_runs", &CompiledGraph::record_runs, nb::arg("record"),
           nb::arg("unasked_saved") = nb::none(),
           "Lets calls on a CUDA device be recorded as CUDA graphs and replayed. "
           "`record(inputs, copied)` is what `litz.cuda_graphs.recorder` gives. With "
           "`unasked_saved` nobody has asked for that: it is done only where launching takes the "
           "host longer than the device takes, and outputs are copied from the recording but for "
           "those at these positions, which the graph saves for its gradient.")
      .def("freeze", &CompiledGraph::freeze, nb::arg("compute"), nb::arg("frozen"),
           nb::arg("sources"), nb::arg("count"),
           "Lets calls bring `count` inputs, of which those at positions `frozen` are computed "
           "with: `compute` and `sources` are what `litz.freezing` has.")
      .def("frozen_storages", &CompiledGraph::frozen_storages,
           "The storages of parameters that what was computed of them holds, as often as it does.")
      .def("drop_frozen", &CompiledGraph::drop_frozen, nb::arg("storages"),
           "Drops what was computed of parameters in one of these storages.")
      .def("forget_frozen", &CompiledGraph::forget_frozen,
           "Computes again at the next call what depends on frozen inputs alone.")
      .def_prop_ro(
          "frozen_sets",
          [](const CompiledGraph& g) -> nb::object {
            if (g.frozen() == nullptr) return nb::none();
            return nb::make_tuple(g.frozen()->num_computed(), g.frozen()->num_kept());
          },
          "How often that was computed, and how many sets of it are kept; None where nothing is "
          "frozen.")
      .def("drop_inputs", &CompiledGraph::drop_inputs,
           "Gives up each tensor that a call brings in its list as soon as the run needs it no "
           "more.")
      .def_prop_ro("num_recordings", &CompiledGraph::num_recordings, "CUDA graphs that are kept.")
      .def_prop_ro("library_ops", &CompiledGraph::library_ops,
                   "(name, overload, FX node, way) of each library op; the way is \"direct\", "
                   "\"dispatcher\" or \"python\".");
  const auto pool = [] { return TorchDoor::get().environment->blocks; };
  m.def(
      "memory_usage",
      [pool] {
        const BlockPool::Usage usage = pool()->usage();
        return std::tuple(usage.in_use, usage.idle, usage.limit);
      },
      "Bytes of the process's pool: in use, idle, and the bound on the idle ones.");
  m.def(
      "release_memory", [pool] { return pool()->trim(); },
      "Gives the pool's idle memory back to the system: its bytes.");
  m.def("set_memory_limit", [pool](size_t bytes) { pool()->set_limit(bytes); }, nb::arg("bytes"));
  // AOTAutograd's sign for callables that take a list and empty it.
  graph.attr("_boxed_call") = true;
}

}  // namespace litz
