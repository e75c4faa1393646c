/* The C interface of a device backend that lives outside Litz.
 *
 * A backend is a shared library that links nothing of Litz. It exports one function,
 *
 *   const LitzBackend* litz_backend(void);
 *
 * whose result lives as long as the library: tables that say how kernels are spelled on the device,
 * numbers and a function that say how many threads share the work, and functions that compile and
 * launch. Litz decides what the kernels compute, in which loops, and prints them in the backend's
 * words. docs/add-a-backend.md walks through one.
 *
 * Text. All texts are zero-terminated and shape the code, so they must be the same in every
 * process. A NULL where a comment does not say what it means is refused when the library is loaded.
 *
 * Errors. A function that returns int returns 0, or anything else after leaving a message for
 * `last_error`. Nothing may throw or end the process.
 *
 * Threads. Litz never calls two functions for one device at once.
 */
#ifndef LITZ_BACKEND_H
#define LITZ_BACKEND_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows where a struct changes otherwise than by fields at the end of LitzBackend. */
#define LITZ_BACKEND_ABI_VERSION 1

/* The backend's own: a device, and the kernels of one graph on it. */
typedef struct LitzBackendDevice LitzBackendDevice;
typedef struct LitzBackendModule LitzBackendModule;

/* ---- the dialect: one C-like language whose threads are numbered in blocks ---- */

/* The type that holds a dtype in registers and, but for bool, in memory: {"f32", "float"}. Dtypes
   are f64, f32, i64, i32, i16, i8, u64, u32, u16 and u8; f32, i64, i32, u64, u32, u16 and u8 are
   required. Graphs with values of a dtype that has no row run elsewhere. bool is the language's
   own; half floats are kept as f32 and converted with integer arithmetic. */
typedef struct LitzTypeRow {
  const char* dtype;
  const char* type;
} LitzTypeRow;

/* Expressions for scalar functions: `text` is one of the arguments x, y and z, in which $ stands
   for the name. Names and dtypes are separated by spaces: {"exp log sin", "f32 f64", "$(x)"}. The
   first row that has both serves. Litz has texts of its own for integers, and for what arithmetic
   and other functions make (add, min, sign, floor_div, remainder, sigmoid, conversions, ...). What
   a language must be asked for is
     of one argument   sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh
                       cosh tanh asinh acosh atanh erf erfc erfinv lgamma digamma
     of two            pow atan2 hypot fmod nextafter
   and floor, ceil, trunc, round (half to even), rsqrt and fma are worth a row. A graph that needs
   a function without text runs elsewhere. docs/numerics.md has the bounds that Litz promises. */
typedef struct LitzFunctionRow {
  const char* names;
  const char* dtypes;
  const char* text;
} LitzFunctionRow;

typedef struct LitzDialect {
  const char* source_name; /* of the file that users see: "kernels.cl" */
  const char* prelude;     /* in front of everything else; may be empty */
  const LitzTypeRow* types;
  int32_t num_types;
  const LitzFunctionRow* functions;
  int32_t num_functions;

  /* A kernel as far as its parameters, where $name and $threads (of a block) stand for its own. */
  const char* kernel;
  const char* global_space; /* in front of the type that a pointer to global memory points to */
  const char* local_space;  /* in front of the type of a variable that a block shares; NULL: there
                               is no such memory, and every thread works alone */
  const char* block_x;      /* integer expressions: the block's number along x and y ... */
  const char* block_y;
  const char* thread;   /* ... and the thread's in its block */
  const char* barrier;  /* a statement: all threads of the block meet, and see what they wrote to
                           local memory */
  const char* unroll;   /* in front of a loop to be unrolled; may be empty */
  const char* shuffle;  /* a function of a value of any type and a distance: the value of the thread
                           whose number in the warp is this one's xor the distance. NULL: threads
                           exchange values in local memory */
  const char* bit_cast; /* an expression of x that has the same bits in the type $type */
  const char* infinity; /* of f32 */
  const char* nan;      /* of f32 */
  const char* int64_suffix; /* of a literal that needs 64 bits: "L" */
  /* An expression of p, a volatile pointer to u32 in global memory, and two u32, expected and
     desired: what *p was before desired took the place of expected, in one step. NULL: graphs that
     scatter with a sum run elsewhere. */
  const char* compare_exchange;
} LitzDialect;

/* ---- heuristics and strategy ---- */

