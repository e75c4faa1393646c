#include "toolchain/host_compiler.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "scratch.h"
#include "support/file.h"

namespace litz {
namespace {

constexpr const char* kSystemPath = "/usr/local/bin:/usr/bin:/bin";

constexpr const char* kAddSource = R"(
extern "C" float powf(float, float);
extern "C" __attribute__((visibility("default"))) float add(float a, float b) {
  return a + b + powf(a, 0);
}
)";

class HostCompilerTest : public ScratchTest {
 protected:
  Result<HostCompiler> find(const std::string& compiler,
                            const std::string& search_path = kSystemPath,
                            std::vector<std::string> zig_folders = {}) {
    return HostCompiler::find({compiler, search_path, std::move(zig_folders)}, versions_);
  }

  SharedLibraryJob job(std::vector<SourceUnit> units) const {
    SharedLibraryJob job;
    job.units = std::move(units);
    job.output_path = path("out.so");
    job.work_folder = path("work");
    job.jobs = 2;
    job.time_limit_seconds = 60;
    return job;
  }

  // Builds `kAddSource` with a script in the place of the compiler.
  BuildResult build_with(const std::string& script, double time_limit_seconds = 30) {
    Result<HostCompiler> compiler = find(write_compiler("bin/g++", script));
    EXPECT_TRUE(compiler) << compiler.reason();
    SharedLibraryJob small = job({{"unit.cpp", kAddSource}});
    small.time_limit_seconds = time_limit_seconds;
    return compiler->build(small);
  }

  void expect_nothing_left() const {
    EXPECT_FALSE(std::filesystem::exists(path("out.so")));
    EXPECT_TRUE(!std::filesystem::exists(path("work")) || std::filesystem::is_empty(path("work")));
  }

  CompilerVersions versions_;
};

float call_add(const std::string& library) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    ADD_FAILURE() << ::dlerror();
    return 0;
  }
  auto add = reinterpret_cast<float (*)(float, float)>(::dlsym(handle, "add"));
  float sum = add ? add(2, 3) : 0;
  ::dlclose(handle);
  return sum;
}

class RealCompilerTest : public HostCompilerTest,
                         public ::testing::WithParamInterface<const char*> {};

// Every compiler that this machine has, and the zig that LITZ_TEST_ZIG names. The test suite needs
// a compiler to exist at all.
std::vector<const char*> installed_compilers() {
  std::vector<const char*> installed;
  for (const char* name : {"g++", "clang++"}) {
    if (!find_program(name, kSystemPath).empty()) installed.push_back(name);
  }
  if (const char* zig = ::getenv("LITZ_TEST_ZIG")) installed.push_back(zig);
  return installed;
}

TEST_P(RealCompilerTest, BuildsALibraryThatLoadsAndRuns) {
  Result<HostCompiler> compiler = find(GetParam());
  ASSERT_TRUE(compiler) << compiler.reason();
  BuildResult result = compiler->build(job({{"unit.cpp", kAddSource}}));
  ASSERT_TRUE(result.ok()) << result.log;
  EXPECT_EQ(result.log, "");
  EXPECT_FALSE(result.linked_by_driver);
  EXPECT_EQ(result.units.size(), 1u);
  EXPECT_GT(result.units[0].seconds, 0);
  EXPECT_EQ(call_add(path("out.so")), 6.0f);
  EXPECT_TRUE(std::filesystem::is_empty(path("work")));
}

