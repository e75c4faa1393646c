/* Runs affine_softmax.litz, compiled, in a process without Python and PyTorch, and compares with
 * known numbers. */
#include <litz/runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

static void expect(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "failed: %s\n", what);
  ++failures;
}

static LitzTensor matrix(void* data, const int64_t* sizes, const int64_t* strides, int32_t dtype) {
  LitzTensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.data = data;
  tensor.sizes = sizes;
  tensor.strides = strides;
  tensor.ndim = 2;
  tensor.dtype = dtype;
  return tensor;
}

/* Row r of x is r, r + 1, r + 2, r + 3: each row's softmax is that of 0, 3, 6, 9. */
static const double kSoftmax[4] = {1.1726631e-4, 2.3553568e-3, 4.7308607e-2, 9.5021877e-1};

static void check_outputs(const LitzValue* outputs, int64_t rows) {
  expect(outputs[0].kind == LITZ_TENSOR && outputs[1].kind == LITZ_TENSOR, "two tensors");
  expect(outputs[0].u.tensor->sizes[0] == rows && outputs[0].u.tensor->sizes[1] == 4, "sizes");
  expect(outputs[3].kind == LITZ_INT && outputs[3].u.i == rows, "the number of rows");
  const float* y = (const float*)outputs[0].u.tensor->data;
  const float* sums = (const float*)outputs[1].u.tensor->data;
  int64_t wrong = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int c = 0; c < 4; ++c) wrong += fabs(y[4 * row + c] - kSoftmax[c]) > 1e-6 * kSoftmax[c];
    wrong += sums[row] != 4 * (float)row + 6;
  }
  expect(wrong == 0, "values");
}

static void run(LitzModule* module, int64_t rows) {
  const int64_t sizes[2][2] = {{rows, 4}, {rows, 1}};
  const int64_t strides[2][2] = {{4, 1}, {1, 1}};
  float* x = malloc((size_t)rows * 4 * sizeof *x);
  int64_t* steps = malloc((size_t)rows * sizeof *steps);
  for (int64_t row = 0; row < rows; ++row) {
    for (int c = 0; c < 4; ++c) x[4 * row + c] = (float)(row + c);
    steps[row] = 10 * row;
  }
  const LitzTensor tensors[2] = {matrix(x, sizes[0], strides[0], 8 /* float32 */),
                                 matrix(steps, sizes[1], strides[1], 5 /* int64 */)};
  LitzValue inputs[2];
  memset(inputs, 0, sizeof inputs);
  for (int i = 0; i < 2; ++i) {
    inputs[i].kind = LITZ_TENSOR;
    inputs[i].u.tensor = &tensors[i];
  }
  LitzError error;
  LitzOutputs* outputs = NULL;
  if (litz_run(module, inputs, 2, &outputs, &error) == LITZ_OK) {
    expect(litz_outputs_count(outputs) == 4, "four outputs");
    check_outputs(litz_outputs_values(outputs), rows);
    expect(litz_outputs_values(outputs)[2].u.tensor->data == steps, "an output is the input");
    int64_t wrong = 0;
    for (int64_t row = 0; row < rows; ++row) wrong += steps[row] != 10 * row + 1;
    expect(wrong == 0, "steps are counted up");
    litz_outputs_free(outputs);
  } else {
    expect(0, error.message);
  }
  free(x);
  free(steps);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s LIBRARY\n", argv[0]);
    return 2;
  }
  LitzError error;
  LitzRuntime* runtime = litz_runtime_create(2);
  LitzModule* module = litz_load(runtime, argv[1], &error);
  if (module == NULL) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  expect(litz_module_artifact(module)->num_extern_ops == 0, "no library ops");
  run(module, 1);
  run(module, 3);
  run(module, 5000);
  litz_unload(module);
  litz_runtime_destroy(runtime);
  return failures == 0 ? 0 : 1;
}
