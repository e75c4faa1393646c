#include "driver/environment.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace litz {

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

std::vector<std::string> environment_names() {
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

std::string temporary_folder() {
  const std::optional<std::string> folder = environment_variable("TMPDIR");
  return folder && !folder->empty() ? *folder : "/tmp";
}

std::string default_cache_folder() {
  if (const auto xdg = environment_variable("XDG_CACHE_HOME"); xdg && !xdg->empty())
    return *xdg + "/litz";
  if (const auto home = environment_variable("HOME"); home && !home->empty())
    return *home + "/.cache/litz";
  return temporary_folder() + "/litz-" + std::to_string(getuid());
}

}  // namespace litz
