/* A CUDA driver without a device: records each call as a line of text, and fails where it is told.
 * Two devices, of compute capability 8.0 and 9.0. Addresses of "device" memory are host memory. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char log_text[65536];
static size_t log_length;
static char failing[64];
static int failing_status;
static __thread void* current;
static char contexts[2];
static double clock_ms; /* a kernel takes a microsecond for each block in x */

void fake_cuda_reset(void) {
  log_length = 0;
  log_text[0] = '\0';
  failing[0] = '\0';
  current = NULL;
}

const char* fake_cuda_log(void) { return log_text; }

void* fake_cuda_context(int device) { return &contexts[device]; }

/* From now on calls of `symbol` return `status`. */
void fake_cuda_fail(const char* symbol, int status) {
  snprintf(failing, sizeof(failing), "%s", symbol);
  failing_status = status;
}

static int answer(const char* symbol) { return strcmp(symbol, failing) == 0 ? failing_status : 0; }

/* What does not fit any more is left out. */
static void record(const char* line) {
  const size_t length = strlen(line);
  if (log_length + length + 2 > sizeof(log_text)) return;
  memcpy(log_text + log_length, line, length);
  memcpy(log_text + log_length + length, "\n", 2);
  log_length += length + 1;
}

#define RECORD(symbol, ...)                               \
  do {                                                    \
    char line[512];                                       \
    snprintf(line, sizeof(line), symbol " " __VA_ARGS__); \
    record(line);                                         \
    if (answer(symbol) != 0) return answer(symbol);       \
  } while (0)

int cuInit(unsigned flags) {
  (void)flags;
  return answer("cuInit");
}
int cuDeviceGetCount(int* count) {
  *count = 2;
  return answer("cuDeviceGetCount");
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return answer("cuDeviceGet");
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  *value = attribute == 75 ? 8 + device : 0;
  return answer("cuDeviceGetAttribute");
}
int cuCtxGetCurrent(void** context) {
  *context = current;
  return answer("cuCtxGetCurrent");
}
int cuCtxSetCurrent(void* context) {
  if (answer("cuCtxSetCurrent") != 0) return answer("cuCtxSetCurrent");
  current = context;
  return 0;
}
int cuCtxSynchronize(void) {
  RECORD("cuCtxSynchronize", "device=%d", (int)((char*)current - contexts));
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  RECORD("cuDevicePrimaryCtxRetain", "device=%d", device);
  *context = &contexts[device];
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  RECORD("cuDevicePrimaryCtxRelease", "device=%d", device);
  return 0;
}
int cuModuleLoadData(void** module, const void* image) {
  RECORD("cuModuleLoadData", "device=%d image=%s", (int)((char*)current - contexts),
         (const char*)image);
  *module = current;
  return 0;
}
int cuModuleUnload(void* module) {
  RECORD("cuModuleUnload", "device=%d", (int)((char*)module - contexts));
  return 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  RECORD("cuModuleGetFunction", "device=%d name=%s", (int)((char*)module - contexts), name);
  *function = (void*)name;
  return 0;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  RECORD("cuFuncSetAttribute", "%s attribute=%d value=%d", (const char*)function, attribute, value);
  return 0;
}
/* The first argument of every kernel is a pointer, the second an int64. */
int cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned threads_x,
                   unsigned threads_y, unsigned threads_z, unsigned shared, void* stream,
                   void** arguments, void** extra) {
  RECORD(
      "cuLaunchKernel",
      "%s device=%d grid=%u,%u,%u threads=%u,%u,%u shared=%u stream=%d arguments=%d,%lld extra=%d",
      (const char*)function, (int)((char*)current - contexts), x, y, z, threads_x, threads_y,
      threads_z, shared, (int)(intptr_t)stream, (int)(intptr_t)(*(void**)arguments[0]),
      (long long)*(int64_t*)arguments[1], extra != NULL);
  clock_ms += 1e-3 * x;
  return 0;
}
int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  RECORD("cuMemAlloc", "device=%d bytes=%zu", (int)((char*)current - contexts), bytes);
  *address = (uint64_t)(uintptr_t)malloc(bytes);
  return 0;
}
int cuMemFree_v2(uint64_t address) {
  RECORD("cuMemFree", "device=%d", (int)((char*)current - contexts));
  free((void*)(uintptr_t)address);
  return 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t address, const void* bytes, size_t count, void* stream) {
  RECORD("cuMemcpyHtoDAsync", "bytes=%zu stream=%d", count, (int)(intptr_t)stream);
  memcpy((void*)(uintptr_t)address, bytes, count);
  return 0;
}
int cuMemsetD8Async(uint64_t address, unsigned char value, size_t bytes, void* stream) {
  RECORD("cuMemsetD8Async", "bytes=%zu stream=%d", bytes, (int)(intptr_t)stream);
  memset((void*)(uintptr_t)address, value, bytes);
  return 0;
}
int cuStreamCreate(void** stream, unsigned flags) {
  RECORD("cuStreamCreate", "flags=%u", flags);
  *stream = (void*)(intptr_t)77;
  return 0;
}
int cuStreamDestroy_v2(void* stream) {
  RECORD("cuStreamDestroy", "stream=%d", (int)(intptr_t)stream);
  return 0;
}
int cuEventCreate(void** event, unsigned flags) {
  RECORD("cuEventCreate", "flags=%u", flags);
  *event = malloc(sizeof(double));
  return 0;
}
int cuEventDestroy_v2(void* event) {
  RECORD("cuEventDestroy", "");
  free(event);
  return 0;
}
int cuEventRecord(void* event, void* stream) {
  RECORD("cuEventRecord", "stream=%d", (int)(intptr_t)stream);
  *(double*)event = clock_ms;
  return 0;
}
int cuEventSynchronize(void* event) {
  (void)event;
  return answer("cuEventSynchronize");
}
int cuEventElapsedTime(float* ms, void* start, void* end) {
  *ms = (float)(*(double*)end - *(double*)start);
  return answer("cuEventElapsedTime");
}
int cuStreamSynchronize(void* stream) {
  RECORD("cuStreamSynchronize", "stream=%d", (int)(intptr_t)stream);
  return 0;
}
int cuStreamIsCapturing(void* stream, int* status) {
  (void)stream;
  *status = 0;
  return answer("cuStreamIsCapturing");
}
int cuGetErrorName(int status, const char** name) {
  *name = status == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_SOME";
  return 0;
}
int cuGetErrorString(int status, const char** text) {
  *text = status == 2 ? "out of memory" : "some error";
  return 0;
}
