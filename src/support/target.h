// The CPU that code is generated and compiled for.
//
// A target is a value: it is either detected on the machine at hand or written as text, and equal
// targets give equal compiler flags and so equal code. Text form, also used in cache keys:
//   baseline                128-bit vectors, what every x86-64 has
//   avx2[+vnni]             256-bit vectors with FMA and F16C; vnni is AVX-VNNI
//   avx512[+bf16][+vnni][+amx]  512-bit vectors (F, BW, DQ, VL, CD) with FMA and F16C; amx is a
//                           matrix unit for bfloat16 (AMX-TILE, AMX-BF16)
// The text "native" is read as the machine at hand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/error.h"

namespace litz {

struct CpuTarget {
  enum class Isa : uint8_t { kBaseline128, kAvx2, kAvx512 };

  Isa isa = Isa::kBaseline128;
  int vector_bytes = 16;
  bool fma = false;   // fused multiply-add in vectors; with kAvx2 and above always
  bool f16c = false;  // float16 conversions in vectors; with kAvx2 and above always
  bool avx512_bf16 = false;
  bool vnni = false;
  bool amx = false;  // tiles of bfloat16

  static CpuTarget make(Isa isa);

  // What this machine and its operating system support. Linux lets a process use tiles once it has
  // asked for them: this asks.
  static CpuTarget detect();

  // Reads the text form. The reason of a failure lists what is valid.
  static Result<CpuTarget> parse(std::string_view text);

  std::string text() const;

  // Explicit feature flags that g++ and clang++ both know; never -march=native.
  std::vector<std::string> compiler_flags() const;

  // Whether kernels multiply bfloat16 in the matrix unit's tiles.
  bool multiplies_tiles() const { return amx && avx512_bf16 && vector_bytes == 64; }

  // Whether a machine described by `host` can run code made for this target.
  bool runs_on(const CpuTarget& host) const;

  friend bool operator==(const CpuTarget&, const CpuTarget&) = default;
};

// The name and the signature of this machine's processor, with its generation.
std::string cpu_model();

// The raw answers of CPUID and XGETBV that detection looks at.
struct CpuidWords {
  uint32_t leaf1_ecx = 0;
  uint32_t leaf7_ebx = 0;
  uint32_t leaf7_ecx = 0;
  uint32_t leaf7_edx = 0;
  uint32_t leaf7_1_eax = 0;
  uint32_t extended1_ecx = 0;  // leaf 0x80000001
  uint64_t xcr0 = 0;           // register state that the operating system saves
};

// An instruction set counts only where all of its members are present and the operating system
// saves its registers.
CpuTarget decode_cpuid(const CpuidWords& words);

}  // namespace litz
