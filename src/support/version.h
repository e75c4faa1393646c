// The version of Litz, as written in the top CMakeLists.txt.
#pragma once

#include <string_view>

namespace litz {

// "major.minor.patch", in static storage and zero-terminated.
std::string_view version();

}  // namespace litz
