#include "codegen/cpp/cpp_abi.h"

#include <cstddef>
#include <cstdio>

#include "litz/artifact.h"

namespace litz {
namespace {

constexpr const char* kDeclarations = R"(
struct LitzTensor { void* data; const i64* sizes; const i64* strides; i32 ndim; i32 dtype; void* handle; };
struct LitzValue {
  i32 kind;
  i32 count;
  union { const LitzTensor* tensor; LitzTensor* result; i64 i; double d; const char* s; const LitzValue* list; } u;
};
typedef void (*LitzRangeBody)(i64 begin, i64 end, void* state);
struct LitzHost {
  unsigned abi_version;
  unsigned size_bytes;
  void* self;
  int (*allocate)(void* self, LitzTensor* tensor);
  void (*release)(void* self, LitzTensor* tensor);
  int (*view)(void* self, const LitzTensor* base, LitzTensor* view);
  int (*call)(void* self, i32 op, const LitzValue* args, i32 num_args, LitzValue* results, i32 num_results);
  void (*parallel_for)(void* self, i64 begin, i64 end, i64 grain, LitzRangeBody body, void* state);
  i32 (*num_threads)(void* self);
  void (*fail)(void* self, int status, const char* message);
  int (*copy)(void* self, const LitzTensor* from, LitzTensor* to);
  int (*launch)(void* self, i32 kernel, const i64* grid, i32 threads, i64 shared_bytes, void** arguments);
  int (*constant)(void* self, const void* bytes, i64 num_bytes, void** data);
  void (*drop_input)(void* self, i32 input);
};
struct LitzDeviceImage { const void* bytes; i64 num_bytes; };
struct LitzDeviceKernel { const char* name; i32 image; };
struct LitzDeviceCode {
  const char* target;
  const LitzDeviceImage* images;
  const LitzDeviceKernel* kernels;
  i32 num_images;
  i32 num_kernels;
};
struct LitzExternOp { const char* name; const char* overload; const char* node; };
struct LitzInputSpec {
  const char* name;
  i32 kind;
  i32 dtype;
  i32 ndim;
  i32 is_mutated;
  const i64* sizes;
  const i64* strides;
  i32 is_passed_on;
};
struct LitzArtifact {
  unsigned abi_version;
  i32 num_inputs;
  i32 num_outputs;
  i32 num_extern_ops;
  i32 num_symbols;
  const LitzInputSpec* inputs;
  const LitzExternOp* extern_ops;
  const char* description;
  i64 (*workspace_bytes)(const LitzValue* inputs);
  int (*run)(const LitzHost* host, const LitzValue* inputs, LitzValue* outputs, LitzTensor* output_tensors,
             i64* shapes, void* workspace);
  i64 shapes_count;
  const LitzDeviceCode* device_code;
};

// Runs body over [0, n) on the host's threads, where that is more than one piece of work.
static inline void run_range(const LitzHost* host, i64 n, i64 grain, LitzRangeBody body, void* state) {
  if (n <= 0) return;
  if (n <= grain) {
    body(0, n, state);
  } else {
    host->parallel_for(host->self, 0, n, grain, body, state);
  }
}

__attribute__((cold)) static inline void check_failed(i32* status, i32 failure) {
  __atomic_store_n(status, failure, __ATOMIC_RELAXED);
}

// value where 0 <= value < extent; else 0, and the status, if there is one, says so.
static inline i64 checked_index(i64 value, i64 extent, i32* status, i32 failure) {
  if ((unsigned long long)value < (unsigned long long)extent) return value;
  if (status) check_failed(status, failure);
  return 0;
}
)";

}  // namespace

std::string cpp_abi_text() {
  std::string text = kDeclarations;
  const auto check = [&](const char* what, size_t size) {
    text += std::string("static_assert(") + what + " == " + std::to_string(size) +
            ", \"the artifact ABI differs\");\n";
  };
  check("sizeof(LitzTensor)", sizeof(LitzTensor));
  check("sizeof(LitzValue)", sizeof(LitzValue));
  check("sizeof(LitzHost)", sizeof(LitzHost));
  check("sizeof(LitzInputSpec)", sizeof(LitzInputSpec));
  check("sizeof(LitzDeviceKernel)", sizeof(LitzDeviceKernel));
  check("sizeof(LitzDeviceCode)", sizeof(LitzDeviceCode));
  check("sizeof(LitzArtifact)", sizeof(LitzArtifact));
  check("__builtin_offsetof(LitzTensor, handle)", offsetof(LitzTensor, handle));
  check("__builtin_offsetof(LitzHost, copy)", offsetof(LitzHost, copy));
  check("__builtin_offsetof(LitzHost, constant)", offsetof(LitzHost, constant));
  check("__builtin_offsetof(LitzArtifact, device_code)", offsetof(LitzArtifact, device_code));
  return text + "\n";
}

}  // namespace litz