TEST_P(RealCompilerTest, ProfilersSeeTheNamesOfFunctions) {
  Result<HostCompiler> compiler = find(GetParam());
  ASSERT_TRUE(compiler) << compiler.reason();
  BuildResult result = compiler->build(
      job({{"unit.cpp",
            "__attribute__((noinline)) static float litz_relu_k0(float x) {\n"
            "  return x < 0 ? 0 : x;\n}\n"
            "extern \"C\" __attribute__((visibility(\"default\"))) float add(float a, "
            "float b) {\n  return litz_relu_k0(a) + litz_relu_k0(b);\n}\n"}}));
  ASSERT_TRUE(result.ok()) << result.log;
  EXPECT_EQ(call_add(path("out.so")), 5.0f);
  std::ifstream file(path("out.so"), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_NE(bytes.find("litz_relu_k0"), std::string::npos);
}

TEST_P(RealCompilerTest, UnitsAreLinkedTogether) {
  Result<HostCompiler> compiler = find(GetParam());
  ASSERT_TRUE(compiler) << compiler.reason();
  BuildResult result = compiler->build(
      job({{"a.cpp", "float twice(float x) { return x + x; }"},
           {"b.cpp",
            "float twice(float x);\n"
            "extern \"C\" __attribute__((visibility(\"default\"))) float add(float a, float b) {\n"
            "  return twice(a) + b;\n}\n"}}));
  ASSERT_TRUE(result.ok()) << result.log;
  EXPECT_EQ(call_add(path("out.so")), 7.0f);
}

// 128-bit division is a function of the compiler's support library, which only the driver knows.
TEST_P(RealCompilerTest, CodeThatNeedsTheSupportLibraryIsLinkedByTheDriver) {
  Result<HostCompiler> compiler = find(GetParam());
  ASSERT_TRUE(compiler) << compiler.reason();
  BuildResult result = compiler->build(
      job({{"unit.cpp",
            "extern \"C\" __attribute__((visibility(\"default\"))) float add(float a, float b) {\n"
            "  return (float)((__int128)(a * 35) / (__int128)b);\n}\n"}}));
  ASSERT_TRUE(result.ok()) << result.log;
  EXPECT_TRUE(result.linked_by_driver);
  EXPECT_EQ(call_add(path("out.so")), 23.0f);
}

TEST_P(RealCompilerTest, EqualInputGivesEqualBytesWhereverItIsBuilt) {
  Result<HostCompiler> compiler = find(GetParam());
  ASSERT_TRUE(compiler) << compiler.reason();
  std::string source = std::string(
                           "namespace { struct Hidden { virtual int f() { return 1; } }; }\n"
                           "int g() { Hidden h; return h.f(); }\n") +
                       kAddSource;
  SharedLibraryJob first = job({{"unit.cpp", source}});
  SharedLibraryJob second = first;
  second.work_folder = path("some/other/folder");
  second.output_path = path("second.so");
  BuildResult first_result = compiler->build(first);
  BuildResult second_result = compiler->build(second);
  ASSERT_TRUE(first_result.ok()) << first_result.log;
  ASSERT_TRUE(second_result.ok()) << second_result.log;
  EXPECT_TRUE(*read_file(first.output_path) == *read_file(second.output_path));
  EXPECT_EQ(read_file(first.output_path)->find(scratch_), std::string::npos);
}

TEST_P(RealCompilerTest, EveryTargetCompiles) {
  Result<HostCompiler> compiler = find(GetParam());
  ASSERT_TRUE(compiler) << compiler.reason();
  for (const char* text : {"baseline", "avx2+vnni", "avx512+bf16+vnni", "avx512+bf16+vnni+amx"}) {
    SharedLibraryJob for_target = job({{"unit.cpp", kAddSource}});
    for_target.target = *CpuTarget::parse(text);
    BuildResult result = compiler->build(for_target);
    EXPECT_TRUE(result.ok()) << text << "\n" << result.log;
  }
}

TEST_P(RealCompilerTest, ARejectedSourceLeavesTheCompilersWords) {
  Result<HostCompiler> compiler = find(GetParam());
  ASSERT_TRUE(compiler) << compiler.reason();
  BuildResult result = compiler->build(job({{"unit.cpp", "int f() { return nonsense; }\n"}}));
  EXPECT_EQ(result.status, BuildStatus::kCompilerFailed);
  EXPECT_NE(result.log.find("unit.cpp:1:"), std::string::npos) << result.log;
  EXPECT_NE(result.log.find("nonsense"), std::string::npos);
  EXPECT_NE(result.log.find("exited with code 1 while compiling unit.cpp"), std::string::npos);
  expect_nothing_left();
}

TEST_P(RealCompilerTest, AnUndefinedFunctionIsALinkFailure) {
  Result<HostCompiler> compiler = find(GetParam());
  ASSERT_TRUE(compiler) << compiler.reason();
  BuildResult result =
      compiler->build(job({{"unit.cpp", "int missing(); int g() { return missing(); }\n"}}));
  EXPECT_EQ(result.status, BuildStatus::kLinkFailed);
  EXPECT_NE(result.log.find("missing"), std::string::npos) << result.log;
  expect_nothing_left();
}

// A contracted a*b+c rounds once: 0x1.000002p0 squared minus its own rounding is then not zero.
TEST_P(RealCompilerTest, ContractionIsOffUnlessAskedFor) {
  if (CpuTarget::detect().isa == CpuTarget::Isa::kBaseline128) return;  // has no fused multiply-add
  Result<HostCompiler> compiler = find(GetParam());
  ASSERT_TRUE(compiler) << compiler.reason();
  SharedLibraryJob plain =
      job({{"unit.cpp",
            "extern \"C\" __attribute__((visibility(\"default\"))) float add(float a, float b) {\n"
            "  float x = a * 0.5f + 0x1p-23f, y = b - 2 + 0x1p-23f;\n"
            "  return x * y - 0x1.000004p0f;\n}\n"}});
  plain.target = *CpuTarget::parse("avx2");
  SharedLibraryJob contracted = plain;
  contracted.fp_contract = true;
  contracted.output_path = path("contracted.so");
  ASSERT_TRUE(compiler->build(plain).ok());
  ASSERT_TRUE(compiler->build(contracted).ok());
  EXPECT_EQ(call_add(plain.output_path), 0.0f);
  EXPECT_NE(call_add(contracted.output_path), 0.0f);
}

INSTANTIATE_TEST_SUITE_P(Installed, RealCompilerTest, ::testing::ValuesIn(installed_compilers()));

TEST_F(HostCompilerTest, IdentityHoldsNoPath) {
  ASSERT_FALSE(installed_compilers().empty());
  for (const char* name : installed_compilers()) {
    Result<HostCompiler> compiler = find(name);
    ASSERT_TRUE(compiler) << compiler.reason();
    std::string text = compiler->identity().text();
    EXPECT_EQ(text.find('/'), std::string::npos) << text;
    EXPECT_NE(text.find('.'), std::string::npos) << text;
  }
}

TEST_F(HostCompilerTest, TheVersionIsAskedOnceUntilTheProgramChanges) {
  std::string asked = path("asked");
  std::string program =
      write_script("bin/g++", "echo x >> " + asked +
                                  "; echo 'g++ 1.0'; echo 'see the source for copying conditions'");
  ASSERT_TRUE(find(program));
  ASSERT_TRUE(find(program));
  EXPECT_EQ(*read_file(asked), "x\n");
  write_script("bin/g++", "echo x >> " + asked +
                              "; echo 'g++ 22.0'; echo 'see the source for copying conditions'");
  EXPECT_EQ(find(program)->identity().text(), "gcc 22.0");
  EXPECT_EQ(*read_file(asked), "x\nx\n");
}

TEST_F(HostCompilerTest, PrefersGccThenClangThenZig) {
  write_script("zig/ziglang/zig", "echo 0.99.1");
  std::vector<std::string> zig = {path("elsewhere"), path("zig")};
  EXPECT_EQ(find("", path("bin"), zig)->identity().text(), "zig 0.99.1");
  write_script("bin/clang++", "echo 'clang version 99.0'");
  EXPECT_EQ(find("", path("bin"), zig)->identity().text(), "clang version 99.0");
  write_compiler("bin/g++", "");
  EXPECT_EQ(find("", path("bin"), zig)->identity().text(), "gcc (Script) 1.0");
}

TEST_F(HostCompilerTest, ABrokenCompilerIsPassedOver) {
  write_script("bin/g++", "exit 127");
  write_script("bin/clang++", "echo 'clang version 99.0'");
  EXPECT_EQ(find("", path("bin"))->path(), path("bin/clang++"));
}

TEST_F(HostCompilerTest, NoCompilerIsAReason) {
  Result<HostCompiler> none = find("", path("bin"));
  ASSERT_FALSE(none);
  EXPECT_NE(none.reason().find("no C++ compiler was found"), std::string::npos);

  write_script("bin/g++", "exit 127");
  Result<HostCompiler> broken = find("", path("bin"));
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.reason().find("bin/g++ exited with code 127"), std::string::npos);
}

