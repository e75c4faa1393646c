// Attention and its gradients through torch's C functions.
#pragma once

#include "runtime/torch_ops.h"

namespace litz {

// The function of an attention op on a type of device, or nullptr where there is none in this
// torch.
DirectOp find_direct_attention(const TorchApi& api, int32_t device_type, std::string_view name);

}  // namespace litz
