// Builds kernels from a prelude with the system's C++ compiler and loads them, for the prelude's
// tests. The compiler is $CXX, or else c++.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/cpp/prelude.h"

namespace litz::testing {

PreludeTarget baseline_target();
PreludeTarget avx2_target();
PreludeTarget avx512_target();
// The widest of the three that this machine runs.
PreludeTarget host_target();
// Those of the first two that this machine runs.
std::vector<PreludeTarget> runnable_targets();

// Compiler flags that a kernel for this target is built with.
std::string target_flags(const PreludeTarget& target);

// The default compiler, and g++ and clang++ where they are on the PATH.
std::vector<std::string> installed_compilers();

// Compiles the text and throws std::runtime_error with the compiler's messages on any error or
// warning.
void check_compiles(const std::string& text, const PreludeTarget& target,
                    const std::string& compiler);

// A loaded shared library, deleted from disk at once.
class Library {
 public:
  Library(const std::string& text, const PreludeTarget& target);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  template <class Function>
  Function* find(const std::string& name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

 private:
  void* symbol(const std::string& name) const;
  void* handle_;
};

// void(const void* x, const void* y, const void* z, void* r, int64_t n): r = fn(x[, y[, z]]) over n
// elements, vectors of `lanes` and a masked tail.
using MapKernel = void(const void*, const void*, const void*, void*, int64_t);
std::string add_map_kernel(Prelude& prelude, std::string& kernels, PreludeFn fn, DType dtype,
                           int lanes);
// The same for a conversion.
std::string add_convert_kernel(Prelude& prelude, std::string& kernels, DType from, DType to,
                               int lanes);

}  // namespace litz::testing
