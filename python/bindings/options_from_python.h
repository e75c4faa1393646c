#pragma once

#include <nanobind/nanobind.h>

#include "driver/options.h"

namespace litz {

// The options of a Python dictionary, over those of the environment, over the defaults. Throws
// UserError for a name or a value that is not valid.
Options options_from_python(const nanobind::dict& given);

}  // namespace litz
