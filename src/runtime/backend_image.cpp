#include "runtime/backend_image.h"

#include <algorithm>
#include <sstream>

#include "support/error.h"

namespace litz {
namespace {

constexpr std::string_view kMagic = "litz backend image 1";

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// The rest of the line behind the fields before it.
std::string rest_of_line(std::istringstream& line) {
  line.get();
  std::string rest;
  std::getline(line, rest);
  return rest;
}

}  // namespace

std::string pack_backend_image(const BackendImage& image) {
  std::string text = std::string(kMagic) + "\n";
  for (const BackendKernel& kernel : image.kernels) {
    text += "kernel " + kernel.name + " " + std::to_string(kernel.pointers) + " " +
            std::to_string(kernel.integers) + " " + (kernel.checks_values ? "1 " : "0 ") +
            one_line(kernel.place) + "\n";
  }
  for (const auto& [status, words] : image.failures)
    text += "failure " + std::to_string(status) + " " + one_line(words) + "\n";
  return text + "end\n" + image.bytes;
}

BackendImage unpack_backend_image(std::string_view packed) {
  BackendImage image;
  bool begun = false;
  while (true) {
    const size_t end = packed.find('\n');
    if (end == packed.npos) throw UserError("the kernels of the graph are damaged");
    std::istringstream line{std::string(packed.substr(0, end))};
    packed.remove_prefix(end + 1);
    if (!begun) {
      if (line.str() != kMagic) throw UserError("the kernels of the graph are for another Litz");
      begun = true;
      continue;
    }
    std::string kind;
    line >> kind;
    if (kind == "end") break;
    if (kind == "kernel") {
      BackendKernel kernel;
      line >> kernel.name >> kernel.pointers >> kernel.integers >> kernel.checks_values;
      kernel.place = rest_of_line(line);
      image.kernels.push_back(std::move(kernel));
    } else {
      int32_t status = 0;
      line >> status;
      image.failures[status] = rest_of_line(line);
    }
  }
  image.bytes = packed;
  return image;
}

}  // namespace litz
