// The device that a graph is compiled for.
#pragma once

#include <cstdint>
#include <string>

namespace litz {

struct DeviceTarget {
  std::string kind = "cpu";     // "cpu" or "cuda"
  std::string arch;             // of a CUDA device, as NVRTC names it: "sm_90"
  int32_t multiprocessors = 0;  // of a CUDA device
  std::string name;             // of a CUDA device: "NVIDIA H200"
  int32_t number = 0;           // "cuda:0"
  bool loads_tiles = false;     // Triton has tensor descriptors, and the device what they become

  bool is_cpu() const { return kind == "cpu"; }
};

}  // namespace litz
