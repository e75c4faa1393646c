#include "support/version.h"

#include "litz/version.h"

namespace litz {

std::string_view version() { return LITZ_VERSION_TEXT; }

}  // namespace litz

extern "C" const char* litz_version(void) { return LITZ_VERSION_TEXT; }
