// The functions of litz/runtime.h. No exception leaves them.
#include <litz/runtime.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "runtime/frame.h"
#include "runtime/loaded_artifact.h"
#include "runtime/native_host.h"
#include "support/error.h"

namespace litz {
namespace {

struct RuntimeState {
  explicit RuntimeState(int32_t num_threads) : threads(num_threads) {}
  std::shared_ptr<BlockPool> blocks = std::make_shared<BlockPool>();
  ThreadPool threads;
};

void report(LitzError* error, int status, const std::string& message) {
  if (error == nullptr) return;
  error->status = status;
  const size_t length = std::min(message.size(), sizeof(error->message) - 1);
  std::memcpy(error->message, message.data(), length);
  error->message[length] = '\0';
}

}  // namespace
}  // namespace litz

struct LitzRuntime {
  std::shared_ptr<litz::RuntimeState> state;
};

struct LitzModule {
  LitzModule(std::shared_ptr<litz::RuntimeState> runtime,
             std::shared_ptr<const litz::LoadedArtifact> loaded)
      : state(std::move(runtime)), artifact(std::move(loaded)), frames(artifact->table()) {}
  std::shared_ptr<litz::RuntimeState> state;
  std::shared_ptr<const litz::LoadedArtifact> artifact;
  litz::FramePool frames;
};

// Sizes and strides are copies: those that a run leaves live in its frame or in the artifact.
struct LitzOutputs {
  ~LitzOutputs() {
    for (LitzTensor& tensor : tensors) litz::release_native_tensor(tensor);
  }
  std::vector<LitzValue> values;
  std::vector<LitzTensor> tensors;
  std::vector<std::vector<int64_t>> extents;
};

namespace litz {
namespace {

void copy_extents(const LitzTensor& from, LitzTensor& to, std::vector<int64_t>& extents) {
  extents.assign(from.sizes, from.sizes + from.ndim);
  extents.insert(extents.end(), from.strides, from.strides + from.ndim);
  to = from;
  to.sizes = extents.data();
  to.strides = extents.data() + from.ndim;
}

std::unique_ptr<LitzOutputs> collect_outputs(const Frame& frame) {
  auto outputs = std::make_unique<LitzOutputs>();
  const size_t count = frame.outputs.size();
  outputs->values.resize(count);
  outputs->tensors.resize(count);
  outputs->extents.resize(count);
  for (size_t k = 0; k < count; ++k) {
    LitzValue value = frame.outputs[k];
    const LitzTensor* owned = value.kind == LITZ_TENSOR ? &frame.output_tensors[k] : nullptr;
    const LitzTensor* source = owned;
    if (value.kind == LITZ_SAME_INPUT) {
      value = frame.inputs[static_cast<size_t>(value.u.i)];
      if (value.kind == LITZ_TENSOR) source = value.u.tensor;
    } else if (value.kind == LITZ_SAME_OUTPUT) {
      value = outputs->values[static_cast<size_t>(value.u.i)];
      if (value.kind == LITZ_TENSOR) source = value.u.tensor;
    }
    if (source != nullptr) {
      copy_extents(*source, outputs->tensors[k], outputs->extents[k]);
      // The handle counts as one reference, whose owner is the output that the run allocated.
      if (owned == nullptr) outputs->tensors[k].handle = nullptr;
      value.u.tensor = &outputs->tensors[k];
    }
    outputs->values[k] = value;
  }
  return outputs;
}

int run_module(LitzModule& module, const LitzValue* inputs, int32_t num_inputs,
               LitzOutputs** outputs, LitzError* error) {
  const LitzArtifact& table = module.artifact->table();
  if (num_inputs != table.num_inputs) {
    report(error, LITZ_ERROR,
           "the graph has " + std::to_string(table.num_inputs) + " inputs, " +
               std::to_string(num_inputs) + " were given");
    return LITZ_ERROR;
  }
  FramePool::Lease frame(module.frames);
  std::copy(inputs, inputs + num_inputs, frame->inputs.begin());
  if (const std::string fault = check_inputs(table, *frame); !fault.empty()) {
    report(error, LITZ_ERROR, fault);
    return LITZ_ERROR;
  }
  NativeRun run(module.state->blocks, module.state->threads);
  const int status = run_artifact(table, run.host(), *frame, module.state->blocks.get());
  if (status != LITZ_OK) {
    report(error, status, run.message());
    return status;
  }
  *outputs = collect_outputs(*frame).release();
  return LITZ_OK;
}

}  // namespace
}  // namespace litz

extern "C" {

LitzRuntime* litz_runtime_create(int32_t num_threads) {
  try {
    return new LitzRuntime{std::make_shared<litz::RuntimeState>(num_threads)};
  } catch (const std::exception&) {
    return nullptr;
  }
}

void litz_runtime_destroy(LitzRuntime* runtime) { delete runtime; }

LitzModule* litz_load(LitzRuntime* runtime, const char* path, LitzError* error) {
  try {
    auto artifact = litz::LoadedArtifact::load(path);
    if (const LitzDeviceCode* code = artifact->table().device_code; code != nullptr) {
      throw litz::UserError("cannot load compiled graph " + std::string(path) +
                            ": it was compiled for a device (" + code->target +
                            "), and the native runtime runs on the CPU");
    }
    return new LitzModule(runtime->state, std::move(artifact));
  } catch (const std::exception& fault) {
    litz::report(error, LITZ_ERROR, fault.what());
    return nullptr;
  }
}

void litz_unload(LitzModule* module) { delete module; }

const LitzArtifact* litz_module_artifact(const LitzModule* module) {
  return &module->artifact->table();
}

int litz_run(LitzModule* module, const LitzValue* inputs, int32_t num_inputs, LitzOutputs** outputs,
             LitzError* error) {
  *outputs = nullptr;
  try {
    return litz::run_module(*module, inputs, num_inputs, outputs, error);
  } catch (const std::exception& fault) {
    litz::report(error, LITZ_OUT_OF_MEMORY, fault.what());
    return LITZ_OUT_OF_MEMORY;
  }
}

int32_t litz_outputs_count(const LitzOutputs* outputs) {
  return static_cast<int32_t>(outputs->values.size());
}

const LitzValue* litz_outputs_values(const LitzOutputs* outputs) { return outputs->values.data(); }

void litz_outputs_free(LitzOutputs* outputs) { delete outputs; }

}  // extern "C"
