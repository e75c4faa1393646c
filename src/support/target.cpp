#include "support/target.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cstdio>

namespace litz {
namespace {

constexpr bool has_bits(uint64_t word, uint64_t bits) { return (word & bits) == bits; }
constexpr uint32_t bit(int n) { return uint32_t{1} << n; }

// Whether this process may use the registers of tiles, now that it asks for it: their state is too
// large for the kernel to save it for every process.
bool may_use_tiles() {
#if defined(__x86_64__) && defined(__linux__) && defined(SYS_arch_prctl)
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // the number of the state component
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

// CPUID leaf 1, ECX.
constexpr uint32_t kFma = bit(12);
constexpr uint32_t kMovbe = bit(22);
constexpr uint32_t kPopcnt = bit(23);
constexpr uint32_t kOsxsave = bit(27);
constexpr uint32_t kAvx = bit(28);
constexpr uint32_t kF16c = bit(29);
// Leaf 7, EBX.
constexpr uint32_t kBmi1 = bit(3);
constexpr uint32_t kAvx2 = bit(5);
constexpr uint32_t kBmi2 = bit(8);
constexpr uint32_t kAvx512f = bit(16);
constexpr uint32_t kAvx512dq = bit(17);
constexpr uint32_t kAvx512cd = bit(28);
constexpr uint32_t kAvx512bw = bit(30);
constexpr uint32_t kAvx512vl = bit(31);
// Leaf 7, ECX.
constexpr uint32_t kAvx512Vnni = bit(11);
// Leaf 7, EDX.
constexpr uint32_t kAmxBf16 = bit(22);
constexpr uint32_t kAmxTile = bit(24);
// Leaf 7, subleaf 1, EAX.
constexpr uint32_t kAvxVnni = bit(4);
constexpr uint32_t kAvx512Bf16 = bit(5);
// Leaf 0x80000001, ECX.
constexpr uint32_t kLzcnt = bit(5);
// XCR0: the xmm and ymm halves; the mask registers and both zmm parts.
constexpr uint64_t kYmmState = 0x6;
constexpr uint64_t kZmmState = 0xe6;
constexpr uint64_t kTileState = 0x60000;

}  // namespace

CpuTarget CpuTarget::make(Isa isa) {
  CpuTarget target;
  target.isa = isa;
  switch (isa) {
    case Isa::kBaseline128:
      target.vector_bytes = 16;
      break;
    case Isa::kAvx2:
      target.vector_bytes = 32;
      break;
    case Isa::kAvx512:
      target.vector_bytes = 64;
      break;
  }
  target.fma = target.f16c = isa != Isa::kBaseline128;
  return target;
}

CpuTarget decode_cpuid(const CpuidWords& words) {
  bool avx2 = has_bits(words.leaf1_ecx, kFma | kMovbe | kPopcnt | kOsxsave | kAvx | kF16c) &&
              has_bits(words.leaf7_ebx, kBmi1 | kAvx2 | kBmi2) &&
              has_bits(words.extended1_ecx, kLzcnt) && has_bits(words.xcr0, kYmmState);
  if (!avx2) return CpuTarget::make(CpuTarget::Isa::kBaseline128);

  bool avx512 =
      has_bits(words.leaf7_ebx, kAvx512f | kAvx512dq | kAvx512cd | kAvx512bw | kAvx512vl) &&
      has_bits(words.xcr0, kZmmState);
  if (!avx512) {
    CpuTarget target = CpuTarget::make(CpuTarget::Isa::kAvx2);
    target.vnni = has_bits(words.leaf7_1_eax, kAvxVnni);
    return target;
  }
  CpuTarget target = CpuTarget::make(CpuTarget::Isa::kAvx512);
  target.avx512_bf16 = has_bits(words.leaf7_1_eax, kAvx512Bf16);
  target.vnni = has_bits(words.leaf7_ecx, kAvx512Vnni);
  target.amx = has_bits(words.leaf7_edx, kAmxTile | kAmxBf16) && has_bits(words.xcr0, kTileState);
  return target;
}

CpuTarget CpuTarget::detect() {
  CpuidWords words;
#if defined(__x86_64__)
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) words.leaf1_ecx = ecx;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) {
    uint32_t last_subleaf = eax;
    words.leaf7_ebx = ebx;
    words.leaf7_ecx = ecx;
    words.leaf7_edx = edx;
    if (last_subleaf >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx)) {
      words.leaf7_1_eax = eax;
    }
  }
  if (__get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx)) words.extended1_ecx = ecx;
  if (has_bits(words.leaf1_ecx, kOsxsave)) {
    uint32_t low = 0, high = 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    words.xcr0 = uint64_t{high} << 32 | low;
  }
