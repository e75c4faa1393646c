#include "case_file.h"

#include <fstream>
#include <sstream>

namespace litz {
namespace {

std::vector<uint8_t> parse_hex(const std::string& text) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

// The numbers between `key` and the following "]".
std::vector<int64_t> list_after(const std::string& line, const std::string& key) {
  const size_t start = line.find(key + " [") + key.size() + 2;
  std::istringstream text(line.substr(start, line.find(']', start) - start));
  std::vector<int64_t> numbers;
  for (std::string number; std::getline(text, number, ',');) numbers.push_back(std::stoll(number));
  return numbers;
}

}  // namespace

std::vector<LoweringCase> read_cases(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<LoweringCase> cases;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("case ")) {
      cases.push_back({line.substr(5), {}, {}, false});
    } else if (line.starts_with("expect ")) {
      std::istringstream words(line);
      std::string word;
      ExpectedResult expected;
      words >> word >> word >> expected.dtype;
      expected.is_exact = word == "exact";
      expected.sizes = list_after(line, "sizes");
      expected.strides = list_after(line, "strides");
      expected.bytes = parse_hex(line.substr(line.find("data ") + 5));
      cases.back().results.push_back(std::move(expected));
    } else if (line == "library") {
      cases.back().uses_library = true;
    } else if (line != "compiled") {
      cases.back().graph += line + "\n";
    }
  }
  return cases;
}

}  // namespace litz
