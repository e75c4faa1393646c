// Inputs of a compiled graph that are computed from parameters, once, and again when one of these
// changes.
//
// A call brings the inputs of the graph as it was before it was split (passes/split_frozen.h). What
// was computed is valid for a call that brings the same tensors, each with the version that its
// writes count up and at the address that it had then. So a write in place, new data and another
// module with the same code are all noticed. Writes that PyTorch does not count, through `.data` or
// a NumPy array, are not noticed.
//
// The tensors themselves are not held, nor referred to weakly, which PyTorch minds when it swaps
// them (torch.utils.swap_tensors). What is held is a tensor detached from each: it has the memory,
// so that other data cannot come to lie at the same address, and the counter of writes, so that
// another tensor, even one over the same memory, cannot have a counter at the same address.
//
// Several sets are kept, because modules of one class may share a compiled graph. One whose
// parameters nobody else has is dropped by what knows of all graphs (freezing.drop_dead).
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "torch_door.h"

namespace litz {

// Everything here needs the GIL, which is the lock.
class FrozenInputs {
 public:
  // An input of the compiled graph: one of the call's, or one that is computed.
  struct Source {
    bool is_computed = false;
    bool is_opaque = false;  // a tensor whose layout the library alone knows
    uint32_t position = 0;
  };

  // `compute(tensors)` takes the inputs at positions `frozen` and returns the tuple of what is
  // computed; `compute.may_be_kept(tensors)` says whether that may be kept, and
  // `compute.record_stream(values)` that the current stream uses it. `count` is how many inputs a
  // call brings.
  FrozenInputs(TorchDoor& door, TorchDevice device, nanobind::object compute,
               std::vector<uint32_t> frozen, std::vector<Source> sources, size_t count);

  size_t count() const { return count_; }
  bool is_opaque(size_t input) const { return sources_[input].is_opaque; }
  bool is_computed(size_t input) const { return sources_[input].is_computed; }
  // How often something was computed, and how many sets are kept.
  size_t num_computed() const { return num_computed_; }
  size_t num_kept() const { return sets_.size(); }

  // The inputs of the compiled graph for a call with these, as a tuple.
  nanobind::object arrange(std::span<PyObject* const> given);
  // Computes anew at the next call, whatever it brings.
  void forget();
  // The storages of parameters that are held, as often as there are tensors that hold them; the
  // Python object of each is held as well.
  std::vector<uint64_t> storages() const;
  // Drops what was computed of one of these.
  void drop_storages(const std::unordered_set<uint64_t>& storages);

  int traverse(visitproc visit, void* arg) const;
  void clear();

 private:
  // What a tensor was when it was read.
  struct Stamp {
    PyObject* tensor = nullptr;  // only compared: it may be gone
    const void* counter = nullptr;
    int64_t version = 0;
    void* address = nullptr;
    std::vector<int64_t> layout;  // dtype, sizes and strides
    nanobind::object memory;      // the tensor detached, which has the memory and the counter
    nanobind::object storage;     // of that
    uint64_t storage_number = 0;  // torch's for it
  };
  struct Set {
    std::vector<Stamp> stamps;
    nanobind::object values;
    mutable std::vector<void*> streams;  // whose calls used them; they were made on the first
  };
  using Sets = std::vector<std::shared_ptr<const Set>>;

  // None where nothing would tell the tensor from another one.
  std::optional<Stamp> stamp_of(PyObject* tensor) const;
  // Calls `visit` with the numbers of the layout until it returns false; whether it never did.
  template <class Visit>
  bool visit_layout(PyObject* tensor, const Visit& visit) const;
  bool is_same(const Stamp& stamp, PyObject* tensor) const;
  int64_t version_of(PyObject* tensor) const;
  void* address_of(PyObject* tensor) const;
  bool is_valid(const Set& set, std::span<PyObject* const> given) const;
  bool is_for(const Set& set, std::span<PyObject* const> given) const;
  // By value: Python code that runs meanwhile may forget the set.
  nanobind::object values_for(std::span<PyObject* const> given);
  nanobind::object compute(std::span<PyObject* const> given);
  void use_on_current_stream(const Set& set) const;
  void make_room(std::span<PyObject* const> given);
  template <class IsOver>
  void drop(const IsOver& is_over);

  TorchDoor& door_;
  TorchDevice device_;
  nanobind::object compute_;
  std::vector<uint32_t> frozen_;
  std::vector<Source> sources_;
  size_t count_;
  size_t num_computed_ = 0;
  Sets sets_;  // the one used last at the end
};

}  // namespace litz
