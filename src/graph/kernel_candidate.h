#pragma once

#include <string>

namespace litz {

// A matrix product, convolution or attention that may be a kernel of the dialect's own.
struct KernelCandidate {
  std::string key;  // what it is and what reads it: those of one key are alike
  std::string node;
  double operations = 0;
  bool is_kernel = false;  // else the library's call
};

}  // namespace litz
