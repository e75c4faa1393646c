// The functions around the body of a kernel: one that takes the body over a range of items, one
// that hands it to the host's threads.
#pragma once

#include <string>
#include <vector>

#include "codegen/cpp/cpp_body.h"
#include "codegen/cpp/cpp_kernel.h"

namespace litz {

struct CppFunction {
  std::string body;   // statements over the items [begin, end)
  std::string total;  // how many items there are
  std::string grain;  // ... and the fewest that are worth a thread
  bool sequential = false;
  // Of what the body needs beside the kernel's arguments: members of the state that it is given,
  // the lines that read them from it, called s, and those that set them. Each without its
  // semicolon.
  std::vector<std::string> members;
  std::vector<std::string> unpacks;
  std::vector<std::string> starts;
  std::string finish;  // statements after the last item
};

CppKernel print_cpp_function(const KernelArguments& arguments, const CppFunction& function);

// Stores outside the inner loops for positions v up to `to` of the loop, of which there are
// `extent` in all, in vectors. What is long is printed once for whole vectors and the rest.
void store_vectors(CppBody& body, KernelAnalysis& analysis, size_t loop, int lanes, int64_t extent);

}  // namespace litz
