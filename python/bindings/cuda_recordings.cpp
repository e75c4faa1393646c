#include "cuda_recordings.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "support/error.h"

namespace nb = nanobind;

namespace litz {
namespace {

constexpr size_t kMostRecordings = 8;  // of one graph at a time
constexpr int kMostMade = 64;  // of one graph in all: addresses that never settle are not worth it

// Of a graph that nobody has asked to record.
constexpr size_t kMostUnasked = 2;
constexpr int kMostUnaskedMade = 4;
constexpr size_t kFewCopies = 4;  // of outputs, one by one
// Calls until what another graph saves is memory of its recording.
constexpr int kMostPostponed = 3;
constexpr double kMostShare = 1.0 / 32;   // of the device's memory, ...
constexpr double kMostShares = 1.0 / 8;   // of all graphs together
constexpr double kCopyShare = 0.1;        // of the time that a run takes the host, for copies
constexpr double kBytesPerSecond = 1e12;  // of a device's memory, where that is not known

// Where the outputs of all recordings of the process are, for as long as these are kept. It stays
// when the interpreter ends, and needs the GIL.
std::unordered_multiset<const void*>& recorded_memory() {
  static auto* memory = new std::unordered_multiset<const void*>();
  return *memory;
}

// What the recordings that nobody has asked for hold of their devices' memory. Needs the GIL.
double& shares_unasked() {
  static double shares = 0;
  return shares;
}

bool is_recorded(const void* address) { return recorded_memory().contains(address); }

enum class OutputKind : uint8_t { kInput, kView, kOwn, kValue };

struct Output {
  OutputKind kind = OutputKind::kValue;
  Py_ssize_t input = -1;
  nb::object object;     // a tensor, or what kValue gives
  bool is_lent = false;  // where it is kOwn: callers get the memory itself, no copy of it
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t offset = 0;  // of kView, from the input's first element
  int32_t dtype = 0;
  void* data = nullptr;
};

}  // namespace

struct CudaRecordings::Recording {
  // The last reference may be a tensor's, which dies where there is no GIL, or no interpreter.
  ~Recording() {
    if (Py_IsInitialized() == 0) {
      abandon();
      return;
    }
    const nb::gil_scoped_acquire acquired;
    for (const Output& output : outputs) {
      if (!output.is_lent) continue;
      const auto found = recorded_memory().find(output.data);
      if (found != recorded_memory().end()) recorded_memory().erase(found);
    }
    outputs.clear();
    own_inputs.clear();
    replay.reset();
    shares_unasked() -= unasked_share;
  }

  bool idle() const { return !running && lent.load(std::memory_order_acquire) == 0; }

  void* stream = nullptr;
  Addresses addresses;
  std::vector<int64_t> extents;
  std::vector<nb::object> own_inputs;  // by input: a tensor where it is copied, or nothing
  nb::object replay;
  std::vector<Output> outputs;
  double unasked_share = 0;  // of the device's memory, where nobody has asked for the recording
  bool running = false;
  std::atomic<int> lent = 0;  // output tensors that live

