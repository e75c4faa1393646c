#include "frozen_inputs.h"

#include <algorithm>
#include <utility>

#include "support/error.h"

namespace nb = nanobind;

namespace litz {
namespace {

// A module for each, of modules that share a graph.
constexpr size_t kMostSets = 64;

}  // namespace

FrozenInputs::FrozenInputs(TorchDoor& door, TorchDevice device, nb::object compute,
                           std::vector<uint32_t> frozen, std::vector<Source> sources, size_t count)
    : door_(door),
      device_(device),
      compute_(std::move(compute)),
      frozen_(std::move(frozen)),
      sources_(std::move(sources)),
      count_(count) {}

int64_t FrozenInputs::version_of(PyObject* tensor) const {
  if (door_.environment->api.cxx_version != nullptr)
    return door_.environment->api.cxx_version(door_.access.handle(tensor));
  return nb::cast<int64_t>(nb::handle(tensor).attr("_version"));
}

void* FrozenInputs::address_of(PyObject* tensor) const {
  void* address = nullptr;
  if (door_.environment->api.get_data_ptr(door_.access.handle(tensor), &address) != 0)
    throw UserError("a parameter is not a dense tensor");
  return address;
}

template <class Visit>
bool FrozenInputs::visit_layout(PyObject* tensor, const Visit& visit) const {
  const TorchApi& api = door_.environment->api;
  const TorchTensor handle = door_.access.handle(tensor);
  int32_t dtype = 0;
  int64_t ndim = 0;
  int64_t* sizes = nullptr;
  int64_t* strides = nullptr;
  if (api.get_dtype(handle, &dtype) != 0 || api.get_dim(handle, &ndim) != 0 ||
      api.get_sizes(handle, &sizes) != 0 || api.get_strides(handle, &strides) != 0)
    throw UserError("a parameter is not a dense tensor");
  bool goes_on = visit(dtype);
  for (int64_t i = 0; i < ndim && goes_on; ++i) goes_on = visit(sizes[i]) && visit(strides[i]);
  return goes_on;
}

std::optional<FrozenInputs::Stamp> FrozenInputs::stamp_of(PyObject* tensor) const {
  Stamp stamp;
  stamp.tensor = tensor;
  stamp.counter = door_.access.version_counter(tensor);
  stamp.version = version_of(tensor);
  stamp.address = address_of(tensor);
  visit_layout(tensor, [&](int64_t number) {
    stamp.layout.push_back(number);
    return true;
  });
  stamp.memory = nb::handle(tensor).attr("detach")();
  if (stamp.counter == nullptr ||
      stamp.counter != door_.access.version_counter(stamp.memory.ptr()) ||
      stamp.address != address_of(stamp.memory.ptr()))
    return std::nullopt;
  stamp.storage = stamp.memory.attr("untyped_storage")();
  stamp.storage_number = nb::cast<uint64_t>(stamp.storage.attr("_cdata"));
  return stamp;
}

bool FrozenInputs::is_same(const Stamp& stamp, PyObject* tensor) const {
  if (stamp.tensor != tensor || door_.access.version_counter(tensor) != stamp.counter ||
      version_of(tensor) != stamp.version || address_of(tensor) != stamp.address)
    return false;
  size_t next = 0;
  return visit_layout(tensor,
                      [&](int64_t number) {
                        return next < stamp.layout.size() && stamp.layout[next++] == number;
                      }) &&
         next == stamp.layout.size();
}

bool FrozenInputs::is_valid(const Set& set, std::span<PyObject* const> given) const {
  for (size_t i = 0; i < frozen_.size(); ++i) {
    if (!is_same(set.stamps[i], given[frozen_[i]])) return false;
  }
  return true;
}

bool FrozenInputs::is_for(const Set& set, std::span<PyObject* const> given) const {
  for (size_t i = 0; i < frozen_.size(); ++i) {
    if (set.stamps[i].tensor != given[frozen_[i]]) return false;
  }
  return true;
}

nb::object FrozenInputs::values_for(std::span<PyObject* const> given) {
  for (size_t i = sets_.size(); i-- > 0;) {
    // Asking for a version may run Python code, which may drop sets.
    if (i >= sets_.size()) continue;
    const std::shared_ptr<const Set> set = sets_[i];
    if (!is_valid(*set, given)) continue;
    const auto place = std::find(sets_.begin(), sets_.end(), set);
    if (place != sets_.end()) std::rotate(place, place + 1, sets_.end());
    use_on_current_stream(*set);
    return set->values;
  }
  return compute(given);
}

// Their memory goes back to the stream that they were made on: it is to wait for the others.
void FrozenInputs::use_on_current_stream(const Set& set) const {
  const TorchApi& api = door_.environment->api;
  void* stream = nullptr;
  if (device_.type != api.cuda || api.cuda_stream(device_.index, &stream) != 0 ||
      std::find(set.streams.begin(), set.streams.end(), stream) != set.streams.end())
    return;
  set.streams.push_back(stream);
  if (set.streams.size() > 1) compute_.attr("record_stream")(set.values);
}

// Freeing tensors may run Python code, which is not to find the list half changed.
template <class IsOver>
void FrozenInputs::drop(const IsOver& is_over) {
  Sets kept;
  for (const auto& set : sets_) {
    if (!is_over(*set)) kept.push_back(set);
  }
  std::swap(sets_, kept);
}

void FrozenInputs::forget() {
  drop([](const Set&) { return true; });
}

std::vector<uint64_t> FrozenInputs::storages() const {
  std::vector<uint64_t> result;
  for (const auto& set : sets_) {
    for (const Stamp& stamp : set->stamps) result.push_back(stamp.storage_number);
  }
  return result;
}

void FrozenInputs::drop_storages(const std::unordered_set<uint64_t>& storages) {
  drop([&](const Set& set) {
    return std::any_of(set.stamps.begin(), set.stamps.end(), [&](const Stamp& stamp) {
      return storages.find(stamp.storage_number) != storages.end();
    });
  });
}

// Drops what can never be valid again, and the oldest where there are too many.
void FrozenInputs::make_room(std::span<PyObject* const> given) {
  drop([&](const Set& set) { return is_for(set, given); });
  if (sets_.size() < kMostSets) return;
  const std::shared_ptr<const Set> oldest = sets_.front();
  drop([&](const Set& set) { return &set == oldest.get(); });
}

nb::object FrozenInputs::compute(std::span<PyObject* const> given) {
  make_room(given);
  nb::list tensors;
  for (uint32_t position : frozen_) {
    if (!door_.access.is_tensor(given[position]))
      throw UserError("input " + std::to_string(position) + " must be a tensor");
    tensors.append(nb::borrow(given[position]));
  }
  ++num_computed_;
  auto set = std::make_shared<Set>();
  bool may_be_kept = nb::cast<bool>(compute_.attr("may_be_kept")(tensors));
  // Stamps first: a write in between is noticed then.
  for (size_t i = 0; i < frozen_.size() && may_be_kept; ++i) {
    std::optional<Stamp> stamp = stamp_of(given[frozen_[i]]);
    may_be_kept = stamp.has_value();
    if (stamp) {
      set->stamps.push_back(std::move(*stamp));
    } else {
      compute_.attr("warn_of_versions")();
    }
  }
  nb::object values = compute_(tensors);
  const size_t wanted = static_cast<size_t>(std::count_if(
      sources_.begin(), sources_.end(), [](const Source& s) { return s.is_computed; }));
  if (!PyTuple_Check(values.ptr()) || static_cast<size_t>(PyTuple_GET_SIZE(values.ptr())) != wanted)
    throw InternalError("what was computed of frozen inputs is not as many tensors as asked for");
  set->values = values;
  use_on_current_stream(*set);
  if (may_be_kept) sets_.push_back(std::move(set));
  return values;
}

nb::object FrozenInputs::arrange(std::span<PyObject* const> given) {
  const nb::object values = values_for(given);
  nb::object inputs = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(sources_.size())));
  if (!inputs.is_valid()) throw nb::python_error();
  for (size_t i = 0; i < sources_.size(); ++i) {
    const Source& source = sources_[i];
    PyObject* input = source.is_computed ? PyTuple_GET_ITEM(values.ptr(), source.position)
                                         : given[source.position];
    PyTuple_SET_ITEM(inputs.ptr(), static_cast<Py_ssize_t>(i), Py_NewRef(input));
  }
  return inputs;
}

int FrozenInputs::traverse(visitproc visit, void* arg) const {
  Py_VISIT(compute_.ptr());
  for (const auto& set : sets_) {
    Py_VISIT(set->values.ptr());
    for (const Stamp& stamp : set->stamps) {
      Py_VISIT(stamp.memory.ptr());
      Py_VISIT(stamp.storage.ptr());
    }
  }
  return 0;
}

void FrozenInputs::clear() {
  forget();
  compute_ = nb::none();
}

}  // namespace litz
