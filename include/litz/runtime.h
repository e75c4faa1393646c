/* The native runtime: loads and runs compiled graphs from C, with neither Python nor PyTorch in the
 * process.
 *
 *   LitzRuntime* runtime = litz_runtime_create(0);
 *   LitzModule* module = litz_load(runtime, "graph.so", &error);
 *   LitzOutputs* outputs = NULL;
 *   if (litz_run(module, inputs, 2, &outputs, &error) == LITZ_OK) ...
 *
 * A module may be run by any number of threads at once. Modules keep their runtime alive, outputs
 * keep their memory alive: the objects may be destroyed in any order, once nothing uses them.
 */
#ifndef LITZ_RUNTIME_H
#define LITZ_RUNTIME_H

#include <litz/artifact.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Threads and memory shared by the modules loaded into it. */
typedef struct LitzRuntime LitzRuntime;
typedef struct LitzModule LitzModule;
typedef struct LitzOutputs LitzOutputs;

/* Filled where a function fails; functions take NULL where the caller does not want it. A longer
   message is cut. */
typedef struct LitzError {
  int32_t status; /* LitzStatus */
  char message[1020];
} LitzError;

/* num_threads < 1 means as many as the process has CPUs to use. NULL where threads cannot be
   started. */
LitzRuntime* litz_runtime_create(int32_t num_threads);
void litz_runtime_destroy(LitzRuntime* runtime);

/* NULL where the file is not an artifact of this ABI version. Loading runs code: load only what you
   trust. */
LitzModule* litz_load(LitzRuntime* runtime, const char* path, LitzError* error);
void litz_unload(LitzModule* module);

/* Names, dtypes and sizes of inputs, the library ops it needs, and its description. Valid until the
   module is unloaded. */
const LitzArtifact* litz_module_artifact(const LitzModule* module);

/* Runs the graph; `inputs` must fit the artifact's input specs, and does not fit leads to
   LITZ_ERROR with a message and no run. Input tensors need no handle. On success *outputs is what
   litz_outputs_free takes; on failure it is NULL. */
int litz_run(LitzModule* module, const LitzValue* inputs, int32_t num_inputs, LitzOutputs** outputs,
             LitzError* error);

/* One value for each output: LITZ_TENSOR, LITZ_INT or LITZ_NONE. Valid until litz_outputs_free. An
   output that is one of the inputs points to the caller's memory. */
int32_t litz_outputs_count(const LitzOutputs* outputs);
const LitzValue* litz_outputs_values(const LitzOutputs* outputs);
void litz_outputs_free(LitzOutputs* outputs);

#ifdef __cplusplus
}
#endif

#endif /* LITZ_RUNTIME_H */
