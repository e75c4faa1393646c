// What one run of an artifact needs besides its inputs, kept from call to call.
#pragma once

#include <litz/artifact.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/block_pool.h"

namespace litz {

// Arrays for one run at a time. The caller fills `inputs` (an input tensor's value points to the
// entry of the same number in `input_tensors`).
struct Frame {
  explicit Frame(const LitzArtifact& artifact);

  std::vector<LitzValue> inputs;
  std::vector<LitzTensor> input_tensors;
  std::vector<LitzValue> outputs;
  std::vector<LitzTensor> output_tensors;
  std::vector<int64_t> shapes;
  std::vector<int64_t> symbols;  // scratch of check_inputs
};

// The frames of one artifact: concurrent calls each take their own. Thread-safe.
class FramePool {
 public:
  explicit FramePool(const LitzArtifact& artifact) : artifact_(artifact) {}

  // Gives the frame back at the end of its scope.
  class Lease {
   public:
    explicit Lease(FramePool& pool) : pool_(pool), frame_(pool.take()) {}
    ~Lease() { pool_.give(std::move(frame_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Frame& operator*() const { return *frame_; }
    Frame* operator->() const { return frame_.get(); }

   private:
    FramePool& pool_;
    std::unique_ptr<Frame> frame_;
  };

 private:
  std::unique_ptr<Frame> take();
  void give(std::unique_ptr<Frame> frame);

  const LitzArtifact& artifact_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Frame>> idle_;
};

// Compares frame.inputs with what the artifact was compiled for. Returns an empty string where they
// fit, else what does not, in words for the user.
std::string check_inputs(const LitzArtifact& artifact, Frame& frame);

// Takes a workspace from `blocks`, or from the host's own `allocate` where that is NULL, runs, and
// gives the workspace back. The inputs must have been checked. Returns a LitzStatus;
// LITZ_OUT_OF_MEMORY where there is no workspace to be had.
int run_artifact(const LitzArtifact& artifact, const LitzHost& host, Frame& frame,
                 BlockPool* blocks);

}  // namespace litz
