#include "prelude_harness.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>

namespace litz::testing {
namespace {

constexpr const char* kWarnings =
    " -Wall -Wextra -Werror -Wno-psabi -std=c++17 -O2 -ffp-contract=off -fPIC";

std::string default_compiler() {
  const char* cxx = getenv("CXX");
  return cxx != nullptr && *cxx != '\0' ? cxx : "c++";
}

// A fresh directory that lives as long as the object.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "litz-prelude-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
    path_ = pattern;
  }
  ~ScratchDirectory() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// The command's output; throws where it fails.
std::string run(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("popen " + command);
  std::string output;
  std::array<char, 4096> buffer;
  while (size_t count = fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.append(buffer.data(), count);
  }
  if (pclose(pipe) != 0) throw std::runtime_error(command + "\n" + output.substr(0, 4000));
  return output;
}

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace

PreludeTarget baseline_target() { return {}; }

PreludeTarget avx2_target() {
  return {.avx2 = true, .fma = true, .f16c = true, .avx512 = false, .vector_bytes = 32};
}

PreludeTarget avx512_target() {
  return {.avx2 = true, .fma = true, .f16c = true, .avx512 = true, .vector_bytes = 64};
}

std::vector<PreludeTarget> runnable_targets() {
  std::vector<PreludeTarget> targets{baseline_target()};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    targets.push_back(avx2_target());
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    targets.push_back(avx512_target());
  }
  return targets;
}

PreludeTarget host_target() { return runnable_targets().back(); }

std::string target_flags(const PreludeTarget& target) {
  std::string flags = "-march=x86-64";
  if (target.avx2) flags += " -mavx2";
  if (target.fma) flags += " -mfma";
  if (target.f16c) flags += " -mf16c";
  if (target.avx512) flags += " -mavx512f -mavx512bw -mavx512dq -mavx512vl";
  if (target.bf16_pairs) flags += " -mavx512bf16";
  return flags;
}

std::vector<std::string> installed_compilers() {
  std::vector<std::string> compilers;
  std::set<std::string> programs;
  for (const std::string& name : {default_compiler(), std::string("g++"), std::string("clang++")}) {
    const std::string program = run("readlink -f $(command -v " + name + ") || true");
    if (!program.empty() && programs.insert(program).second) compilers.push_back(name);
  }
  return compilers;
}

void check_compiles(const std::string& text, const PreludeTarget& target,
                    const std::string& compiler) {
  const ScratchDirectory scratch;
  write(scratch.file("k.cpp"), text);
  run(compiler + kWarnings + " " + target_flags(target) + " -c " + scratch.file("k.cpp") + " -o " +
      scratch.file("k.o"));
}

Library::Library(const std::string& text, const PreludeTarget& target) {
  const ScratchDirectory scratch;
  write(scratch.file("k.cpp"), text);
  run(default_compiler() + kWarnings + " " + target_flags(target) + " -shared " +
      scratch.file("k.cpp") + " -o " + scratch.file("k.so") + " -lm");
  handle_ = dlopen(scratch.file("k.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) throw std::runtime_error(dlerror());
}

Library::~Library() { dlclose(handle_); }

void* Library::symbol(const std::string& name) const {
  void* address = dlsym(handle_, name.c_str());
  if (address == nullptr) throw std::runtime_error("no symbol " + name);
  return address;
}

namespace {

// A loop over n elements: `body` maps the values x, y, z of the inputs to the result.
std::string map_kernel(Prelude& prelude, const std::string& name, DType from, DType to, int lanes,
                       int operands, const std::string& body) {
  const std::string in_size = std::to_string(size_of(from));
  const std::string out_size = std::to_string(size_of(to));
  const std::string step = std::to_string(lanes);
  const auto loads = [&](const std::string& load, const std::string& count) {
    std::string text;
    for (int i = 0; i < operands; ++i) {
      const std::string v(1, "xyz"[i]);
      text += "    const " + prelude.type(from, lanes) + " " + v + " = " + load +
              "((const char*)p" + v + " + i * " + in_size + count + ");\n";
    }
    return text;
  };
  std::string text = "\nextern \"C\" void " + name +
                     "(const void* px, const void* py, const void* pz, void* pr, i64 n) {\n"
                     "  (void)py;\n  (void)pz;\n  i64 i = 0;\n  for (; i + " +
                     step + " <= n; i += " + step + ") {\n";
  text += loads(prelude.load(from, lanes), "");
  text += "    " + prelude.store(to, lanes) + "((char*)pr + i * " + out_size + ", " + body +
          ");\n  }\n";
  if (lanes > 1) {
    text += "  if (i < n) {\n" + loads(prelude.load_tail(from, lanes), ", n - i");
    text += "    " + prelude.store_tail(to, lanes) + "((char*)pr + i * " + out_size + ", " + body +
            ", n - i);\n  }\n";
  }
  return text + "}\n";
}

}  // namespace

std::string add_map_kernel(Prelude& prelude, std::string& kernels, PreludeFn fn, DType dtype,
                           int lanes) {
  const std::string function = prelude.function(fn, dtype, lanes);
  const int operands = operand_count(fn);
  const std::string args = operands == 1 ? "x" : operands == 2 ? "x, y" : "x, y, z";
  const std::string name = "map_" + std::string(to_string(fn)) + "_" +
                           std::string(to_string(dtype)) + "_" + std::to_string(lanes);
  kernels += map_kernel(prelude, name, dtype, dtype, lanes, operands, function + "(" + args + ")");
  return name;
}

std::string add_convert_kernel(Prelude& prelude, std::string& kernels, DType from, DType to,
                               int lanes) {
  const std::string name = "map_" + std::string(to_string(from)) + "_" +
                           std::string(to_string(to)) + "_" + std::to_string(lanes);
  kernels +=
      map_kernel(prelude, name, from, to, lanes, 1, prelude.convert(from, to, lanes) + "(x)");
  return name;
}

}  // namespace litz::testing