#endif
  CpuTarget target = decode_cpuid(words);
  target.amx = target.amx && may_use_tiles();
  return target;
}

std::string cpu_model() {
  std::string name;
#if defined(__x86_64__)
  uint32_t words[4] = {};
  for (uint32_t leaf : {0x80000002, 0x80000003, 0x80000004}) {
    if (!__get_cpuid(leaf, &words[0], &words[1], &words[2], &words[3])) break;
    name.append(reinterpret_cast<const char*>(words), sizeof(words));
  }
  name = name.c_str();  // up to the first zero
  if (__get_cpuid(1, &words[0], &words[1], &words[2], &words[3])) {
    char signature[16];
    std::snprintf(signature, sizeof(signature), " %x", words[0]);
    name += signature;
  }
#endif
  return name;
}

Result<CpuTarget> CpuTarget::parse(std::string_view text) {
  if (text == "native") return detect();
  Unsupported invalid{"'" + std::string(text) +
                      "' is no CPU target; valid are native, baseline, avx2[+vnni], "
                      "avx512[+bf16][+vnni][+amx]"};
  size_t plus = text.find('+');
  std::string_view base = text.substr(0, plus);
  std::string_view extras = plus == std::string_view::npos ? "" : text.substr(plus);

  CpuTarget target;
  if (base == "baseline") {
    target = make(Isa::kBaseline128);
  } else if (base == "avx2") {
    target = make(Isa::kAvx2);
  } else if (base == "avx512") {
    target = make(Isa::kAvx512);
  } else {
    return invalid;
  }
  while (!extras.empty()) {
    size_t end = extras.find('+', 1);
    std::string_view extra = extras.substr(0, end);
    if (extra == "+bf16" && target.isa == Isa::kAvx512) {
      target.avx512_bf16 = true;
    } else if (extra == "+vnni" && target.isa != Isa::kBaseline128) {
      target.vnni = true;
    } else if (extra == "+amx" && target.isa == Isa::kAvx512) {
      target.amx = true;
    } else {
      return invalid;
    }
    extras = end == std::string_view::npos ? "" : extras.substr(end);
  }
  return target;
}

std::string CpuTarget::text() const {
  std::string text;
  switch (isa) {
    case Isa::kBaseline128:
      text = "baseline";
      break;
    case Isa::kAvx2:
      text = "avx2";
      break;
    case Isa::kAvx512:
      text = "avx512";
      break;
  }
  if (avx512_bf16) text += "+bf16";
  if (vnni) text += "+vnni";
  if (amx) text += "+amx";
  return text;
}

std::vector<std::string> CpuTarget::compiler_flags() const {
  std::vector<std::string> flags;
#if defined(__x86_64__)
  flags = {"-march=x86-64", "-mtune=generic"};
  if (isa != Isa::kBaseline128) {
    flags.insert(flags.end(), {"-mavx2", "-mfma", "-mf16c", "-mbmi", "-mbmi2", "-mlzcnt", "-mmovbe",
                               "-mpopcnt"});
  }
  if (isa == Isa::kAvx512) {
    flags.insert(flags.end(), {"-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512cd",
                               "-mprefer-vector-width=512"});
  }
  if (avx512_bf16) flags.push_back("-mavx512bf16");
  if (vnni) flags.push_back(isa == Isa::kAvx512 ? "-mavx512vnni" : "-mavxvnni");
#endif
  return flags;
}

bool CpuTarget::runs_on(const CpuTarget& host) const {
  if (isa > host.isa) return false;
  if (avx512_bf16 && !host.avx512_bf16) return false;
  if (amx && !host.amx) return false;
  // AVX-VNNI and AVX512-VNNI are different encodings.
  return !vnni || (host.vnni && host.isa == isa);
}

}  // namespace litz
