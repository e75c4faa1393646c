#pragma once

#include <cstdint>

namespace litz {

// Folds one more value into a running 64-bit hash (the finalizer of splitmix64 on their sum).
inline uint64_t mix_hash(uint64_t seed, uint64_t value) {
  uint64_t x = seed * 0x9e3779b97f4a7c15u + value + 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace litz
