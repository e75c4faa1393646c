// One run of an artifact whose kernels are those of a backend outside Litz. Tensors stay the CPU's:
// where the device has memory of its own, inputs are copied there before the run, and what it made
// or changed back behind it.
#pragma once

#include <litz/artifact.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/backend_plugin.h"
#include "runtime/executable.h"
#include "runtime/host_table.h"

namespace litz {

class BackendRun {
 public:
  // `host` is that of the CPU; it allocates the outputs and runs library ops.
  BackendRun(BackendModule& module, const LitzHost& host);
  ~BackendRun();
  BackendRun(const BackendRun&) = delete;
  BackendRun& operator=(const BackendRun&) = delete;

  // As Executable::run; messages go to the host's `fail`.
  int run(const Executable& executable, Frame& frame);

 private:
  friend LitzHost make_host_table<BackendRun>(BackendRun* run);
  // Memory of the device, and what it stands for.
  struct Copy {
    char* host;
    char* device;
    int64_t bytes;
    bool comes_back;
    bool viewed = false;
  };
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

  int failed(const std::string& fault, int status = LITZ_ERROR);
  int copy_inputs(const LitzArtifact& artifact, Frame& frame);
  int copy_back();
  // Waits for the kernels that were launched.
  int wait();
  // Waits, and returns the status of a check that failed.
  int finish_kernels();
  void* status_words();

  BackendModule& module_;
  const LitzHost& host_;
  LitzHost table_;
  std::vector<Copy> copies_;
  std::vector<int32_t> statuses_;  // by kernel, where the device shares memory
  void* device_statuses_ = nullptr;
  bool checks_ = false;  // a kernel that does has been launched
  bool queued_ = false;  // kernels may be at work
  int broken_ = 0;       // the status of a wait that failed
};

}  // namespace litz
