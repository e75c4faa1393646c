// NVIDIA's run-time compiler: CUDA C++ source text in, device code out, inside this process.
//
// Litz is built without CUDA. The library is opened when the first graph for a CUDA device is
// compiled: the one that this process holds already (PyTorch loads its own), one on the system's
// library path, or one in a folder that the caller names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/error.h"

namespace litz {

struct NvrtcOptions {
  std::vector<std::string> folders;  // absolute folders that may hold libnvrtc
};

// Copies share the library, which stays open until the process ends. Safe to use from any thread.
class Nvrtc {
 public:
  // The reason of a failure says what to install.
  static Result<Nvrtc> find(const NvrtcOptions& options);

  struct Image {
    std::string cubin;  // empty where the compiler rejected the source
    std::string log;    // what the compiler said; on failure ends in a line that says what failed
    bool ok = false;
  };

  // Compiles one source, which diagnostics call `name`. `arch` is that of a device, "sm_90"; a
  // virtual one ("compute_90") gives no device code and is refused. `extra` are further options,
  // last on the command line: "--fmad=false".
  Image compile(const std::string& source, const std::string& name, const std::string& arch,
                const std::vector<std::string>& extra) const;

  // The same for several at once, in a thread each.
  std::vector<Image> compile_all(const std::vector<std::string>& sources, const std::string& name,
                                 const std::string& arch,
                                 const std::vector<std::string>& extra) const;

  // What of the compiler may shape its code; holds no path: "nvrtc 13.0".
  std::string version() const;
  // The architectures that it compiles for, as numbers: 75, 80, 90.
  std::vector<int> architectures() const;

 private:
  struct Functions;
  explicit Nvrtc(std::shared_ptr<const Functions> functions) : functions_(std::move(functions)) {}
  static Result<Nvrtc> from_library(void* library, const std::string& name);

  std::shared_ptr<const Functions> functions_;
};

}  // namespace litz
