#include "runtime/backend_run.h"

#include <algorithm>
#include <cstring>

namespace litz {
namespace {

void copy_elements(char* to, const int64_t* to_strides, const char* from,
                   const int64_t* from_strides, const int64_t* sizes, int32_t ndim, int64_t bytes) {
  if (ndim == 0) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  for (int64_t i = 0; i < sizes[0]; ++i) {
    copy_elements(to + i * to_strides[0] * bytes, to_strides + 1,
                  from + i * from_strides[0] * bytes, from_strides + 1, sizes + 1, ndim - 1, bytes);
  }
}

}  // namespace

BackendRun::BackendRun(BackendModule& module, const LitzHost& host)
    : module_(module),
      host_(host),
      table_(make_host_table(this)),
      statuses_(module.image().kernels.size(), 0) {
  table_.launch = launch;
  table_.constant = constant;
  table_.copy = copy;
}

BackendRun::~BackendRun() {
  for (const Copy& copy : copies_) module_.device().release(copy.device);
  if (device_statuses_ != nullptr) module_.device().release(device_statuses_);
}

int BackendRun::failed(const std::string& fault, int status) {
  if (fault.empty()) return LITZ_OK;
  host_.fail(host_.self, status, fault.c_str());
  return status;
}

// A workspace from the block pool would go back while kernels are at work, so it comes from
// allocate() and goes by release().
int BackendRun::run(const Executable& executable, Frame& frame) {
  if (module_.shares_memory()) {
    const int status = executable.run(table_, frame, nullptr);
    const int checked = finish_kernels();
    return status != LITZ_OK ? status : checked;
  }
  std::vector<void*> addresses;
  for (const LitzTensor& tensor : frame.input_tensors) addresses.push_back(tensor.data);
  int status = copy_inputs(executable.table(), frame);
  if (status == LITZ_OK) {
    status = executable.run(table_, frame, nullptr);
    const int checked = finish_kernels();
    if (status == LITZ_OK) status = checked;
    if (status == LITZ_OK) status = copy_back();
  }
  for (size_t i = 0; i < addresses.size(); ++i) frame.input_tensors[i].data = addresses[i];
  return status;
}

// Inputs may be views of the same memory, which is one piece on the device too.
int BackendRun::copy_inputs(const LitzArtifact& artifact, Frame& frame) {
  for (size_t i = 0; i < frame.inputs.size(); ++i) {
    if (frame.inputs[i].kind != LITZ_TENSOR) continue;
    const LitzTensor& tensor = frame.input_tensors[i];
    copies_.push_back({static_cast<char*>(tensor.data), nullptr, storage_bytes(tensor),
                       artifact.inputs[i].is_mutated != 0});
  }
  std::sort(copies_.begin(), copies_.end(),
            [](const Copy& a, const Copy& b) { return a.host < b.host; });
  std::vector<Copy> merged;
  for (const Copy& copy : copies_) {
    if (!merged.empty() && copy.host < merged.back().host + merged.back().bytes) {
      Copy& last = merged.back();
      last.bytes = std::max(last.bytes, copy.host + copy.bytes - last.host);
      last.comes_back = last.comes_back || copy.comes_back;
    } else {
      merged.push_back(copy);
    }
  }
  copies_.clear();
  for (Copy& copy : merged) {
    void* address = nullptr;
    int status = failed(module_.device().allocate(copy.bytes, &address), LITZ_OUT_OF_MEMORY);
    if (status != LITZ_OK) return status;
    copy.device = static_cast<char*>(address);
    copies_.push_back(copy);
    status = failed(module_.device().copy_in(copy.device, copy.host, copy.bytes));
    if (status != LITZ_OK) return status;
  }
  for (size_t i = 0; i < frame.inputs.size(); ++i) {
    if (frame.inputs[i].kind != LITZ_TENSOR) continue;
    LitzTensor& tensor = frame.input_tensors[i];
    char* const data = static_cast<char*>(tensor.data);
    const auto found = std::find_if(copies_.begin(), copies_.end(), [&](const Copy& copy) {
      return data == copy.host || (data > copy.host && data < copy.host + copy.bytes);
    });
    tensor.data = found->device + (data - found->host);
  }
  return LITZ_OK;
}

int BackendRun::copy_back() {
  for (const Copy& copy : copies_) {
    if (!copy.comes_back) continue;
    const int status = failed(module_.device().copy_out(copy.host, copy.device, copy.bytes));
    if (status != LITZ_OK) return status;
  }
  return LITZ_OK;
}

int BackendRun::wait() {
  if (queued_ && broken_ == LITZ_OK) broken_ = failed(module_.device().synchronize());
  queued_ = false;
  return broken_;
}

int BackendRun::finish_kernels() {
  int status = wait();
  if (status != LITZ_OK || !checks_) return status;
  if (device_statuses_ != nullptr) {
    status = failed(module_.device().copy_out(statuses_.data(), device_statuses_,
                                              static_cast<int64_t>(statuses_.size() * 4)));
    if (status != LITZ_OK) return status;
  }
  for (size_t i = 0; i < statuses_.size(); ++i) {
    if (statuses_[i] == 0) continue;
    const auto words = module_.image().failures.find(statuses_[i]);
    return failed((words == module_.image().failures.end() ? "a check failed in " : words->second) +
                      module_.image().kernels[i].place,
                  statuses_[i]);
  }
  return LITZ_OK;
}

// Where the kernels of this run report, or NULL after `fail`.
void* BackendRun::status_words() {
  if (module_.shares_memory()) return statuses_.data();
  if (device_statuses_ == nullptr) {
    const auto bytes = static_cast<int64_t>(statuses_.size() * sizeof(int32_t));
    void* address = nullptr;
    if (failed(module_.device().allocate(bytes, &address), LITZ_OUT_OF_MEMORY) != LITZ_OK)
      return nullptr;
    device_statuses_ = address;
    if (failed(module_.device().copy_in(address, statuses_.data(), bytes)) != LITZ_OK)
      return nullptr;
  }
  return device_statuses_;
}

// ---- LitzHost ----

int BackendRun::allocate(void* self, LitzTensor* tensor) {
  auto& run = *static_cast<BackendRun*>(self);
  const int status = run.host_.allocate(run.host_.self, tensor);
  if (status != LITZ_OK || run.module_.shares_memory()) return status;
  void* address = nullptr;
  const int64_t bytes = storage_bytes(*tensor);
  const int allocated =
      run.failed(run.module_.device().allocate(bytes, &address), LITZ_OUT_OF_MEMORY);
  if (allocated != LITZ_OK) {
    run.host_.release(run.host_.self, tensor);
    return allocated;
  }
  run.copies_.push_back(
      {static_cast<char*>(tensor->data), static_cast<char*>(address), bytes, true});
  tensor->data = address;
  return LITZ_OK;
}

// Views of it may have been handed out, whose memory is the same. A device that shares memory may
// not have got to the kernels that use it.
void BackendRun::release(void* self, LitzTensor* tensor) {
  auto& run = *static_cast<BackendRun*>(self);
  if (run.module_.shares_memory()) run.wait();
  const auto found = std::find_if(run.copies_.begin(), run.copies_.end(),
                                  [&](const Copy& copy) { return copy.device == tensor->data; });
  if (found != run.copies_.end()) {
    if (found->viewed)
      run.failed(run.module_.device().copy_out(found->host, found->device, found->bytes));
    run.module_.device().release(found->device);
    run.copies_.erase(found);
  }
  run.host_.release(run.host_.self, tensor);
}

int BackendRun::view(void* self, const LitzTensor* base, LitzTensor* view) {
  auto& run = *static_cast<BackendRun*>(self);
  for (Copy& copy : run.copies_) {
    if (copy.device == base->data) copy.viewed = true;
  }
  return run.host_.view(run.host_.self, base, view);
}

// Only where the device shares memory: the compiler lets no other graph get here.
int BackendRun::call(void* self, int32_t op, const LitzValue* args, int32_t num_args,
                     LitzValue* results, int32_t num_results) {
  auto& run = *static_cast<BackendRun*>(self);
  const int status = run.finish_kernels();
  if (status != LITZ_OK) return status;
  return run.host_.call(run.host_.self, op, args, num_args, results, num_results);
}

void BackendRun::parallel_for(void* self, int64_t begin, int64_t end, int64_t grain,
                              LitzRangeBody body, void* state) {
  const LitzHost& host = static_cast<BackendRun*>(self)->host_;
  host.parallel_for(host.self, begin, end, grain, body, state);
}

int32_t BackendRun::num_threads(void* self) {
  const LitzHost& host = static_cast<BackendRun*>(self)->host_;
  return host.num_threads(host.self);
}

void BackendRun::fail(void* self, int status, const char* message) {
  const LitzHost& host = static_cast<BackendRun*>(self)->host_;
  host.fail(host.self, status, message);
}

int BackendRun::launch(void* self, int32_t kernel, const int64_t* grid, int32_t threads, int64_t,
                       void** arguments) {
  auto& run = *static_cast<BackendRun*>(self);
  if (grid[0] == 0 || grid[1] == 0) return LITZ_OK;
  void* status = nullptr;
  if (run.module_.image().kernels.at(static_cast<size_t>(kernel)).checks_values) {
    status = run.status_words();
    if (status == nullptr) return LITZ_ERROR;
    status = static_cast<int32_t*>(status) + kernel;
    run.checks_ = true;
  }
  run.queued_ = true;
  return run.failed(run.module_.launch(kernel, grid, threads, arguments, status));
}

int BackendRun::constant(void* self, const void* bytes, int64_t num_bytes, void** data) {
  auto& run = *static_cast<BackendRun*>(self);
  return run.failed(run.module_.constant(bytes, num_bytes, data));
}

int BackendRun::copy(void* self, const LitzTensor* from, LitzTensor* to) {
  auto& run = *static_cast<BackendRun*>(self);
  BackendDevice& device = run.module_.device();
  const int64_t bytes = size_of(static_cast<DType>(from->dtype));
  int status = run.wait();
  if (status != LITZ_OK) return status;
  if (run.module_.shares_memory()) {
    copy_elements(static_cast<char*>(to->data), to->strides, static_cast<const char*>(from->data),
                  from->strides, from->sizes, from->ndim, bytes);
    return LITZ_OK;
  }
  std::vector<char> source(static_cast<size_t>(storage_bytes(*from)));
  std::vector<char> target(static_cast<size_t>(storage_bytes(*to)));
  const auto source_bytes = static_cast<int64_t>(source.size());
  const auto target_bytes = static_cast<int64_t>(target.size());
  status = run.failed(device.copy_out(source.data(), from->data, source_bytes));
  if (status == LITZ_OK)
    status = run.failed(device.copy_out(target.data(), to->data, target_bytes));
  if (status != LITZ_OK) return status;
  copy_elements(target.data(), to->strides, source.data(), from->strides, from->sizes, from->ndim,
                bytes);
  return run.failed(device.copy_in(to->data, target.data(), target_bytes));
}

}  // namespace litz
