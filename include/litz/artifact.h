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

#define LITZ_ABI_VERSION 6

typedef enum LitzStatus {
  LITZ_OK = 0,
  LITZ_ERROR = 1, /* what went wrong is in the message given to LitzHost::fail */
  LITZ_INDEX_OUT_OF_RANGE =
      2, /* an index tensor holds a value outside its dimension; eager raises IndexError */
  LITZ_OUT_OF_MEMORY = 3,
  LITZ_UNSUPPORTED = 4,         /* the host has no such library op */
  LITZ_DIVISION_BY_ZERO = 5,    /* of integers, which eager refuses */
  LITZ_INDEX_OUT_OF_BOUNDS = 6, /* as LITZ_INDEX_OUT_OF_RANGE, of an op where eager raises
                                   RuntimeError: gather and scatter */
  LITZ_VALUE_OUT_OF_RANGE = 7   /* a value that the op does not take; eager raises RuntimeError */
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
  LITZ_TENSOR = 1,         /* u.tensor */
  LITZ_INT = 2,            /* u.i */
  LITZ_DOUBLE = 3,         /* u.d */
  LITZ_BOOL = 4,           /* u.i, 0 or 1 */
  LITZ_STRING = 5,         /* u.s, zero-terminated UTF-8 */
  LITZ_DTYPE = 6,          /* u.i, a LitzDType */
  LITZ_LIST = 7,           /* u.list[0 .. count) */
  LITZ_DEVICE = 8,         /* u.s, for example "cpu" */
  LITZ_LAYOUT = 9,         /* u.i, the number torch uses */
  LITZ_MEMORY_FORMAT = 10, /* u.i, the number torch uses */
  LITZ_SAME_INPUT = 11,    /* outputs only: input number u.i itself, not a copy or view of it */
  LITZ_SAME_OUTPUT = 12    /* outputs only: the value of output number u.i, which comes earlier */
} LitzValueKind;