TEST_F(HostCompilerTest, ANamedCompilerIsNotReplaced) {
  Result<HostCompiler> missing = find("no-such-compiler");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.reason().find("'no-such-compiler'"), std::string::npos);
  Result<HostCompiler> other = find("/bin/true");
  ASSERT_FALSE(other);
  EXPECT_NE(other.reason().find("neither g++ nor clang++"), std::string::npos);
}

TEST_F(HostCompilerTest, RelativeSearchPathsAreNotUsed) {
  write_compiler("g++", "");
  std::filesystem::path previous = std::filesystem::current_path();
  std::filesystem::current_path(scratch_);
  EXPECT_EQ(find_program("g++", ":.:"), "");
  std::filesystem::current_path(previous);
}

TEST_F(HostCompilerTest, AHangingCompilerIsKilled) {
  BuildResult result = build_with("sleep 600", 1);
  EXPECT_EQ(result.status, BuildStatus::kTimeout);
  EXPECT_GE(result.total_seconds, 1);
  EXPECT_LT(result.total_seconds, 10);
  expect_nothing_left();
}

TEST_F(HostCompilerTest, ACrashingCompilerIsReported) {
  BuildResult result = build_with("echo 'internal compiler error'; kill -SEGV $$");
  EXPECT_EQ(result.status, BuildStatus::kKilled);
  EXPECT_NE(result.log.find("internal compiler error"), std::string::npos);
  EXPECT_NE(result.log.find("was killed by signal 11 while compiling unit.cpp"), std::string::npos);
  expect_nothing_left();
}

