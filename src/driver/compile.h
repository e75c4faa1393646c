// The whole compiler: a graph and options in, an artifact on disk out.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "driver/device_target.h"
#include "driver/options.h"
#include "graph/graph.h"
#include "ir/program.h"
#include "runtime/backend_plugin.h"
#include "runtime/torch_host.h"
#include "support/error.h"
#include "toolchain/triton.h"

namespace litz {

// What the caller knows about this machine: where compilers may be, and the graph's device.
struct HostPaths {
  std::vector<std::string> zig_folders;    // places that may hold a folder `ziglang`
  std::vector<std::string> nvrtc_folders;  // places that may hold libnvrtc
  DeviceTarget device;
  // Where a graph of CPU tensors is to run, or NULL for the CPU.
  std::shared_ptr<BackendDevice> backend;
  TritonOptions triton;  // without a version where there is none
  // Seconds that a call of the library takes on the device (library_call.h); empty where nobody can
  // say. Only the caller copies it.
  std::function<Result<double>(const std::string&)> time_library_call;
  // The torch of this process, on whose threads kernels for a CPU are timed, and its version. NULL
  // where there is none.
  std::shared_ptr<TorchEnvironment> torch;
  std::string torch_version;
};

struct Compiled {
  // The shared library, loaded by runtime/loaded_artifact.h; empty where the graph is to be
  // interpreted.
  std::string path;
  // Whether its kernels are those of HostPaths::backend.
  bool on_backend = false;
  // JSON for reports: kernels, library_calls, fallbacks, buffers, not_fused, timings, source_path,
  // cached, interpreted, device, device_note.
  std::string info;
  // What the interpreter runs (driver/interpreted_graph.h), where `path` is empty.
  std::shared_ptr<const Program> program;
  // Why the graph cannot be compiled on this machine at all and is left to its framework; else
  // empty.
  std::string left_to_eager;
  // Things the user should know, each a sentence whose details follow a semicolon: no compiler, a
  // cache that cannot be used.
  std::vector<std::string> warnings;
};

// Throws UserError for what the user can change, InternalError for a fault in Litz; the latter
// names a reproducer that litz-opt reads.
Compiled compile_graph(const Graph& graph, const Options& options, const HostPaths& paths);

}  // namespace litz
