// What a host runs: a loaded library (loaded_artifact.h), or anything else that takes the same
// inputs through the same LitzHost.
#pragma once

#include <litz/artifact.h>

#include "runtime/block_pool.h"
#include "runtime/frame.h"

namespace litz {

class Executable {
 public:
  virtual ~Executable() = default;

  // Inputs, outputs, library ops. Its functions are for `run` below alone and may be NULL.
  virtual const LitzArtifact& table() const = 0;

  // As run_artifact (frame.h). Any number of threads may run one executable at once.
  virtual int run(const LitzHost& host, Frame& frame, BlockPool* blocks) const = 0;
};

}  // namespace litz
