/* relu(a + b) of two float32 vectors of the same unknown length, as the compiler would print it. */
#include <litz/artifact.h>
#include <stddef.h>

static const int64_t vector_sizes[] = {LITZ_SYMBOL_EXTENT(0)};
static const int64_t vector_strides[] = {1};

static const LitzInputSpec input_specs[] = {
    {"a", LITZ_TENSOR, 8 /* float32 */, 1, 0, vector_sizes, vector_strides},
    {"b", LITZ_TENSOR, 8 /* float32 */, 1, 0, vector_sizes, vector_strides},
};

typedef struct KernelArgs {
  const float* a;
  const float* b;
  float* out;
} KernelArgs;

static void kernel0(int64_t begin, int64_t end, void* state) {
  const KernelArgs* args = (const KernelArgs*)state;
  for (int64_t i = begin; i < end; ++i) {
    const float sum = args->a[i] + args->b[i];
    args->out[i] = sum < 0.0f ? 0.0f : sum;
  }
}

static int64_t workspace_bytes(const LitzValue* inputs) {
  (void)inputs;
  return 0;
}

static int run(const LitzHost* host, const LitzValue* inputs, LitzValue* outputs,
               LitzTensor* output_tensors, int64_t* shapes, void* workspace) {
  (void)workspace;
  const LitzTensor* a = inputs[0].u.tensor;
  const LitzTensor* b = inputs[1].u.tensor;
  shapes[0] = a->sizes[0];
  shapes[1] = 1;
  LitzTensor* out = &output_tensors[0];
  out->data = NULL;
  out->sizes = &shapes[0];
  out->strides = &shapes[1];
  out->ndim = 1;
  out->dtype = 8;
  out->handle = NULL;
  const int status = host->allocate(host->self, out);
  if (status != LITZ_OK) return status;
  KernelArgs args = {(const float*)a->data, (const float*)b->data, (float*)out->data};
  if (shapes[0] < 32768) {
    kernel0(0, shapes[0], &args);
  } else {
    host->parallel_for(host->self, 0, shapes[0], 16384, kernel0, &args);
  }
  outputs[0].kind = LITZ_TENSOR;
  outputs[0].count = 0;
  outputs[0].u.tensor = out;
  return LITZ_OK;
}

__attribute__((visibility("default"))) const LitzArtifact litz_artifact = {
    .abi_version = LITZ_ABI_VERSION,
    .num_inputs = 2,
    .num_outputs = 1,
    .num_extern_ops = 0,
    .num_symbols = 1,
    .inputs = input_specs,
    .extern_ops = NULL,
    .description = "{}",
    .workspace_bytes = workspace_bytes,
    .run = run,
    .shapes_count = 2,
};
