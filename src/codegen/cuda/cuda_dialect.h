// CUDA C++ for devices.
#pragma once

#include "codegen/simt/simt_dialect.h"

namespace litz {

const SimtDialect& cuda_dialect();

}  // namespace litz
