// What the hosts of this folder share.
#pragma once

#include <litz/artifact.h>

#include <cstdint>
#include <cstring>

#include "support/dtype.h"

namespace litz {

// The LitzHost of one run, whose functions are the static members of its class; without those that
// may be NULL.
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
          .copy = Run::copy,
          .launch = nullptr,
          .constant = nullptr,
          .drop_input = nullptr};
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

// Copies element by element, whatever the strides.
inline void copy_elements(const LitzTensor& from, const LitzTensor& to) {
  const int64_t bytes = size_of(static_cast<DType>(from.dtype));
  const auto copy = [&](const auto& self, const char* source, char* target, int32_t d) -> void {
    if (d == from.ndim) {
      std::memcpy(target, source, static_cast<size_t>(bytes));
      return;
    }
    const bool row = d + 1 == from.ndim && from.strides[d] == 1 && to.strides[d] == 1;
    if (row) {
      std::memcpy(target, source, static_cast<size_t>(from.sizes[d] * bytes));
      return;
    }
    for (int64_t i = 0; i < from.sizes[d]; ++i) {
      self(self, source + i * from.strides[d] * bytes, target + i * to.strides[d] * bytes, d + 1);
    }
  };
  copy(copy, static_cast<const char*>(from.data), static_cast<char*>(to.data), 0);
}

}  // namespace litz
