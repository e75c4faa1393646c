// The one place that reads the process's environment.
#pragma once

#include <optional>
#include <string>

namespace litz {

std::optional<std::string> environment_variable(const std::string& name);

// $XDG_CACHE_HOME/litz or ~/.cache/litz; a folder of the user's in /tmp where there is no home.
std::string default_cache_folder();

// Where a build may write when the cache cannot be used.
std::string temporary_folder();

}  // namespace litz
