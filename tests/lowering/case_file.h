// Reads the files of tests/lowering/cases, which generate_cases.py writes: graphs, and what eager
// gave for the pattern of inputs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace litz {

struct ExpectedResult {
  bool is_exact = false;
  std::string dtype;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  std::vector<uint8_t> bytes;
};

struct LoweringCase {
  std::string name;
  std::string graph;
  std::vector<ExpectedResult> results;
  bool uses_library = false;
};

std::vector<LoweringCase> read_cases(const std::filesystem::path& path);

}  // namespace litz
