// What an artifact holds as the kernels of a backend outside Litz (LitzDeviceCode::images, of which
// it is the only one): the backend's own image, and what Litz has to know to launch its kernels.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace litz {

struct BackendKernel {
  std::string name;
  // Its arguments in order: pointers, int64 numbers, and a pointer to where checks report.
  int32_t pointers = 0;
  int32_t integers = 0;
  bool checks_values = false;
  std::string place;  // in the graph, for messages
};

struct BackendImage {
  std::vector<BackendKernel> kernels;
  std::map<int32_t, std::string> failures;  // by LitzStatus: words that go on with the place
  std::string bytes;
};

std::string pack_backend_image(const BackendImage& image);
// Throws UserError where it is none.
BackendImage unpack_backend_image(std::string_view packed);

}  // namespace litz