TEST_F(HostCompilerTest, AFaultOfTheCompilerIsGoneAroundAtALowerLevel) {
  const std::string real = find_program(installed_compilers().front(), kSystemPath);
  BuildResult result = build_with(
      "case \"$*\" in *-Og*) ;; *) echo 'unit.cpp:1: internal compiler error: in f'; exit 1;; "
      "esac\n"
      "PATH=" +
      std::string(kSystemPath) + " exec " + real + " \"$@\"");
  ASSERT_TRUE(result.ok()) << result.log;
  EXPECT_NE(result.log.find("again with -Og"), std::string::npos);
  EXPECT_EQ(call_add(path("out.so")), 6.0f);
}

TEST_F(HostCompilerTest, ATalkativeCompilerFillsNoMemory) {
  BuildResult result = build_with("head -c 10000000 /dev/zero | tr '\\0' x; exit 1");
  EXPECT_EQ(result.status, BuildStatus::kCompilerFailed);
  EXPECT_LT(result.log.size(), kMaxProcessLog + 1000);
  EXPECT_NE(result.log.find("bytes of output dropped"), std::string::npos);
}

TEST_F(HostCompilerTest, ACompilerThatMakesNothingIsALinkFailure) {
  BuildResult result = build_with("exit 0");
  EXPECT_NE(result.status, BuildStatus::kOk);
  expect_nothing_left();
}

TEST_F(HostCompilerTest, ACompilerThatHasGoneIsReported) {
  Result<HostCompiler> compiler = find(write_compiler("bin/g++", ""));
  ASSERT_TRUE(compiler);
  std::filesystem::remove(path("bin/g++"));
  EXPECT_EQ(compiler->build(job({{"unit.cpp", kAddSource}})).status, BuildStatus::kNotFound);
}

