// What the hosts of this folder share.
#pragma once

#include <litz/artifact.h>

#include <cstdint>

#include "support/dtype.h"

namespace litz {

// The LitzHost of one run, whose functions are the static members of its class; without those for
// device code.
template <class Run>
LitzHost make_host_table(Run* run) {
  return {.abi_version = LITZ_ABI_VERSION,
          .size_bytes = sizeof(LitzHost),
          .self = run,
          .allocate = Run::allocate,
          .release = Run::release,
          .view = Run::view,
          .call = Run::call,
          .parallel_for = Run::parallel_for,
          .num_threads = Run::num_threads,
          .fail = Run::fail,
          .launch = nullptr,
          .constant = nullptr,
          .copy = nullptr};
}

// Bytes from the first element to the end of the last one.
inline int64_t storage_bytes(const LitzTensor& tensor) {
  int64_t last = 0;
  for (int32_t d = 0; d < tensor.ndim; ++d) {
    if (tensor.sizes[d] == 0) return 0;
    last += (tensor.sizes[d] - 1) * tensor.strides[d];
  }
  return (last + 1) * size_of(static_cast<DType>(tensor.dtype));
}

}  // namespace litz
