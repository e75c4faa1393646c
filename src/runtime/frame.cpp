#include "runtime/frame.h"

#include <algorithm>

#include "support/dtype.h"

namespace litz {
namespace {

constexpr int64_t kUnset = INT64_MIN;

std::string dtype_name(LitzDType dtype) {
  return std::string(torch_name(static_cast<DType>(dtype)));
}

std::string spell(const int64_t* extents, int32_t count) {
  std::string text = "[";
  for (int32_t i = 0; i < count; ++i) {
    if (i > 0) text += ", ";
    if (extents[i] >= 0) {
      text += std::to_string(extents[i]);
    } else if (extents[i] == LITZ_ANY_EXTENT) {
      text += "any";
    } else {
      text += "s" + std::to_string(LITZ_SYMBOL_EXTENT(extents[i]));
    }
  }
  return text + "]";
}

bool extent_fits(int64_t extent, int64_t value, std::vector<int64_t>& symbols) {
  if (extent >= 0) return extent == value;
  if (extent == LITZ_ANY_EXTENT) return true;
  // LITZ_SYMBOL_EXTENT is its own inverse.
  int64_t& symbol = symbols[static_cast<size_t>(LITZ_SYMBOL_EXTENT(extent))];
  if (symbol == kUnset) symbol = value;
  return symbol == value;
}

bool strides_fit(const LitzInputSpec& spec, const LitzTensor& tensor,
                 std::vector<int64_t>& symbols) {
  if (std::find(tensor.sizes, tensor.sizes + tensor.ndim, 0) != tensor.sizes + tensor.ndim) {
    return true;
  }
  for (int32_t d = 0; d < tensor.ndim; ++d) {
    if (tensor.sizes[d] != 1 && !extent_fits(spec.strides[d], tensor.strides[d], symbols)) {
      return false;
    }
  }
  return true;
}

std::string check_tensor(const LitzInputSpec& spec, const LitzTensor& tensor,
                         std::vector<int64_t>& symbols) {
  if (tensor.dtype != spec.dtype) {
    return "has dtype " + dtype_name(tensor.dtype) + ", the graph was compiled for " +
           dtype_name(spec.dtype);
  }
  if (tensor.ndim != spec.ndim) {
    return "has " + std::to_string(tensor.ndim) + " dimensions, the graph was compiled for " +
           std::to_string(spec.ndim);
  }
  for (int32_t d = 0; d < tensor.ndim; ++d) {
    if (!extent_fits(spec.sizes[d], tensor.sizes[d], symbols)) {
      return "has sizes " + spell(tensor.sizes, tensor.ndim) + ", the graph was compiled for " +
             spell(spec.sizes, spec.ndim) + "; dimension " + std::to_string(d) + " does not fit";
    }
  }
  if (!strides_fit(spec, tensor, symbols)) {
    return "has strides " + spell(tensor.strides, tensor.ndim) + ", the graph was compiled for " +
           spell(spec.strides, spec.ndim);
  }
  return {};
}

std::string check_input(const LitzInputSpec& spec, const LitzValue& value,
                        std::vector<int64_t>& symbols) {
  if (value.kind != spec.kind) {
    return spec.kind == LITZ_TENSOR ? "must be a tensor" : "must be an int";
  }
  if (spec.kind == LITZ_TENSOR) return check_tensor(spec, *value.u.tensor, symbols);
  if (!extent_fits(spec.sizes[0], value.u.i, symbols)) {
    return "is " + std::to_string(value.u.i) + ", the graph was compiled for " +
           spell(spec.sizes, 1);
  }
  return {};
}

}  // namespace

Frame::Frame(const LitzArtifact& artifact)
    : inputs(static_cast<size_t>(artifact.num_inputs)),
      input_tensors(static_cast<size_t>(artifact.num_inputs)),
      outputs(static_cast<size_t>(artifact.num_outputs)),
      output_tensors(static_cast<size_t>(artifact.num_outputs)),
      shapes(static_cast<size_t>(artifact.shapes_count)),
      symbols(static_cast<size_t>(artifact.num_symbols)) {}

std::unique_ptr<Frame> FramePool::take() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Frame> frame = std::move(idle_.back());
      idle_.pop_back();
      return frame;
    }
  }
  return std::make_unique<Frame>(artifact_);
}

void FramePool::give(std::unique_ptr<Frame> frame) {
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(frame));
}

std::string check_inputs(const LitzArtifact& artifact, Frame& frame) {
  std::fill(frame.symbols.begin(), frame.symbols.end(), kUnset);
  for (int32_t i = 0; i < artifact.num_inputs; ++i) {
    const LitzInputSpec& spec = artifact.inputs[i];
    std::string fault = check_input(spec, frame.inputs[static_cast<size_t>(i)], frame.symbols);
    if (!fault.empty()) {
      return "input " + std::to_string(i) + " (" + spec.name + ") " + fault;
    }
  }
  return {};
}

namespace {

int run_with(const LitzArtifact& artifact, const LitzHost& host, Frame& frame, void* workspace) {
  return artifact.run(&host, frame.inputs.data(), frame.outputs.data(), frame.output_tensors.data(),
                      frame.shapes.data(), workspace);
}

// Memory of the host's, for a device: work that is still queued when it goes back may use it, since
// the host hands it out again in the order of the queue.
int run_in_tensor(const LitzArtifact& artifact, const LitzHost& host, Frame& frame, int64_t bytes) {
  const int64_t stride = 1;
  LitzTensor workspace{.data = nullptr,
                       .sizes = &bytes,
                       .strides = &stride,
                       .ndim = 1,
                       .dtype = static_cast<LitzDType>(DType::kUInt8),
                       .handle = nullptr};
  int status = host.allocate(host.self, &workspace);
  if (status != LITZ_OK) return status;
  status = run_with(artifact, host, frame, workspace.data);
  host.release(host.self, &workspace);
  return status;
}

}  // namespace

int run_artifact(const LitzArtifact& artifact, const LitzHost& host, Frame& frame,
                 BlockPool* blocks) {
  const int64_t bytes = artifact.workspace_bytes(frame.inputs.data());
  if (blocks == nullptr) {
    return bytes > 0 ? run_in_tensor(artifact, host, frame, bytes)
                     : run_with(artifact, host, frame, nullptr);
  }
  const Block workspace = blocks->acquire(static_cast<size_t>(bytes));
  if (bytes > 0 && workspace.data == nullptr) {
    host.fail(host.self, LITZ_OUT_OF_MEMORY,
              ("no memory for a workspace of " + std::to_string(bytes) + " bytes").c_str());
    return LITZ_OUT_OF_MEMORY;
  }
  const int status = run_with(artifact, host, frame, workspace.data);
  blocks->release(workspace);
  return status;
}

}  // namespace litz
