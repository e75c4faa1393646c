// What the graphs of this process share, made at the first use.
#pragma once

#include <memory>

#include "runtime/torch_host.h"
#include "tensor_access.h"

namespace litz {

// Never destroyed: tensors whose memory it lent may outlive the interpreter.
struct TorchDoor {
  std::shared_ptr<TorchEnvironment> environment =
      std::make_shared<TorchEnvironment>(TorchApi::load());
  TensorAccess access{environment->api};

  // Throws UserError where torch is not loaded. The GIL is the lock: a function-local static's own
  // lock could deadlock with it.
  static TorchDoor& get();
};

}  // namespace litz
