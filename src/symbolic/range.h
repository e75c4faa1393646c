// Interval arithmetic over int64 in which the extreme values stand for "unbounded". Every function
// returns an interval that contains the results for all operands in the given intervals.
#pragma once

#include "symbolic/index.h"

namespace litz {

inline constexpr ValueRange kUnbounded = {ValueRange::kMin, ValueRange::kMax};

ValueRange add_ranges(ValueRange a, ValueRange b);
ValueRange multiply_ranges(ValueRange a, ValueRange b);
ValueRange scale_range(ValueRange a, int64_t factor);

// The divisor is taken to be at least 1, whatever its interval says.
ValueRange floor_div_range(ValueRange a, ValueRange b);
ValueRange mod_range(ValueRange a, ValueRange b);

ValueRange min_range(ValueRange a, ValueRange b);
ValueRange max_range(ValueRange a, ValueRange b);

// Division of int64 that rounds down, and its remainder in [0, b); b > 0.
inline int64_t floor_div_int(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
inline int64_t mod_int(int64_t a, int64_t b) {
  const int64_t r = a % b;
  return r < 0 ? r + b : r;
}

}  // namespace litz
