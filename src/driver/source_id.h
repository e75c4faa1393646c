// Which compiler this is, for cache keys.
#pragma once

#include <string_view>

namespace litz {

// A hash of the sources that this compiler was built from (cmake/LitzSourceId.cmake): a changed
// compiler never takes what another one left in the cache. Equal for equal sources, wherever and
// however they were built.
std::string_view source_id();

}  // namespace litz
