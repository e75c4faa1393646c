/* A C program that runs a compiled graph: add_relu.c, given as its first argument. The second is
 * on_device.c, which it cannot run. There is no Python and no PyTorch in the process. */
#include <litz/runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kLength = 100003 };

static int failures = 0;

static void expect(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "failed: %s\n", what);
  ++failures;
}

static LitzTensor vector(float* data, const int64_t* length, const int64_t* stride) {
  LitzTensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.data = data;
  tensor.sizes = length;
  tensor.strides = stride;
  tensor.ndim = 1;
  tensor.dtype = 8; /* float32 */
  return tensor;
}

static void check_results(LitzModule* module, float* a, float* b, int64_t length) {
  const int64_t stride = 1;
  const LitzTensor tensors[2] = {vector(a, &length, &stride), vector(b, &length, &stride)};
  LitzValue inputs[2];
  memset(inputs, 0, sizeof inputs);
  for (int i = 0; i < 2; ++i) {
    inputs[i].kind = LITZ_TENSOR;
    inputs[i].u.tensor = &tensors[i];
  }
  LitzError error;
  LitzOutputs* outputs = NULL;
  const int status = litz_run(module, inputs, 2, &outputs, &error);
  expect(status == LITZ_OK, "litz_run succeeds");
  if (status != LITZ_OK) {
    fprintf(stderr, "%s\n", error.message);
    return;
  }
  expect(litz_outputs_count(outputs) == 1, "one output");
  const LitzValue* out = litz_outputs_values(outputs);
  expect(out->kind == LITZ_TENSOR && out->u.tensor->ndim == 1, "a vector");
  expect(out->u.tensor->sizes[0] == length && out->u.tensor->strides[0] == 1, "of that length");
  expect((uintptr_t)out->u.tensor->data % 64 == 0, "aligned");
  const float* values = (const float*)out->u.tensor->data;
  int equal = 1;
  for (int64_t i = 0; i < length; ++i) {
    const float sum = a[i] + b[i];
    equal &= values[i] == (sum < 0.0f ? 0.0f : sum);
  }
  expect(equal, "values");
  litz_outputs_free(outputs);
}

static void check_rejections(LitzRuntime* runtime, LitzModule* module, float* a) {
  LitzError error;
  LitzOutputs* outputs = NULL;
  expect(litz_load(runtime, "/no/such/graph.so", &error) == NULL, "a missing file is refused");
  expect(strstr(error.message, "/no/such/graph.so") != NULL, "the message names it");
  expect(litz_run(module, NULL, 0, &outputs, &error) == LITZ_ERROR && outputs == NULL,
         "the number of inputs is checked");
  const int64_t lengths[2] = {4, 5};
  const int64_t stride = 1;
  const LitzTensor tensors[2] = {vector(a, &lengths[0], &stride), vector(a, &lengths[1], &stride)};
  LitzValue inputs[2];
  memset(inputs, 0, sizeof inputs);
  for (int i = 0; i < 2; ++i) {
    inputs[i].kind = LITZ_TENSOR;
    inputs[i].u.tensor = &tensors[i];
  }
  expect(litz_run(module, inputs, 2, &outputs, &error) == LITZ_ERROR, "sizes are checked");
  expect(strstr(error.message, "input 1 (b)") != NULL, "the message names the input");
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s ARTIFACT ON_DEVICE\n", argv[0]);
    return 2;
  }
  float* a = malloc(kLength * sizeof *a);
  float* b = malloc(kLength * sizeof *b);
  for (int i = 0; i < kLength; ++i) {
    a[i] = (float)(i % 17) - 8.0f;
    b[i] = (float)(i % 5) - 2.0f;
  }
  LitzError error;
  LitzRuntime* runtime = litz_runtime_create(2);
  LitzModule* module = litz_load(runtime, argv[1], &error);
  if (module == NULL) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  expect(litz_module_artifact(module)->num_inputs == 2, "the artifact describes itself");
  check_results(module, a, b, kLength);
  check_results(module, a, b, 0);
  check_results(module, a, b, 1);
  check_rejections(runtime, module, a);
  expect(litz_load(runtime, argv[2], &error) == NULL, "a graph for a device is refused");
  expect(strstr(error.message, "compiled for a device (sm_90)") != NULL, "the message says why");
  litz_runtime_destroy(runtime);
  check_results(module, a, b, kLength);
  litz_unload(module);
  free(a);
  free(b);
  return failures == 0 ? 0 : 1;
}
