// The one place that reads the process's environment.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace litz {

std::optional<std::string> environment_variable(const std::string& name);

// Of all variables that are set.
std::vector<std::string> environment_names();

// $XDG_CACHE_HOME/litz or ~/.cache/litz; a folder of the user's in /tmp where there is no home.
std::string default_cache_folder();

// Where a build may write when the cache cannot be used.
std::string temporary_folder();

}  // namespace litz