 private:
  void abandon() {
    for (Output& output : outputs) (void)output.object.release();
    for (nb::object& own : own_inputs) (void)own.release();
    (void)replay.release();
  }
};

namespace {

using Recording = CudaRecordings::Recording;

struct Loan {
  std::shared_ptr<Recording> recording;
};

void end_loan(void*, void* context) {
  auto* loan = static_cast<Loan*>(context);
  loan->recording->lent.fetch_sub(1, std::memory_order_acq_rel);
  delete loan;
}

Output read_output(const TorchDoor& door, nb::handle described) {
  const TorchApi& api = door.environment->api;
  Output output;
  const auto kind = nb::cast<std::string>(described[0]);
  output.input = nb::cast<Py_ssize_t>(described[1]);
  output.object = described[2];
  output.kind = kind == "input"  ? OutputKind::kInput
                : kind == "view" ? OutputKind::kView
                : kind == "own"  ? OutputKind::kOwn
                                 : OutputKind::kValue;
  if (output.kind != OutputKind::kView && output.kind != OutputKind::kOwn) return output;
  const TorchTensor tensor = door.access.handle(output.object.ptr());
  int64_t ndim = 0;
  int64_t* sizes = nullptr;
  int64_t* strides = nullptr;
  if (api.get_dim(tensor, &ndim) != 0 || api.get_sizes(tensor, &sizes) != 0 ||
      api.get_strides(tensor, &strides) != 0 || api.get_dtype(tensor, &output.dtype) != 0 ||
      api.get_data_ptr(tensor, &output.data) != 0) {
    throw InternalError("an output of a recorded run is not a dense tensor");
  }
  output.sizes.assign(sizes, sizes + ndim);
  output.strides.assign(strides, strides + ndim);
  return output;
}

// Whether each element has memory of its own.
bool has_own_elements(const Output& output) {
  std::vector<std::pair<int64_t, int64_t>> dimensions;  // stride, size
  for (size_t d = 0; d < output.sizes.size(); ++d) {
    if (output.sizes[d] > 1) dimensions.emplace_back(output.strides[d], output.sizes[d]);
  }
  std::sort(dimensions.begin(), dimensions.end());
  int64_t last = 0;  // offset of the dimensions so far
  for (const auto& [stride, size] : dimensions) {
    if (stride <= last) return false;
    last += stride * (size - 1);
  }
  return true;
}

// Elements from the first of an input to the first of a view of it.
int64_t offset_in(const TorchDoor& door, const Output& view, const void* input) {
  const auto bytes = static_cast<const char*>(view.data) - static_cast<const char*>(input);
  return bytes / size_of(door.environment->api.from_torch(view.dtype));
}

}  // namespace

CudaRecordings::CudaRecordings(TorchDoor& door, const LitzArtifact& artifact,
                               const TorchDevice& device, nb::object record,
                               std::vector<bool> computed,
                               std::optional<std::vector<bool>> saved_outputs)
    : door_(door),
      artifact_(artifact),
      device_(device),
      record_(std::move(record)),
      computed_(std::move(computed)),
      varies_(static_cast<size_t>(artifact.num_inputs)) {
  if (door.environment->api.from_blob_with_deleter == nullptr) {
    throw UserError(
        "this PyTorch lends no memory to tensors (torch_from_blob), which CUDA graphs need");
  }
  if (!saved_outputs) return;
  saved_outputs_ = std::move(*saved_outputs);
  if (std::find(saved_outputs_.begin(), saved_outputs_.end(), true) != saved_outputs_.end()) {
    saved_hooks_ = nb::getattr(nb::module_::import_("torch._C._autograd"),
                               "_top_saved_tensors_default_hooks", nb::none());
    if (saved_hooks_.is_none()) stopped_ = true;
  }
  const double speed = door.environment->cuda_driver()->bytes_per_second(device.index);
  constexpr double kReadAndWritten = 2;
  copies_per_second_ = kCopyShare * (speed > 0 ? speed : kBytesPerSecond) / kReadAndWritten;
  host_bound_ = std::make_unique<HostBound>(door.environment->cuda_driver());
  stopped_ = stopped_ || artifact.num_symbols > 0;  // each size would want its own
}

CudaRecordings::~CudaRecordings() = default;

// The stream that the call is for; none where somebody else records what runs on it.
std::optional<void*> CudaRecordings::current_stream() const {
  void* stream = nullptr;
  int capturing = 0;
  if (door_.environment->api.cuda_stream(device_.index, &stream) != 0 ||
      door_.environment->cuda_driver()->stream_is_capturing(stream, &capturing) != 0) {
    return std::nullopt;
  }
  return capturing == 0 ? std::optional(stream) : std::nullopt;
}

// The addresses and extents of a call. False for the first one on a thread, whose run makes the
// library ready: torch keeps handles of libraries by thread, and none can be made under capture.
bool CudaRecordings::take_addresses(const Frame& frame) {
  earlier_.swap(addresses_);
  addresses_.clear();
  extents_.clear();
  for (const LitzValue& value : frame.inputs) {
    if (value.kind != LITZ_TENSOR) {
      addresses_.push_back(nullptr);
      extents_.push_back(value.u.i);
      continue;
    }
    const LitzTensor& tensor = *value.u.tensor;
    addresses_.push_back(tensor.data);
    if (artifact_.num_symbols == 0) continue;
    extents_.insert(extents_.end(), tensor.sizes, tensor.sizes + tensor.ndim);
    extents_.insert(extents_.end(), tensor.strides, tensor.strides + tensor.ndim);
  }
  if (warm_threads_.insert(PyThread_get_thread_ident()).second) return false;
  for (size_t i = 0; i < addresses_.size(); ++i) {
    if (addresses_[i] == earlier_[i] || artifact_.inputs[i].is_mutated != 0 || computed_[i])
      continue;
    // What a graph saves for its gradient has settled once that graph is recorded.
    if (is_recorded(addresses_[i]) && !is_recorded(earlier_[i])) {
      if (host_bound_) varies_[i] = false;
      continue;
    }
    varies_[i] = true;
  }
  return true;
}

std::shared_ptr<Recording> CudaRecordings::find(void* stream) {
  const auto fits = [&](const std::shared_ptr<Recording>& recording) {
    if (!recording->idle() || recording->stream != stream || recording->extents != extents_) {
      return false;
    }
    for (size_t i = 0; i < addresses_.size(); ++i) {
      if (!recording->own_inputs[i].is_valid() && recording->addresses[i] != addresses_[i]) {
        return false;
      }
    }
    return true;
  };
  const auto found = std::find_if(recordings_.rbegin(), recordings_.rend(), fits);
  if (found == recordings_.rend()) return nullptr;
  std::rotate(found.base() - 1, found.base(), recordings_.end());
  return recordings_.back();
}

// Forgets idle recordings that no call will fit, and at the bound the one that was not used for
// longest.
bool CudaRecordings::make_room() {
  std::erase_if(recordings_, [&](const std::shared_ptr<Recording>& recording) {
    if (!recording->idle()) return false;
    for (size_t i = 0; i < varies_.size(); ++i) {
      if (varies_[i] && !recording->own_inputs[i].is_valid()) return true;
    }
    return false;
  });
  if (recordings_.size() < (host_bound_ ? kMostUnasked : kMostRecordings)) return true;
  const auto oldest = std::find_if(recordings_.begin(), recordings_.end(),
                                   [](const auto& recording) { return recording->idle(); });
  if (oldest == recordings_.end()) return false;
  recordings_.erase(oldest);
  return true;
}

// Then somebody sees what is lent, and may read it on another stream.
bool CudaRecordings::saved_tensors_have_hooks() const {
  return saved_hooks_.is_valid() && !saved_hooks_(false).is_none();
}

// Whether a graph that nobody has asked to record is to be.
bool CudaRecordings::wants_recordings() {
  if (host_bound_ == nullptr) return true;
  const std::optional<bool> found = host_bound_->is_host_bound();
  if (found == false) stop();
  return found == true;
}

void CudaRecordings::stop() {
  stopped_ = true;
  std::erase_if(recordings_, [](const auto& recording) { return recording->idle(); });
}

int64_t CudaRecordings::bytes_to_copy(const Frame& frame) const {
  int64_t bytes = 0;
  for (size_t i = 0; i < varies_.size(); ++i) {
    if (varies_[i]) bytes += storage_bytes(*frame.inputs[i].u.tensor);
  }
  return bytes;
}

// What `record_` returns. Nobody expects faults of a recording that nobody has asked for.
nb::object CudaRecordings::record(nb::handle inputs, const nb::list& copied) const {
  if (host_bound_ == nullptr) return record_(inputs, copied);
  try {
    return record_(inputs, copied);
  } catch (nb::python_error&) {
    return nb::none();
  }
}

// Not where an output that is copied shares memory with another one, or elements of it do: copies
// would not.
bool CudaRecordings::is_cheap(const Recording& recording, int64_t input_bytes) const {
  struct Memory {
    const char* begin;
    const char* end;
    bool is_lent;
  };
  std::vector<Memory> memory;
  auto bytes = static_cast<double>(input_bytes);
  for (const Output& output : recording.outputs) {
    if (output.kind != OutputKind::kOwn) continue;
    if (!output.is_lent && !has_own_elements(output)) return false;
    const LitzTensor tensor{
        .data = output.data,
        .sizes = output.sizes.data(),
        .strides = output.strides.data(),
        .ndim = static_cast<int32_t>(output.sizes.size()),
        .dtype = static_cast<LitzDType>(door_.environment->api.from_torch(output.dtype)),
        .handle = nullptr};
    const auto* begin = static_cast<const char*>(output.data);
    const char* end = begin + storage_bytes(tensor);
    for (const Memory& other : memory) {
      const bool is_shared = begin < other.end && other.begin < end;
      if (is_shared && !(output.is_lent && other.is_lent)) return false;
    }
    memory.push_back({begin, end, output.is_lent});
    if (!output.is_lent) bytes += static_cast<double>(end - begin);
  }
  return recording.unasked_share <= kMostShare && shares_unasked() <= kMostShares &&
         bytes <= copies_per_second_ * host_bound_->host_seconds();
}

std::shared_ptr<Recording> CudaRecordings::make(const Frame& frame, nb::handle inputs,
                                                void* stream) {
  if (!make_room()) return nullptr;
  const int64_t input_bytes = bytes_to_copy(frame);
  if (host_bound_ && input_bytes > 0 && postponed_ < kMostPostponed) {
    ++postponed_;
    return nullptr;
  }
  const bool is_expensive = host_bound_ && static_cast<double>(input_bytes) >
                                               copies_per_second_ * host_bound_->host_seconds();
  if (++made_ > (host_bound_ ? kMostUnaskedMade : kMostMade) || is_expensive) {
    stop();
    return nullptr;
  }
  nb::list copied;
  for (size_t i = 0; i < varies_.size(); ++i) copied.append(nb::bool_(varies_[i]));
  const Addresses addresses = addresses_;  // what `record` runs may call this graph again
  const std::vector<int64_t> extents = extents_;
  const nb::object recorded = record(inputs, copied);
  if (recorded.is_none()) {
    stop();
    return nullptr;
  }
  auto recording = std::make_shared<Recording>();
  recording->stream = stream;
  recording->addresses = addresses;
  recording->extents = extents;
  recording->replay = recorded[0];
  for (const nb::handle own : nb::list(recorded[1])) {
    recording->own_inputs.push_back(own.is_none() ? nb::object() : nb::borrow(own));
  }
  for (const nb::handle described : nb::list(recorded[2])) {
    Output output = read_output(door_, described);
    if (output.kind == OutputKind::kView) {
      // Captured as a view of what the run was given.
      const nb::object& own = recording->own_inputs[static_cast<size_t>(output.input)];
      const void* base = addresses[static_cast<size_t>(output.input)];
      void* copy = nullptr;
      if (own.is_valid() &&
          door_.environment->api.get_data_ptr(door_.access.handle(own.ptr()), &copy) == 0) {
        base = copy;
      }
      output.offset = offset_in(door_, output, base);
    }
    if (output.kind == OutputKind::kOwn && is_lent(recording->outputs.size())) {
      recorded_memory().insert(output.data);
      output.is_lent = true;
    }
    recording->outputs.push_back(std::move(output));
  }
  if (host_bound_) {
    recording->unasked_share = nb::cast<double>(recorded[3]);
    shares_unasked() += recording->unasked_share;
    if (!is_cheap(*recording, input_bytes)) {
      stop();
      return nullptr;
    }
  }
  recordings_.push_back(recording);
  return recording;
}

void CudaRecordings::copy_inputs(const Recording& recording, const Frame& frame) const {
  const TorchApi& api = door_.environment->api;
  for (size_t i = 0; i < recording.own_inputs.size(); ++i) {
    if (!recording.own_inputs[i].is_valid()) continue;
    const TorchTensor to = door_.access.handle(recording.own_inputs[i].ptr());
    if (api.copy(to, frame.input_tensors[i].handle, 0) != 0) {
      throw InternalError("an input of a CUDA graph cannot be copied: " + api.last_error());
    }
  }
}

PyObject* CudaRecordings::lend(const std::shared_ptr<Recording>& recording, size_t output) const {
  const TorchApi& api = door_.environment->api;
  const Output& own = recording->outputs[output];
  auto* loan = new Loan{recording};
  recording->lent.fetch_add(1, std::memory_order_acq_rel);
  TorchTensor made = nullptr;
  if (api.from_blob_with_deleter(own.data, static_cast<int64_t>(own.sizes.size()), own.sizes.data(),
                                 own.strides.data(), 0, own.dtype, device_.type, device_.index,
                                 &made, api.strided, nullptr, 0, end_loan, loan) != 0) {
    end_loan(nullptr, loan);
    throw InternalError("an output of a CUDA graph cannot be made: " + api.last_error());
  }
  return door_.access.wrap(made);
}

PyObject* CudaRecordings::empty_like(const Recording& recording, size_t output) const {
  const TorchApi& api = door_.environment->api;
  const Output& own = recording.outputs[output];
  TorchTensor made = nullptr;
  if (api.empty_strided(static_cast<int64_t>(own.sizes.size()), own.sizes.data(),
                        own.strides.data(), own.dtype, device_.type, device_.index, &made) != 0) {
    const nb::object kind = nb::module_::import_("torch").attr("OutOfMemoryError");
    PyErr_SetString(kind.ptr(), api.last_error().c_str());
    throw nb::python_error();
  }
  return door_.access.wrap(made);
}

// One launch for many.
void CudaRecordings::copy_all(const nb::list& from, const nb::list& to) const {
  if (to.size() > kFewCopies) {
    nb::module_::import_("torch").attr("_foreach_copy_")(to, from, true);
    return;
  }
  const TorchApi& api = door_.environment->api;
  for (size_t i = 0; i < to.size(); ++i) {
    if (api.copy(door_.access.handle(nb::handle(to[i]).ptr()),
                 door_.access.handle(nb::handle(from[i]).ptr()), 1) != 0)
      throw InternalError("an output of a CUDA graph cannot be copied: " + api.last_error());
  }
}

nb::object CudaRecordings::outputs(const std::shared_ptr<Recording>& recording, nb::handle inputs) {
  const TorchApi& api = door_.environment->api;
  const auto count = static_cast<Py_ssize_t>(recording->outputs.size());
  nb::object results = nb::steal(PyTuple_New(count));
  if (!results.is_valid()) throw nb::python_error();
  nb::list copied;
  nb::list copies;
  for (Py_ssize_t k = 0; k < count; ++k) {
    const Output& output = recording->outputs[static_cast<size_t>(k)];
    PyObject* item = nullptr;
    if (output.kind == OutputKind::kOwn) {
      item = output.is_lent ? lend(recording, static_cast<size_t>(k))
                            : empty_like(*recording, static_cast<size_t>(k));
    } else if (output.kind == OutputKind::kValue) {
      item = Py_NewRef(output.object.ptr());
    } else {
      PyObject* input = PyTuple_GET_ITEM(inputs.ptr(), output.input);
      if (output.kind == OutputKind::kInput) {
        item = Py_NewRef(input);
      } else {
        TorchTensor view = nullptr;
        if (api.reinterpret_tensor(door_.access.handle(input),
                                   static_cast<int64_t>(output.sizes.size()), output.sizes.data(),
                                   output.strides.data(), output.offset, &view) != 0) {
          throw InternalError("a view of an input cannot be made: " + api.last_error());
        }
        item = door_.access.wrap(view);
      }
    }
    if (item == nullptr) throw nb::python_error();
    PyTuple_SET_ITEM(results.ptr(), k, item);
    if (output.kind != OutputKind::kOwn || output.is_lent) continue;
    copied.append(output.object);
    copies.append(nb::handle(item));
  }
  copy_all(copied, copies);
  return results;
}

nb::object CudaRecordings::call(const Frame& frame, nb::handle inputs, HostBound** timed) {
  if (stopped_ || saved_tensors_have_hooks() || !take_addresses(frame)) return {};
  const std::optional<void*> stream = current_stream();
  if (!stream) return {};
  if (!wants_recordings()) {
    *timed = host_bound_.get();
    return {};
  }
  std::shared_ptr<Recording> recording = find(*stream);
  if (recording == nullptr) recording = make(frame, inputs, *stream);
  if (recording == nullptr) return {};
  recording->running = true;  // the launch gives the GIL away
  const auto ended = [&] {
    recording->running = false;
    if (stopped_) stop();
  };
  try {
    copy_inputs(*recording, frame);
    recording->replay();
    nb::object results = outputs(recording, inputs);
    ended();
    return results;
  } catch (...) {
    ended();
    throw;
  }
}

int CudaRecordings::traverse(visitproc visit, void* arg) const {
  Py_VISIT(record_.ptr());
  return 0;
}

void CudaRecordings::clear() {
  record_.reset();
  saved_hooks_.reset();
  recordings_.clear();
  stopped_ = true;
}

}  // namespace litz
