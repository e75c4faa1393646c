#include "support/target.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace litz {
namespace {

using Isa = CpuTarget::Isa;

// What a processor with everything says, running under a system that saves everything.
CpuidWords everything() {
  CpuidWords words;
  words.leaf1_ecx = words.leaf7_ebx = words.leaf7_ecx = words.leaf7_edx = words.leaf7_1_eax =
      words.extended1_ecx = 0xffffffff;
  words.xcr0 = 0x600ff;
  return words;
}

bool has_flag(const CpuTarget& target, const std::string& flag) {
  std::vector<std::string> flags = target.compiler_flags();
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

TEST(CpuTarget, TextFormsRoundTrip) {
  for (const char* text : {"baseline", "avx2", "avx2+vnni", "avx512", "avx512+bf16", "avx512+vnni",
                           "avx512+bf16+vnni", "avx512+bf16+vnni+amx"}) {
    Result<CpuTarget> target = CpuTarget::parse(text);
    ASSERT_TRUE(target) << target.reason();
    EXPECT_EQ(target->text(), text);
  }
}

TEST(CpuTarget, InvalidTextIsRefusedWithTheValidForms) {
  for (const char* text : {"", "avx", "AVX2", "avx2+bf16", "baseline+vnni", "avx2+amx", "avx512+",
                           "avx512+fp16", "avx512 +bf16"}) {
    Result<CpuTarget> target = CpuTarget::parse(text);
    ASSERT_FALSE(target) << text;
    EXPECT_NE(target.reason().find("avx512[+bf16][+vnni][+amx]"), std::string::npos);
  }
}

TEST(CpuTarget, NativeIsTheMachineAtHand) {
  Result<CpuTarget> native = CpuTarget::parse("native");
  ASSERT_TRUE(native);
  EXPECT_EQ(*native, CpuTarget::detect());
#if defined(__x86_64__)
  // clang 14 does not know the names of the levels.
  const bool v3 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                  __builtin_cpu_supports("bmi2") != 0;
  const bool v4 =
      v3 && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512cd") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0;
  EXPECT_EQ(native->isa >= Isa::kAvx2, v3);
  EXPECT_EQ(native->isa >= Isa::kAvx512, v4);
#endif
}

TEST(CpuTarget, VectorWidthFollowsTheInstructionSet) {
  EXPECT_EQ(CpuTarget::make(Isa::kBaseline128).vector_bytes, 16);
  EXPECT_EQ(CpuTarget::make(Isa::kAvx2).vector_bytes, 32);
  EXPECT_EQ(CpuTarget::make(Isa::kAvx512).vector_bytes, 64);
}

TEST(CpuTarget, DetectionTakesTheWidestCompleteSet) {
  EXPECT_EQ(decode_cpuid(everything()).text(), "avx512+bf16+vnni+amx");

  CpuidWords no_bw = everything();
  no_bw.leaf7_ebx &= ~(1u << 30);
  EXPECT_EQ(decode_cpuid(no_bw).text(), "avx2+vnni");

  CpuidWords no_fma = everything();
  no_fma.leaf1_ecx &= ~(1u << 12);
  EXPECT_EQ(decode_cpuid(no_fma).text(), "baseline");
  EXPECT_EQ(decode_cpuid(CpuidWords{}).text(), "baseline");

  CpuidWords no_tiles = everything();
  no_tiles.xcr0 = 0xff;
  EXPECT_EQ(decode_cpuid(no_tiles).text(), "avx512+bf16+vnni");
}

TEST(CpuTarget, RegistersThatTheSystemDoesNotSaveAreNotUsed) {
  CpuidWords no_zmm = everything();
  no_zmm.xcr0 = 0x7;
  EXPECT_EQ(decode_cpuid(no_zmm).isa, Isa::kAvx2);
  CpuidWords no_ymm = everything();
  no_ymm.xcr0 = 0x3;
  EXPECT_EQ(decode_cpuid(no_ymm).isa, Isa::kBaseline128);
}

#if defined(__x86_64__)
TEST(CpuTarget, FlagsAreExplicit) {
  CpuTarget bf16 = *CpuTarget::parse("avx512+bf16+vnni");
  EXPECT_TRUE(has_flag(bf16, "-mavx512bf16"));
  EXPECT_TRUE(has_flag(bf16, "-mavx512vnni"));
  EXPECT_TRUE(has_flag(bf16, "-mavx2"));
  EXPECT_TRUE(has_flag(*CpuTarget::parse("avx2+vnni"), "-mavxvnni"));
  EXPECT_FALSE(has_flag(*CpuTarget::parse("avx2"), "-mavx512f"));
  EXPECT_FALSE(has_flag(*CpuTarget::parse("baseline"), "-mavx2"));
  for (const char* text : {"baseline", "avx2", "avx512"}) {
    EXPECT_FALSE(has_flag(*CpuTarget::parse(text), "-march=native"));
  }
}
#endif

TEST(CpuTarget, RunsOnMachinesThatHaveAllOfIt) {
  auto target = [](const char* text) { return *CpuTarget::parse(text); };
  EXPECT_TRUE(target("baseline").runs_on(target("avx512+bf16")));
  EXPECT_TRUE(target("avx512").runs_on(target("avx512+bf16")));
  EXPECT_FALSE(target("avx512").runs_on(target("avx2")));
  EXPECT_FALSE(target("avx512+bf16").runs_on(target("avx512+vnni")));
  EXPECT_TRUE(target("avx2+vnni").runs_on(target("avx2+vnni")));
  EXPECT_FALSE(target("avx2+vnni").runs_on(target("avx512+vnni")));
  EXPECT_FALSE(target("avx512+amx").runs_on(target("avx512")));
  EXPECT_TRUE(target("avx512").runs_on(target("avx512+amx")));
}

}  // namespace
}  // namespace litz