TEST_F(HostCompilerTest, WithoutALinkerTheDriverLinks) {
  // A folder that holds a compiler and nothing else, as the search path. The script gives the real
  // compiler the path back, since it needs an assembler and a linker of its own.
  std::string real = find_program(installed_compilers().front(), kSystemPath);
  write_script("bin/g++", "PATH=" + std::string(kSystemPath) + " exec " + real + " \"$@\"");
  Result<HostCompiler> compiler = find("", path("bin"));
  ASSERT_TRUE(compiler) << compiler.reason();
  BuildResult result = compiler->build(job({{"unit.cpp", kAddSource}}));
  ASSERT_TRUE(result.ok()) << result.log;
  EXPECT_TRUE(result.linked_by_driver);
  EXPECT_EQ(call_add(path("out.so")), 6.0f);
}

TEST_F(HostCompilerTest, ABrokenLinkerIsGoneAround) {
  std::string real = find_program(installed_compilers().front(), kSystemPath);
  write_script("bin/g++", "PATH=" + std::string(kSystemPath) + " exec " + real + " \"$@\"");
  write_script("bin/ld.bfd", "echo 'bad linker'; exit 1");
  Result<HostCompiler> compiler = find("", path("bin"));
  ASSERT_TRUE(compiler) << compiler.reason();
  BuildResult result = compiler->build(job({{"unit.cpp", kAddSource}}));
  ASSERT_TRUE(result.ok()) << result.log;
  EXPECT_TRUE(result.linked_by_driver);
  EXPECT_NE(result.log.find("bad linker"), std::string::npos);
}

TEST_F(HostCompilerTest, AnUnusableWorkFolderIsReported) {
  std::ofstream(path("work")) << "a file where the folder should be";
  Result<HostCompiler> compiler = find(write_compiler("bin/g++", ""));
  ASSERT_TRUE(compiler);
  BuildResult result = compiler->build(job({{"unit.cpp", kAddSource}}));
  EXPECT_EQ(result.status, BuildStatus::kFileError);
  EXPECT_NE(result.log.find("Not a directory"), std::string::npos) << result.log;
}

TEST_F(HostCompilerTest, AnUnusableOutputIsReported) {
  Result<HostCompiler> compiler = find(installed_compilers().front());
  ASSERT_TRUE(compiler);
  SharedLibraryJob nowhere = job({{"unit.cpp", kAddSource}});
  nowhere.output_path = path("no/such/folder/out.so");
  BuildResult result = compiler->build(nowhere);
  EXPECT_EQ(result.status, BuildStatus::kFileError);
  EXPECT_NE(result.log.find("No such file"), std::string::npos) << result.log;
}

TEST_F(HostCompilerTest, AFullDiskIsReported) {
  // A limit on file size in a child process stands in for a full disk.
  Result<HostCompiler> compiler = find(write_compiler("bin/g++", ""));
  ASSERT_TRUE(compiler);
  auto build_without_space = [&] {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit none{10, 10};
    bool limited = ::setrlimit(RLIMIT_FSIZE, &none) == 0;
    BuildResult result = compiler->build(job({{"unit.cpp", kAddSource}}));
    ::_exit(limited && result.status == BuildStatus::kFileError ? 0 : 1);
  };
  EXPECT_EXIT(build_without_space(), ::testing::ExitedWithCode(0), "");
  expect_nothing_left();
}

TEST_F(HostCompilerTest, UnitNamesCannotLeaveTheWorkFolder) {
  Result<HostCompiler> compiler = find(write_compiler("bin/g++", ""));
  ASSERT_TRUE(compiler);
  for (const char* name : {"", "../unit.cpp", "/tmp/unit.cpp", "-o", ".hidden", "a b.cpp"}) {
    EXPECT_THROW(compiler->build(job({{name, ""}})), InternalError) << name;
  }
  EXPECT_THROW(compiler->build(job({{"a.cpp", ""}, {"a.cpp", ""}})), InternalError);
  EXPECT_THROW(compiler->build(job({})), InternalError);
}

}  // namespace
}  // namespace litz
