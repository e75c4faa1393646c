// Runs of one compiled graph that were recorded as CUDA graphs, each replayed by one launch.
//
// A recording is a run on one stream with inputs at certain addresses, and is replayed for a call
// that has the same ones. An input whose address changes between calls is copied into memory of
// the recording, unless the graph writes to it, it is computed of frozen parameters, which seldom
// change: new ones get a recording of their own, or its new address is an output of another
// recording. Outputs are memory of the recording that is lent to the caller: as long as one of them
// lives the recording is busy, and a call takes or makes
// another. How many there are is bounded; calls beyond that run without one.
//
// Where nobody has asked for recordings a graph gets one if its runs wait for the host and little
// has to be copied. What a caller sees of its outputs are copies then, tensors like any others;
// lent is only what a graph saves for its gradient. The memory that it holds is bounded.
#pragma once

#include <litz/artifact.h>
#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "runtime/frame.h"
#include "runtime/host_bound.h"
#include "torch_door.h"

namespace litz {

// Everything here needs the GIL, which is the lock.
class CudaRecordings {
 public:
  // `record(inputs, copied)` captures a run with the inputs, those marked in `copied` in memory of
  // their own, and returns (replay, that memory, outputs, the share of the device's memory that all
  // of it takes), or None where the graph cannot be captured. An output is ("input", i, None),
  // ("view", i, tensor), ("own", -1, tensor) or ("value", -1, object). Inputs marked in `computed`
  // are computed of frozen parameters. `saved_outputs`: nobody has asked for recordings, and of
  // the outputs those are seen by the graph's gradient alone.
  CudaRecordings(TorchDoor& door, const LitzArtifact& artifact, const TorchDevice& device,
                 nanobind::object record, std::vector<bool> computed,
                 std::optional<std::vector<bool>> saved_outputs);
  ~CudaRecordings();

  // The outputs of a call whose inputs were read into `frame` and checked, or an invalid object
  // where it is to run without a recording, and to be timed by `timed` if that is something.
  nanobind::object call(const Frame& frame, nanobind::handle inputs, HostBound** timed);
  // No call will have a recording any more.
  bool is_over() const { return stopped_; }

  size_t count() const { return recordings_.size(); }
  int traverse(visitproc visit, void* arg) const;
  void clear();

  struct Recording;

 private:
  using Addresses = std::vector<const void*>;

  std::optional<void*> current_stream() const;
  bool take_addresses(const Frame& frame);
  std::shared_ptr<Recording> find(void* stream);
  std::shared_ptr<Recording> make(const Frame& frame, nanobind::handle inputs, void* stream);
  bool make_room();
  bool wants_recordings();
  bool saved_tensors_have_hooks() const;
  bool is_lent(size_t output) const { return !host_bound_ || saved_outputs_[output]; }
  int64_t bytes_to_copy(const Frame& frame) const;
  nanobind::object record(nanobind::handle inputs, const nanobind::list& copied) const;
  bool is_cheap(const Recording& recording, int64_t input_bytes) const;
  void stop();
  void copy_inputs(const Recording& recording, const Frame& frame) const;
  nanobind::object outputs(const std::shared_ptr<Recording>& recording, nanobind::handle inputs);
  PyObject* lend(const std::shared_ptr<Recording>& recording, size_t output) const;
  PyObject* empty_like(const Recording& recording, size_t output) const;
  void copy_all(const nanobind::list& from, const nanobind::list& to) const;

  TorchDoor& door_;
  const LitzArtifact& artifact_;
  TorchDevice device_;
  nanobind::object record_;
  std::unique_ptr<HostBound> host_bound_;               // where nobody has asked for recordings
  std::vector<bool> saved_outputs_;                     // the same
  nanobind::object saved_hooks_;                        // the same, where there are saved outputs
  double copies_per_second_ = 0;                        // bytes, the same
  std::vector<std::shared_ptr<Recording>> recordings_;  // the one used last at the end
  int made_ = 0;
  int postponed_ = 0;
  std::unordered_set<unsigned long> warm_threads_;
  bool stopped_ = false;
  // Of the call at hand, and of the one before.
  Addresses addresses_;
  std::vector<int64_t> extents_;  // sizes, strides and integers, where they may change
  Addresses earlier_;
  std::vector<bool> computed_;  // by input
  std::vector<bool> varies_;    // by input: its address has changed
};

}  // namespace litz
