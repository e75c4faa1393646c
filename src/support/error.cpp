#include "support/error.h"

#include <cstring>

namespace litz {

void throw_internal(const char* condition, const char* file, int line, const std::string& message) {
  const char* base = std::strrchr(file, '/');
  throw InternalError("internal error at " + std::string(base ? base + 1 : file) + ":" +
                      std::to_string(line) + ": " + message + " [" + condition + "]");
}

}  // namespace litz
