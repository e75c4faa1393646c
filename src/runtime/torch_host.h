// The host of an artifact inside a PyTorch process: tensors, threads and library ops are torch's
// own, reached through its C interface.
//
// A library op takes the first way that can carry it: its direct C function (torch_ops.h); torch's
// dispatcher, where every argument type has a C form; Python. An op that fails on one of the first
// two is asked again in Python, so that the user sees the exception that eager raises.
#pragma once

#include <litz/artifact.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/block_pool.h"
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

 private:
  std::once_flag threads_once_;
  std::unique_ptr<ThreadPool> threads_;
};

// The library ops of one artifact, prepared.
class TorchHost {
 public:
  // One entry of `types` for each extern op.
  TorchHost(std::shared_ptr<TorchEnvironment> environment, const LitzArtifact& artifact,
            const std::vector<TorchOpTypes>& types);

  TorchEnvironment& environment() const { return *environment_; }
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
  std::shared_ptr<TorchEnvironment> environment_;
  std::vector<Op> ops_;
};

// The host side of one run.
class TorchRun {
 public:
  TorchRun(const TorchHost& host, PythonOps& python);
  TorchRun(const TorchRun&) = delete;
  TorchRun& operator=(const TorchRun&) = delete;

  const LitzHost& table() const { return table_; }
  const std::string& message() const { return message_; }

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
};

}  // namespace litz
