#include "driver/trace.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace litz {

Trace::Trace(const std::string& folder) {
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  for (int i = 0; !error; ++i) {
    const std::string own = folder + "/graph" + std::to_string(i);
    if (std::filesystem::create_directory(own, error)) {
      folder_ = own;
      return;
    }
  }
  fault_ = folder + ": " + error.message();
}

void Trace::write(std::string_view name, std::string_view text) {
  if (folder_.empty()) return;
  char number[16];
  std::snprintf(number, sizeof number, "%02d_", next_++);
  std::ofstream(folder_ + "/" + number + std::string(name), std::ios::binary) << text;
}

}  // namespace litz
