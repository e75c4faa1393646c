#include "frozen_inputs.h"

#include <algorithm>
#include <utility>

#include "support/error.h"

namespace nb = nanobind;

namespace litz {
namespace {

// A module for each, of modules that share a graph.
constexpr size_t kMostSets = 64;

// Borrowed; None where the tensor is gone.
PyObject* referent(const nb::object& reference) {
#if PY_VERSION_HEX >= 0x030d0000
  PyObject* object = nullptr;
  if (PyWeakref_GetRef(reference.ptr(), &object) <= 0) return Py_None;
  // The caller of the graph holds what is compared with this.
  Py_DECREF(object);
  return object;
#else
  return PyWeakref_GetObject(reference.ptr());
#endif
}

}  // namespace

FrozenInputs::FrozenInputs(TorchDoor& door, nb::object compute, std::vector<uint32_t> frozen,
                           std::vector<Source> sources, size_t count)
    : door_(door),
      compute_(std::move(compute)),
      frozen_(std::move(frozen)),
      sources_(std::move(sources)),
      count_(count) {
  const std::weak_ptr<Sets> sets = sets_;
  // The reference is the callback's own as long as it drops others.
  drop_dead_ = nb::cpp_function([sets](nb::object) {
    if (const std::shared_ptr<Sets> found = sets.lock()) drop_dead(*found);
  });
}

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

FrozenInputs::Stamp FrozenInputs::stamp_of(PyObject* tensor) const {
  Stamp stamp;
  stamp.reference = nb::steal(PyWeakref_NewRef(tensor, drop_dead_.ptr()));
  if (!stamp.reference.is_valid()) throw nb::python_error();
  stamp.version = version_of(tensor);
  stamp.address = address_of(tensor);
  stamp.memory = nb::handle(tensor).attr("detach")();
  return stamp;
}

bool FrozenInputs::is_valid(const Set& set, std::span<PyObject* const> given) const {
  for (size_t i = 0; i < frozen_.size(); ++i) {
    PyObject* tensor = given[frozen_[i]];
    const Stamp& stamp = set.stamps[i];
    if (referent(stamp.reference) != tensor || version_of(tensor) != stamp.version ||
        address_of(tensor) != stamp.address)
      return false;
  }
  return true;
}

bool FrozenInputs::is_for(const Set& set, std::span<PyObject* const> given) const {
  for (size_t i = 0; i < frozen_.size(); ++i) {
    if (referent(set.stamps[i].reference) != given[frozen_[i]]) return false;
  }
  return true;
}

nb::object FrozenInputs::values_for(std::span<PyObject* const> given) {
  Sets& sets = *sets_;
  for (size_t i = sets.size(); i-- > 0;) {
    if (!is_valid(*sets[i], given)) continue;
    if (i + 1 < sets.size()) {
      std::rotate(sets.begin() + static_cast<ptrdiff_t>(i),
                  sets.begin() + static_cast<ptrdiff_t>(i) + 1, sets.end());
    }
    return sets.back()->values;
  }
  return compute(given);
}

// Freeing tensors may run Python code, which is not to find the list half changed.
template <class IsOver>
void FrozenInputs::drop(Sets& sets, const IsOver& is_over) {
  Sets kept;
  for (const auto& set : sets) {
    if (!is_over(*set)) kept.push_back(set);
  }
  std::swap(sets, kept);
}

void FrozenInputs::drop_dead(Sets& sets) {
  drop(sets, [](const Set& set) {
    return std::any_of(set.stamps.begin(), set.stamps.end(),
                       [](const Stamp& stamp) { return referent(stamp.reference) == Py_None; });
  });
}

void FrozenInputs::forget() {
  drop(*sets_, [](const Set&) { return true; });
}

// Drops what can never be valid again, and the oldest where there are too many.
void FrozenInputs::make_room(std::span<PyObject* const> given) {
  drop(*sets_, [&](const Set& set) { return is_for(set, given); });
  if (sets_->size() < kMostSets) return;
  const std::shared_ptr<const Set> oldest = sets_->front();
  drop(*sets_, [&](const Set& set) { return &set == oldest.get(); });
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
  const nb::object kept = compute_.attr("may_be_kept")(tensors);
  const bool may_be_kept = nb::cast<bool>(kept);
  // Stamps first: a write in between is noticed then.
  if (may_be_kept) {
    for (uint32_t position : frozen_) set->stamps.push_back(stamp_of(given[position]));
  }
  nb::object values = compute_(tensors);
  const size_t wanted = static_cast<size_t>(std::count_if(
      sources_.begin(), sources_.end(), [](const Source& s) { return s.is_computed; }));
  if (!PyTuple_Check(values.ptr()) || static_cast<size_t>(PyTuple_GET_SIZE(values.ptr())) != wanted)
    throw InternalError("what was computed of frozen inputs is not as many tensors as asked for");
  set->values = values;
  if (may_be_kept) sets_->push_back(std::move(set));
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
  Py_VISIT(drop_dead_.ptr());
  for (const auto& set : *sets_) {
    Py_VISIT(set->values.ptr());
    for (const Stamp& stamp : set->stamps) {
      Py_VISIT(stamp.reference.ptr());
      Py_VISIT(stamp.memory.ptr());
    }
  }
  return 0;
}

void FrozenInputs::clear() {
  forget();
  compute_ = nb::none();
}

}  // namespace litz