typedef struct LitzValue {
  int32_t kind;  /* LitzValueKind */
  int32_t count; /* entries of a list */
  union {
    const LitzTensor* tensor;
    LitzTensor* result; /* LITZ_TENSOR as a result of LitzHost::call */
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
     one present; a tensor without a handle (workspace memory) is lent for the call only, so an op
     whose result aliases an argument must be given one with a handle where the result outlives
     the run.

     Results are in schema order, a list of tensors flattened into its elements. The artifact sets
     kind and u.result of those it wants as tensors. Where `u.result->data` is not NULL, its
     fields describe memory that the value is written to. Where it is NULL the host fills all
     fields (sizes and strides stay valid until the result is released; an op that returns an
     argument gives a new handle for the same tensor). The host drops tensors that the artifact
     does not want, and sets kind and value of all other results: LITZ_INT, LITZ_DOUBLE, LITZ_BOOL,
     and LITZ_NONE also for a tensor that the op left undefined. */
  int (*call)(void* self, int32_t op, const LitzValue* args, int32_t num_args, LitzValue* results,
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

  /* Queues, or on the CPU makes, an elementwise copy between tensors of equal sizes and dtype,
     whatever their strides. They do not overlap. */
  int (*copy)(void* self, const LitzTensor* from, LitzTensor* to);

  /* The rest is for artifacts with device code; elsewhere these may be NULL. Memory that the host
     allocates for such an artifact, its workspace and its tensors' data are on the device that the
     run is for. Work is queued in order on the stream that is current when the run starts; nothing
     waits for it. */

  /* Queues kernel number `kernel` of LitzArtifact::device_code on `grid` blocks (x, y, z) of
     `threads` threads. `arguments` are pointers to the kernel's arguments. */
  int (*launch)(void* self, int32_t kernel, const int64_t* grid, int32_t threads,
                int64_t shared_bytes, void** arguments);

  /* The device's copy of `num_bytes` bytes of the artifact, made once and kept while the artifact
     is loaded; 256-byte aligned. */
  int (*constant)(void* self, const void* bytes, int64_t num_bytes, void** data);

  /* May be NULL. Input number `input`, a tensor, is not used in the rest of the run, nor by its
     outputs: whoever owns it may free it. */
  void (*drop_input)(void* self, int32_t input);
} LitzHost;

/* A cubin. */
typedef struct LitzDeviceImage {
  const void* bytes;
  int64_t num_bytes;
} LitzDeviceImage;

typedef struct LitzDeviceKernel {
  const char* name; /* of a function of its image */
  int32_t image;
} LitzDeviceKernel;

/* Kernels for a device, in one image or several, which the host loads once for each device. */
typedef struct LitzDeviceCode {
  const char* target;              /* "sm_90" */
  const LitzDeviceImage* images;   /* num_images entries */
  const LitzDeviceKernel* kernels; /* num_kernels entries; the index is what `launch` takes */
  int32_t num_images;
  int32_t num_kernels;
} LitzDeviceCode;

/* One library op that the artifact calls, by schema name: "aten::add" and "Tensor"; the overload
   may be empty. Writing a result into given memory needs no other overload. */
typedef struct LitzExternOp {
  const char* name;
  const char* overload;
  const char* node; /* name of the FX node it came from, for messages */
} LitzExternOp;

/* An extent in LitzInputSpec: a number from 0 up means exactly that, LITZ_ANY_EXTENT anything, and
   LITZ_SYMBOL_EXTENT(k) the value of symbol k, which is the same wherever it stands. */
#define LITZ_ANY_EXTENT (-1)
#define LITZ_SYMBOL_EXTENT(k) (-2 - (int64_t)(k))

/* What the code was compiled for. Hosts check it before `run`, which relies on it. */
typedef struct LitzInputSpec {
  const char* name;
  int32_t kind;           /* LITZ_TENSOR or LITZ_INT */
  LitzDType dtype;        /* of a tensor */
  int32_t ndim;           /* of a tensor; 0 for an int */
  int32_t is_mutated;     /* 1 where `run` writes to it */
  const int64_t* sizes;   /* ndim extents; of an int, one: its value */
  const int64_t* strides; /* ndim extents; those of dimensions of size 0 or 1 and of empty tensors
                             do not matter */
  int32_t is_passed_on;   /* 1: a number that only library ops get, as it is, from any device */
} LitzInputSpec;

typedef struct LitzArtifact {
  uint32_t abi_version;
  int32_t num_inputs;
  int32_t num_outputs;
  int32_t num_extern_ops;
  int32_t num_symbols;            /* symbols of the input specs: 0 .. num_symbols - 1 */
  const LitzInputSpec* inputs;    /* num_inputs entries */
  const LitzExternOp* extern_ops; /* num_extern_ops entries */
  const char* description; /* JSON: inputs, outputs, symbols, kernels, target, options that shaped
                              the code */

  /* Bytes of workspace that `run` needs for these inputs. Alignment is 64. */
  int64_t (*workspace_bytes)(const LitzValue* inputs);

  /* Runs the graph. `inputs` has num_inputs values (tensors or ints). The artifact fills the
     num_outputs values of `outputs`: LITZ_TENSOR, with u.tensor pointing to the entry of the same
     number in `output_tensors`; LITZ_INT, LITZ_NONE, LITZ_SAME_INPUT or LITZ_SAME_OUTPUT. An output
     tensor has a handle that the caller now owns; its sizes and strides point into the artifact, to
     `shapes`, or to the host. `shapes` is scratch for sizes and strides that depend on the inputs:
     shapes_count entries, which live as long as the outputs. Input tensors that the graph mutates
     are written in place. On failure no output is owned by the caller. */
  int (*run)(const LitzHost* host, const LitzValue* inputs, LitzValue* outputs,
             LitzTensor* output_tensors, int64_t* shapes, void* workspace);

  int64_t shapes_count;

  /* NULL where the kernels are functions of the artifact itself. */
  const LitzDeviceCode* device_code;
} LitzArtifact;

#ifdef __cplusplus
}
#endif

#endif /* LITZ_ARTIFACT_H */
