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

TorchHost::TorchHost(std::shared_ptr<TorchEnvironment> environment, const LitzArtifact& artifact,
                     const std::vector<TorchOpTypes>& types)
    : environment_(std::move(environment)) {
  if (types.size() != static_cast<size_t>(artifact.num_extern_ops)) {
    throw UserError("the graph calls " + std::to_string(artifact.num_extern_ops) +
                    " library ops, " + std::to_string(types.size()) + " were described");
  }
  const TorchApi& api = environment_->api;
  for (size_t i = 0; i < types.size(); ++i) {
    Op op;
    op.name = artifact.extern_ops[i].name;
    op.overload = artifact.extern_ops[i].overload;
    op.direct = find_direct_op(api, op.name, op.overload);
    op.arguments = parse_types(types[i].arguments);
    op.returns = parse_types(types[i].returns);
    op.dispatchable = op.arguments.size() <= kMaxStack && op.returns.size() <= kMaxStack &&
                      std::all_of(op.arguments.begin(), op.arguments.end(),
                                  [&](const TorchType& type) { return can_pack(api, type); }) &&
                      std::all_of(op.returns.begin(), op.returns.end(), can_unpack);
    ops_.push_back(std::move(op));
  }
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
      table_(make_host_table(this)) {}

int TorchRun::out_of_memory(int64_t bytes) {
  message_ = "no memory for an output of " + std::to_string(bytes) + " bytes";
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
  if (bytes >= kPooledBytes && run.api_.from_blob_with_deleter != nullptr) {
    return run.allocate_pooled(bytes, tensor);
  }
  TorchTensor made = nullptr;
  if (run.api_.empty_strided(tensor->ndim, tensor->sizes, tensor->strides,
                             run.api_.to_torch(static_cast<DType>(tensor->dtype)), run.api_.cpu,
                             kNoDeviceIndex, &made) != 0) {
    return run.out_of_memory(bytes);
  }
  run.api_.get_data_ptr(made, &tensor->data);
  tensor->handle = made;
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
  TorchTemporaries temporaries(api_);
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
  message_ = unpack_results(api_, op.returns, stack.data(), results, num_results);
  return message_.empty() ? CallOutcome::kDone : CallOutcome::kBadResult;
}

int TorchRun::call_op(int32_t number, const LitzValue* args, int32_t num_args, LitzValue* results,
                      int32_t num_results) {
  const TorchHost::Op& op = host_.ops_[static_cast<size_t>(number)];
  CallOutcome outcome = CallOutcome::kNotHandled;
  if (op.direct != nullptr) {
    TorchTemporaries temporaries(api_);
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

}  // namespace litz
