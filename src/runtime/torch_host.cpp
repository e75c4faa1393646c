#include "runtime/torch_host.h"

#include <algorithm>
#include <array>
#include <exception>

#include "support/error.h"

namespace litz {
namespace {

// Outputs from this size on come from the block pool: their page faults would cost more than the
// work. Below it torch's allocator reuses memory by itself.
constexpr int64_t kPooledBytes = int64_t{1} << 20;

constexpr size_t kMaxStack = 32;

struct PooledBlock {
  std::shared_ptr<BlockPool> blocks;
  Block block;
};

void return_block(void*, void* context) {
  auto* pooled = static_cast<PooledBlock*>(context);
  pooled->blocks->release(pooled->block);
  delete pooled;
}

std::vector<TorchType> parse_types(const std::vector<std::string>& texts) {
  std::vector<TorchType> types;
  for (const std::string& text : texts) types.push_back(parse_torch_type(text));
  return types;
}

}  // namespace

int32_t TorchEnvironment::num_threads() const {
  uint32_t count = 1;
  if (api.get_num_threads != nullptr && api.get_num_threads(&count) == 0) {
    return static_cast<int32_t>(std::max(count, 1u));
  }
  return api.cxx_get_num_threads != nullptr ? std::max(api.cxx_get_num_threads(), 1) : 1;
}

void TorchEnvironment::parallel_for(int64_t begin, int64_t end, int64_t grain, int32_t limit,
                                    LitzRangeBody body, void* state) {
  if (api.parallel_for != nullptr) {
    api.parallel_for(begin, end, grain, body, state);
    return;
  }
  std::call_once(threads_once_, [&] { threads_ = std::make_unique<ThreadPool>(available_cpus()); });
  threads_->parallel_for(begin, end, grain, limit, body, state);
}

std::shared_ptr<const CudaDriver> TorchEnvironment::cuda_driver() {
  const std::lock_guard lock(driver_mutex_);
  if (driver_ == nullptr) {
    Result<std::shared_ptr<const CudaDriver>> opened = CudaDriver::open();
    if (!opened) throw UserError(opened.reason());
    driver_ = *opened;
  }
  return driver_;
}

TorchHost::TorchHost(std::shared_ptr<TorchEnvironment> environment, const LitzArtifact& artifact,
                     const std::vector<TorchOpTypes>& types, const std::string& device,
                     bool has_backend)
    : environment_(std::move(environment)) {
  load_kernels(artifact, device, has_backend);
  if (types.size() != static_cast<size_t>(artifact.num_extern_ops)) {
    throw UserError("the graph calls " + std::to_string(artifact.num_extern_ops) +
                    " library ops, " + std::to_string(types.size()) + " were described");
  }
  const TorchApi& api = environment_->api;
  for (size_t i = 0; i < types.size(); ++i) {
    Op op;
    op.name = artifact.extern_ops[i].name;
    op.overload = artifact.extern_ops[i].overload;
    op.direct = find_direct_op(api, device_.type, op.name, op.overload);
    op.arguments = parse_types(types[i].arguments);
    op.returns = parse_types(types[i].returns);
    op.dispatchable = op.arguments.size() <= kMaxStack && op.returns.size() <= kMaxStack &&
                      std::all_of(op.arguments.begin(), op.arguments.end(),
                                  [&](const TorchType& type) { return can_pack(api, type); }) &&
                      std::all_of(op.returns.begin(), op.returns.end(), can_unpack);
    ops_.push_back(std::move(op));
  }
}

void TorchHost::load_kernels(const LitzArtifact& artifact, const std::string& device,
                             bool has_backend) {
  const TorchApi& api = environment_->api;
  const std::optional<TorchDevice> parsed = api.device(device);
  if (!parsed) throw UserError("graphs do not run on the device " + device);
  device_ = *parsed;
  if (device_.type == api.cpu) {
    if (artifact.device_code == nullptr || has_backend) return;
    throw UserError("the graph was compiled for a device (" +
                    std::string(artifact.device_code->target) + "), not for the CPU");
  }
  if (device_.index < 0) throw UserError("a graph needs the number of its device, as in cuda:0");
  if (api.cuda_stream == nullptr || api.cuda_create_guard == nullptr ||
      api.cuda_delete_guard == nullptr) {
    throw UserError(
        "this PyTorch has no CUDA: libtorch_cuda.so is not loaded, or lacks "
        "aoti_torch_get_current_cuda_stream; install a PyTorch for CUDA, 2.6 or newer");
  }
  modules_ = std::make_unique<DeviceModules>(environment_->cuda_driver(), artifact.device_code);
  const Result<DeviceModule*> module = modules_->on(device_.index);
  if (!module) throw UserError(module.reason());
  module_ = *module;
}

const char* TorchHost::way(int32_t op) const {
  const Op& found = ops_.at(static_cast<size_t>(op));
  if (found.direct != nullptr) return "direct";
  return found.dispatchable ? "dispatcher" : "python";
}

TorchRun::TorchRun(const TorchHost& host, PythonOps& python)
    : host_(host),
      api_(host.environment_->api),
      python_(python),
      threads_(host.environment_->num_threads()),
      table_(make_host_table(this)),
      workspace_(api_, host.device_) {
  if (python.drops_inputs()) table_.drop_input = drop_input;
  if (host.is_cuda()) enter_device();
}

TorchRun::~TorchRun() {
  context_.reset();
  if (guard_ != nullptr) api_.cuda_delete_guard(guard_);
}

// torch's guard sets the device for torch; a thread that has not used the device may have no
// context all the same, without which nothing can be launched. One whose context is the device's
// has it as its current device.
void TorchRun::enter_device() {
  table_.launch = launch;
  table_.constant = constant;
  const int32_t index = host_.device_.index;
  const CudaDriver& driver = host_.modules_->driver();
  CudaContext current = nullptr;
  const bool inside = driver.context_current(&current) == 0 && current == host_.module_->context();
  if (!inside) {
    if (api_.cuda_create_guard(index, &guard_) != 0) {
      guard_ = nullptr;
      throw UserError("the device cannot be made current: " + api_.last_error());
    }
    context_.emplace(driver, host_.module_->context());
  }
  if ((context_ && context_->status() != 0) || api_.cuda_stream(index, &stream_) != 0) {
    context_.reset();
    if (guard_ != nullptr) api_.cuda_delete_guard(guard_);
    throw UserError("the device has no current stream: " + api_.last_error());
  }
}

int TorchRun::out_of_memory(int64_t bytes) {
  // torch tells what the device's memory is used for.
  if (host_.is_cuda()) message_ = api_.last_error();
  if (!host_.is_cuda() || message_.empty()) {
    message_ = "no memory for " + std::to_string(bytes) + " bytes (" + std::to_string(bytes >> 30) +
               " GiB)";
  }
  return LITZ_OUT_OF_MEMORY;
}

int TorchRun::allocate_pooled(int64_t bytes, LitzTensor* tensor) {
  const std::shared_ptr<BlockPool>& blocks = host_.environment_->blocks;
  const Block block = blocks->acquire(static_cast<size_t>(bytes));
  if (block.data == nullptr) return out_of_memory(bytes);
  auto* context = new PooledBlock{blocks, block};
  TorchTensor made = nullptr;
  if (api_.from_blob_with_deleter(block.data, tensor->ndim, tensor->sizes, tensor->strides, 0,
                                  api_.to_torch(static_cast<DType>(tensor->dtype)), api_.cpu,
                                  kNoDeviceIndex, &made, api_.strided, nullptr, 0, return_block,
                                  context) != 0) {
    return_block(nullptr, context);
    return out_of_memory(bytes);
  }
  tensor->data = block.data;
  tensor->handle = made;
  return LITZ_OK;
}

int TorchRun::allocate(void* self, LitzTensor* tensor) {
  auto& run = *static_cast<TorchRun*>(self);
  const int64_t bytes = storage_bytes(*tensor);
  const TorchDevice& device = run.host_.device_;
  if (!run.host_.is_cuda() && bytes >= kPooledBytes && run.api_.from_blob_with_deleter != nullptr) {
    return run.allocate_pooled(bytes, tensor);
  }
  TorchTensor made = nullptr;
  if (run.api_.empty_strided(tensor->ndim, tensor->sizes, tensor->strides,
                             run.api_.to_torch(static_cast<DType>(tensor->dtype)), device.type,
                             device.index, &made) != 0) {
    return run.out_of_memory(bytes);
  }
  run.api_.get_data_ptr(made, &tensor->data);
  tensor->handle = made;
  // A run's first tensor is its workspace, if it has one.
  if (run.host_.is_cuda() && !run.workspace_.has_block())
    run.workspace_.set_block(tensor->data, bytes);
  return LITZ_OK;
}

void TorchRun::release(void* self, LitzTensor* tensor) {
  if (tensor->handle == nullptr) return;
  static_cast<TorchRun*>(self)->api_.delete_tensor(tensor->handle);
  tensor->handle = nullptr;
}

int TorchRun::view(void* self, const LitzTensor* base, LitzTensor* view) {
  auto& run = *static_cast<TorchRun*>(self);
  if (base->handle == nullptr || base->dtype != view->dtype) {
    run.message_ = "a view needs a base that torch owns, of the same dtype";
    return LITZ_UNSUPPORTED;
  }
  const int64_t offset =
      (static_cast<const char*>(view->data) - static_cast<const char*>(base->data)) /
      size_of(static_cast<DType>(view->dtype));
  TorchTensor made = nullptr;
  if (run.api_.reinterpret_tensor(base->handle, view->ndim, view->sizes, view->strides, offset,
                                  &made) != 0) {
    run.message_ = run.api_.last_error();
    return LITZ_ERROR;
  }
  view->handle = made;
  return LITZ_OK;
}

CallOutcome TorchRun::dispatch(const TorchHost::Op& op, const LitzValue* args, int32_t num_args,
                               LitzValue* results, int32_t num_results) {
  if (!op.dispatchable || static_cast<size_t>(num_args) != op.arguments.size()) {
    return CallOutcome::kNotHandled;
  }
  std::array<TorchStack, kMaxStack> stack{};
  TorchTemporaries temporaries(api_, host_.device_, &workspace_);
  for (size_t i = 0; i < op.arguments.size(); ++i) {
    if (pack(api_, op.arguments[i], args[i], temporaries, &stack[i])) continue;
    for (size_t k = 0; k < i; ++k) discard(api_, op.arguments[k], stack[k]);
    return CallOutcome::kNotHandled;
  }
  if (api_.call_dispatcher(op.name.c_str(), op.overload.c_str(), stack.data(),
                           api_.abi_version()) != 0) {
    message_ = api_.last_error();
    return CallOutcome::kFailed;
  }
  message_ = unpack_results(api_, host_.device_, op.returns, stack.data(), results, num_results);
  return message_.empty() ? CallOutcome::kDone : CallOutcome::kBadResult;
}

int TorchRun::call_op(int32_t number, const LitzValue* args, int32_t num_args, LitzValue* results,
                      int32_t num_results) {
  const TorchHost::Op& op = host_.ops_[static_cast<size_t>(number)];
  CallOutcome outcome = CallOutcome::kNotHandled;
  if (op.direct != nullptr) {
    TorchTemporaries temporaries(api_, host_.device_, &workspace_);
    outcome = op.direct(api_, args, results, temporaries);
  }
  if (outcome == CallOutcome::kNotHandled) {
    outcome = dispatch(op, args, num_args, results, num_results);
  }
  switch (outcome) {
    case CallOutcome::kDone:
      return LITZ_OK;
    case CallOutcome::kBadResult:
      message_ = op.name + ": " + message_;
      return LITZ_ERROR;
    case CallOutcome::kFailed:
    case CallOutcome::kNotHandled:
      break;
  }
  return python_.call(number, args, num_args, results, num_results, &message_);
}

// No exception may enter the artifact's frames: its code is not compiled to pass one on.
int TorchRun::call(void* self, int32_t op, const LitzValue* args, int32_t num_args,
                   LitzValue* results, int32_t num_results) {
  auto& run = *static_cast<TorchRun*>(self);
  try {
    return run.call_op(op, args, num_args, results, num_results);
  } catch (const std::exception& error) {
    run.message_ = error.what();
    return LITZ_ERROR;
  }
}

void TorchRun::parallel_for(void* self, int64_t begin, int64_t end, int64_t grain,
                            LitzRangeBody body, void* state) {
  auto& run = *static_cast<TorchRun*>(self);
  run.host_.environment_->parallel_for(begin, end, grain, run.threads_, body, state);
}

int32_t TorchRun::num_threads(void* self) { return static_cast<TorchRun*>(self)->threads_; }

void TorchRun::fail(void* self, int, const char* message) {
  static_cast<TorchRun*>(self)->message_ = message;
}

int TorchRun::launch(void* self, int32_t kernel, const int64_t* grid, int32_t threads,
                     int64_t shared_bytes, void** arguments) {
  auto& run = *static_cast<TorchRun*>(self);
  return run.host_.module_->launch(kernel, grid, threads, shared_bytes, arguments, run.stream_,
                                   &run.message_);
}

int TorchRun::constant(void* self, const void* bytes, int64_t num_bytes, void** data) {
  auto& run = *static_cast<TorchRun*>(self);
  return run.host_.module_->constant(bytes, num_bytes, run.stream_, data, &run.message_);
}

void TorchRun::drop_input(void* self, int32_t input) {
  static_cast<TorchRun*>(self)->python_.drop_input(input);
}

int TorchRun::copy(void* self, const LitzTensor* from, LitzTensor* to) {
  auto& run = *static_cast<TorchRun*>(self);
  TorchTemporaries temporaries(run.api_, run.host_.device_, &run.workspace_);
  const TorchTensor source = temporaries.handle(*from);
  const TorchTensor target = temporaries.handle(*to);
  if (source != nullptr && target != nullptr && run.api_.copy(target, source, 0) == 0) {
    return LITZ_OK;
  }
  run.message_ = "a copy failed: " + run.api_.last_error();
  return LITZ_ERROR;
}

}  // namespace litz