/* Counts of threads are powers of two; 0 takes the value in brackets. */
typedef struct LitzHeuristics {
  int32_t warp;              /* threads that run in step (32) */
  int32_t block;             /* threads of a block, where rows are short or there are none (256) */
  int32_t most_group;        /* threads that share a row (512) */
  int32_t column_width;      /* rows of a block that walks columns (32), a divisor of block ... */
  int32_t most_column_group; /* ... and threads of each (32) */
  int32_t turns;             /* elements of a long row that each thread takes at least (4) */
  int64_t thread_row;        /* elements of a row that one thread does alone (16) */
  int64_t warp_row;          /* ... and that a warp does (1024) */
  int64_t kept_elements;     /* of a row in each thread's registers (32) */
  int64_t few_blocks;        /* rows are split where they make fewer blocks (256) */
  int64_t many_blocks;       /* ... into about so many (1024) */
  int64_t long_row;          /* ... and are longer than this (16384) */
} LitzHeuristics;

/* A kernel, as far as the choice of threads goes. Sizes that are known at run time alone are -1. */
typedef struct LitzKernelShape {
  int64_t rows;       /* iterations of the loops that a group of threads shares out */
  int64_t row_length; /* iterations within one; 1 where nothing is reduced */
  int32_t stages;     /* passes over the row */
  int32_t reductions;
  int32_t columns; /* 1: neighbours in memory are in different rows */
} LitzKernelShape;

typedef struct LitzThreadChoice {
  int32_t group;  /* threads that share a row */
  int32_t groups; /* of a block; group * groups threads run in it */
} LitzThreadChoice;

/* ---- the launcher ---- */

typedef struct LitzDeviceInfo {
  const char* description; /* of the device and what compiles for it: code is kept for equal ones */
  const char* without_dtypes; /* dtypes of the table that it lacks all the same: "f64"; or NULL */
  int32_t shares_memory; /* 1: kernels read and write any memory of the process where it is. Then
                            nothing is copied, and library ops of a graph run on the CPU. 0:
                            tensors are copied in and out, and graphs with library ops run
                            elsewhere. */
} LitzDeviceInfo;

/* Memory that the backend made and `free_bytes` frees. */
typedef struct LitzBytes {
  char* data;
  int64_t size;
} LitzBytes;

typedef struct LitzKernelArgument {
  int32_t is_pointer; /* 1: `value` is an address, 0: an int64 */
  int64_t value;
} LitzKernelArgument;

typedef struct LitzBackend {
  uint32_t abi_version; /* LITZ_BACKEND_ABI_VERSION */
  uint32_t size_bytes;  /* sizeof(LitzBackend) */
  const char* name;     /* what options={"device": name} says; letters, digits and underscores */
  const LitzDialect* dialect;
  LitzHeuristics heuristics;
  /* Changes the choice that the heuristics make; equal shapes must give equal choices, on equal
     devices. `device` is NULL where kernels are printed for nobody, and may be in use by another
     thread. May be NULL. */
  void (*choose_threads)(const LitzBackendDevice* device, const LitzKernelShape* shape,
                         LitzThreadChoice* choice);

  /* Why the last function failed on this thread. */
  const char* (*last_error)(void);

  /* The device of that number. `info` and what it points to live as long as the device. */
  int (*open_device)(int32_t number, LitzBackendDevice** device, LitzDeviceInfo* info);
  void (*close_device)(LitzBackendDevice* device);

  /* The toolchain: one source with all kernels of a graph becomes the image that `load` takes, in
     any process with an equal device. Where it fails, last_error has the compiler's log. */
  int (*compile)(LitzBackendDevice* device, const char* source, LitzBytes* image);
  void (*free_bytes)(LitzBytes* bytes);

  /* Finds the kernels of an image; `launch` names them by their number here. */
  int (*load)(LitzBackendDevice* device, const void* image, int64_t image_bytes,
              const char* const* kernels, int32_t num_kernels, LitzBackendModule** module);
  void (*unload)(LitzBackendDevice* device, LitzBackendModule* module);

  /* Memory, by addresses in which kernels and Litz may count on. Of a device that shares memory
     only `launch` and `synchronize` are called, and `allocate` and `release` may be NULL like the
     copies. Copies wait for the work before them, and come back when they are done. */
  int (*allocate)(LitzBackendDevice* device, int64_t bytes, void** address);
  void (*release)(LitzBackendDevice* device, void* address);
  int (*copy_in)(LitzBackendDevice* device, void* to, const void* from, int64_t bytes);
  int (*copy_out)(LitzBackendDevice* device, void* to, const void* from, int64_t bytes);

  /* Queues grid[0] x grid[1] blocks of `threads` threads, behind the work before it. */
  int (*launch)(LitzBackendDevice* device, LitzBackendModule* module, int32_t kernel,
                const int64_t* grid, int32_t threads, const LitzKernelArgument* arguments,
                int32_t num_arguments);
  int (*synchronize)(LitzBackendDevice* device);
} LitzBackend;

typedef const LitzBackend* (*LitzBackendEntry)(void);
#define LITZ_BACKEND_ENTRY "litz_backend"

#ifdef __cplusplus
}
#endif

#endif /* LITZ_BACKEND_H */
