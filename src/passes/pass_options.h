// What the options of a compilation mean to the graph passes.
#pragma once

#include <cstdint>

namespace litz {

enum class LayoutOptimization : uint8_t { kOff, kOn, kAuto };

struct PassOptions {
  // Whether convolutions get channels-last operands: never, always, or where it pays.
  LayoutOptimization layout_optimization = LayoutOptimization::kAuto;
};

}  // namespace litz
