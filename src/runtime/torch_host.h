// The host of an artifact inside a PyTorch process: tensors, threads and library ops are torch's
// own, reached through its C interface.
//
// A library op takes the first way that can carry it: its direct C function (torch_ops.h); torch's
// dispatcher, where every argument type has a C form; Python. An op that fails on one of the first
// two is asked again in Python, so that the user sees the exception that eager raises.
//
// A graph runs on one device. On a CUDA device its kernels go to the stream that is torch's current
// one, and all memory comes from torch's allocator, which hands it out again in the stream's order.
#pragma once

#include <litz/artifact.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/block_pool.h"
#include "runtime/cuda_driver.h"
#include "runtime/device_modules.h"
#include "runtime/host_table.h"
#include "runtime/thread_pool.h"
#include "runtime/torch_api.h"
#include "runtime/torch_args.h"
#include "runtime/torch_ops.h"

namespace litz {

// Types of a library op's arguments and results, as its schema writes them.
struct TorchOpTypes {
  std::vector<std::string> arguments;
  std::vector<std::string> returns;
};

// The way through Python. Called without the GIL.
class PythonOps {
 public:
  virtual ~PythonOps() = default;
  // As LitzHost::call. A Python exception is kept by the implementation for whoever started the
  // run; `message` gets its text.
  virtual int call(int32_t op, const LitzValue* args, int32_t num_args, LitzValue* results,
                   int32_t num_results, std::string* message) = 0;
  // Whether the run may drop its inputs, and what then becomes of one.
  virtual bool drops_inputs() const { return false; }
  virtual void drop_input(int32_t /*input*/) {}
};

// What all graphs of a process share.
struct TorchEnvironment {
  explicit TorchEnvironment(TorchApi loaded) : api(loaded) {}
  const TorchApi api;
  const std::shared_ptr<BlockPool> blocks = std::make_shared<BlockPool>();

  int32_t num_threads() const;
  // Runs on torch's threads, or on own ones where torch does not lend them.
  void parallel_for(int64_t begin, int64_t end, int64_t grain, int32_t limit, LitzRangeBody body,
                    void* state);
  // Opened at the first call. Throws UserError where there is none.
  std::shared_ptr<const CudaDriver> cuda_driver();

 private:
  std::once_flag threads_once_;
  std::unique_ptr<ThreadPool> threads_;
  std::mutex driver_mutex_;
  std::shared_ptr<const CudaDriver> driver_;
};

// The library ops of one artifact, prepared, and on a CUDA device its kernels, loaded.
class TorchHost {
 public:
  // One entry of `types` for each extern op. `device` is "cpu" or "cuda:0". The artifact must
  // outlive this. `has_backend`: its kernels are launched by somebody else (backend_run.h). Throws
  // UserError where the device cannot be used.
  TorchHost(std::shared_ptr<TorchEnvironment> environment, const LitzArtifact& artifact,
            const std::vector<TorchOpTypes>& types, const std::string& device = "cpu",
            bool has_backend = false);

  TorchEnvironment& environment() const { return *environment_; }
  const TorchDevice& device() const { return device_; }
  bool is_cuda() const { return module_ != nullptr; }
  // How op number `op` is called: "direct", "dispatcher" or "python".
  const char* way(int32_t op) const;

 private:
  friend class TorchRun;
  struct Op {
    std::string name;
    std::string overload;
    DirectOp direct = nullptr;
    bool dispatchable = false;
    std::vector<TorchType> arguments;
    std::vector<TorchType> returns;
  };
  void load_kernels(const LitzArtifact& artifact, const std::string& device, bool has_backend);

  std::shared_ptr<TorchEnvironment> environment_;
  TorchDevice device_;
  std::vector<Op> ops_;
  std::unique_ptr<DeviceModules> modules_;
  DeviceModule* module_ = nullptr;  // of a CUDA device
};

// The host side of one run, on the thread that makes it. On a CUDA device that device and its
// context are the thread's current ones as long as this lives.
class TorchRun {
 public:
  // Throws UserError where the device does not work.
  TorchRun(const TorchHost& host, PythonOps& python);
  ~TorchRun();
  TorchRun(const TorchRun&) = delete;
  TorchRun& operator=(const TorchRun&) = delete;

  const LitzHost& table() const { return table_; }
  const std::string& message() const { return message_; }
  // Of a CUDA device.
  CudaStream stream() const { return stream_; }

 private:
  friend LitzHost make_host_table<TorchRun>(TorchRun* run);
  static int allocate(void* self, LitzTensor* tensor);
  static void release(void* self, LitzTensor* tensor);
  static int view(void* self, const LitzTensor* base, LitzTensor* view);
  static int call(void* self, int32_t op, const LitzValue* args, int32_t num_args,
                  LitzValue* results, int32_t num_results);
  static void parallel_for(void* self, int64_t begin, int64_t end, int64_t grain,
                           LitzRangeBody body, void* state);
  static int32_t num_threads(void* self);
  static void fail(void* self, int status, const char* message);
  static int launch(void* self, int32_t kernel, const int64_t* grid, int32_t threads,
                    int64_t shared_bytes, void** arguments);
  static int constant(void* self, const void* bytes, int64_t num_bytes, void** data);
  static int copy(void* self, const LitzTensor* from, LitzTensor* to);
  static void drop_input(void* self, int32_t input);

  void enter_device();
  int call_op(int32_t op, const LitzValue* args, int32_t num_args, LitzValue* results,
              int32_t num_results);
  int out_of_memory(int64_t bytes);
  int allocate_pooled(int64_t bytes, LitzTensor* tensor);
  CallOutcome dispatch(const TorchHost::Op& op, const LitzValue* args, int32_t num_args,
                       LitzValue* results, int32_t num_results);

  const TorchHost& host_;
  const TorchApi& api_;
  PythonOps& python_;
  const int32_t threads_;
  std::string message_;
  LitzHost table_;
  TorchArena workspace_;
  void* guard_ = nullptr;  // torch's, of the current device
  std::optional<CudaContextScope> context_;
  CudaStream stream_ = nullptr;
};

}  // namespace litz
