// Library ops that are called most, through torch's C functions of their own: several times cheaper
// than the dispatcher, and matrix products write straight into planned memory.
#pragma once

#include <litz/artifact.h>

#include <string_view>

#include "runtime/torch_api.h"
#include "runtime/torch_args.h"

namespace litz {

enum class CallOutcome {
  kDone,
  kFailed,      // torch raised an error
  kBadResult,   // the op ran, but its results are not what the graph was compiled for
  kNotHandled,  // these arguments need another way; nothing has happened
};

using DirectOp = CallOutcome (*)(const TorchApi& api, const LitzValue* args, LitzValue* results,
                                 TorchTemporaries& temporaries);

// The function for "aten::mm" with overload "" on a type of device, or nullptr where there is none
// in this torch.
DirectOp find_direct_op(const TorchApi& api, int32_t device_type, std::string_view name,
                        std::string_view overload);

}  // namespace litz
