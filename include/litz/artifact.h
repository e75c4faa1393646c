/* The C interface of a compiled graph.
 *
 * A compiled graph ("artifact") is one shared library that exports exactly one symbol,
 * `litz_artifact`, of type `const LitzArtifact`. It links against nothing but libc and libm;
 * everything else it needs reaches it through the `LitzHost` table passed with each call. An
 * artifact has no mutable global state: any number of threads may run it at once, each with its own
 * workspace.
 *
 * Sizes count elements unless a name ends in `_bytes`. Every function that returns int returns
 * LITZ_OK or a LitzStatus, and leaves a message with `LitzHost::fail` when it does not succeed.
 */
#ifndef LITZ_ARTIFACT_H
#define LITZ_ARTIFACT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LITZ_ABI_VERSION 1

typedef enum LitzStatus {
  LITZ_OK = 0,
  LITZ_ERROR = 1, /* what went wrong is in the message given to LitzHost::fail */
  LITZ_INDEX_OUT_OF_RANGE =
      2, /* an index tensor holds a value outside its dimension; eager raises IndexError */
  LITZ_OUT_OF_MEMORY = 3,
  LITZ_UNSUPPORTED = 4 /* the host has no such library op */
} LitzStatus;

/* The values are part of the ABI and equal litz::DType. */
typedef int32_t LitzDType;

/* A strided view of memory. `sizes` and `strides` belong to whoever made the struct. */
typedef struct LitzTensor {
  void* data;             /* first element, storage offset already applied */
  const int64_t* sizes;   /* ndim entries */
  const int64_t* strides; /* ndim entries, in elements */
  int32_t ndim;
  LitzDType dtype;
  void* handle; /* the host's own object for this tensor, or NULL; opaque to the artifact */
} LitzTensor;

typedef enum LitzValueKind {
  LITZ_NONE = 0,
  LITZ_TENSOR = 1,        /* u.tensor */
  LITZ_INT = 2,           /* u.i */
  LITZ_DOUBLE = 3,        /* u.d */
  LITZ_BOOL = 4,          /* u.i, 0 or 1 */
  LITZ_STRING = 5,        /* u.s, zero-terminated UTF-8 */
  LITZ_DTYPE = 6,         /* u.i, a LitzDType */
  LITZ_LIST = 7,          /* u.list[0 .. count) */
  LITZ_DEVICE = 8,        /* u.s, for example "cpu" */
  LITZ_LAYOUT = 9,        /* u.i, the number torch uses */
  LITZ_MEMORY_FORMAT = 10 /* u.i, the number torch uses */
} LitzValueKind;

typedef struct LitzValue {
  int32_t kind;  /* LitzValueKind */
  int32_t count; /* entries of a list */
  union {
    const LitzTensor* tensor;
    int64_t i;
    double d;
    const char* s;
    const struct LitzValue* list;
  } u;
} LitzValue;

/* A body of work over [begin, end). `state` is what was given to parallel_for. */
typedef void (*LitzRangeBody)(int64_t begin, int64_t end, void* state);

/* How an artifact reaches the world. The caller of `run` fills it; `self` is passed back to every
 * function. */
typedef struct LitzHost {
  uint32_t abi_version; /* LITZ_ABI_VERSION */
  uint32_t size_bytes;  /* sizeof(LitzHost) as the host was built */
  void* self;

  /* Allocates a tensor for an output: fills data and handle of `tensor`; sizes, strides, ndim and
     dtype are set already. Elements are uninitialised, data is 64-byte aligned. */
  int (*allocate)(void* self, LitzTensor* tensor);

  /* Frees what `allocate` or `call` returned, where it is not one of the run's outputs. */
  void (*release)(void* self, LitzTensor* tensor);

  /* Makes outputs that alias: fills `view` (sizes, strides, dtype and data are set) with a handle
     for a view of `base`. The base stays owned by whoever owned it. */
  int (*view)(void* self, const LitzTensor* base, LitzTensor* view);

  /* Runs library op number `op` of LitzArtifact::extern_ops. Arguments are in schema order, every
     one present. For each of the `num_results` results, where `results[k].data` is not NULL the
     value is written there; where it is NULL the host allocates and fills all fields (sizes and
     strides stay valid until the result is released). */
  int (*call)(void* self, int32_t op, const LitzValue* args, int32_t num_args, LitzTensor* results,
              int32_t num_results);

  /* Runs body over [begin, end) in chunks of at least `grain` on the host's threads and returns
   * when all is done. */
  void (*parallel_for)(void* self, int64_t begin, int64_t end, int64_t grain, LitzRangeBody body,
                       void* state);

  /* Number of threads parallel_for uses at most; at least 1, and the same for the whole of one run.
   */
  int32_t (*num_threads)(void* self);

  /* Records a message for a status other than LITZ_OK. */
  void (*fail)(void* self, int status, const char* message);
} LitzHost;

/* One library op that the artifact calls, by schema name: "aten::mm" and overload "" or "out". */
typedef struct LitzExternOp {
  const char* name;
  const char* overload;
  const char* node; /* name of the FX node it came from, for messages */
} LitzExternOp;

typedef struct LitzArtifact {
  uint32_t abi_version;
  int32_t num_inputs;
  int32_t num_outputs;
  int32_t num_extern_ops;
  const LitzExternOp* extern_ops;
  const char* description; /* JSON: inputs, outputs, symbols, kernels, target, options that shaped
                              the code */

  /* Bytes of workspace that `run` needs for these inputs. Alignment is 64. */
  int64_t (*workspace_bytes)(const LitzValue* inputs);

  /* Runs the graph. `inputs` has num_inputs values (tensors or ints); `outputs` has num_outputs
     values that the artifact fills: tensors whose storage the host allocated and the caller now
     owns (sizes and strides point into the artifact, to `shapes`, or to the host), or LITZ_INT, or
     LITZ_NONE. `shapes` is scratch for sizes and strides that depend on the inputs: shapes_count
     entries. Input tensors that the graph mutates are written in place. On failure no output is
     owned by the caller. */
  int (*run)(const LitzHost* host, const LitzValue* inputs, LitzValue* outputs,
             LitzTensor* output_tensors, int64_t* shapes, void* workspace);

  int64_t shapes_count;
} LitzArtifact;

#ifdef __cplusplus
}
#endif

#endif /* LITZ_ARTIFACT_H */
