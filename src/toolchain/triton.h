// Triton's compiler: a module of Triton kernels in, device code out, by processes of their own.
//
// Triton is a Python package, so a Python program that comes with Litz
// (python/litz/triton_worker.py) does the work. It is started when the first kernels are to be
// compiled, stays for the next ones, compiles several at once and ends with this process. One that
// crashes is started again; one that does not answer in time is ended with everything it has
// started, and not asked again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/error.h"
#include "toolchain/process.h"

namespace litz {

struct TritonOptions {
  std::string python;   // path of the interpreter that imports Triton
  std::string worker;   // path of triton_worker.py
  std::string version;  // of Triton, as its package says; what code is cached under
};

// Copies share the process. Safe to use from any thread; one graph's kernels are compiled at a
// time.
class TritonCompiler {
 public:
  explicit TritonCompiler(TritonOptions options);

  struct Function {
    std::string name;
    std::vector<std::string> signature;  // types of its arguments: "*fp32", "i64"
    std::vector<int> aligned;            // arguments that are multiples of 16
    int warps = 4;
    int stages = 1;
    bool checks = false;  // its assertions stay
  };
  struct Image {
    std::string cubin;
    int64_t shared_bytes = 0;
    int threads = 0;
    int added_arguments = 0;  // pointers that Triton wants behind the function's own arguments
    std::string fault;        // why there is no code; empty where there is
  };

  // Starts the process, without waiting for it, so that it is ready when it is needed.
  void start();

  // Device code for functions of one module, in their order. `arch` is that of a device, "sm_90".
  // The reason of a failure is a sentence without an end.
  Result<std::vector<Image>> compile(const std::string& source,
                                     const std::vector<Function>& functions,
                                     const std::string& arch, int jobs, Deadline deadline);
  // The same where some may fail, each of which has its fault.
  Result<std::vector<Image>> compile_each(const std::string& source,
                                          const std::vector<Function>& functions,
                                          const std::string& arch, int jobs, Deadline deadline);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace litz
