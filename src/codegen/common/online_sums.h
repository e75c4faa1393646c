// Sums of exp(x - m), m the greatest x, in the pass over the row that finds m.
//
// A softmax reads its row for the maximum, again for the sum, and again for the result. The sum can
// go along with the maximum: it is kept relative to the greatest value so far, and scaled whenever
// that grows (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018). That pays
// where a row does not stay in registers.
//
// The accumulator is a pair: the sum s, and the greatest value g, which starts as the lowest finite
// number. So an infinite x is no special case until the end: exp(-inf - g) adds 0, and a row that
// is all -inf, or has a +inf, shows by its maximum.
//
//   add x     t = exp(-|x - g|);  s = x > g ? s * t + 1 : s + t;  g = max(g, x)
//   merge     m = max(g, h);  s = s * exp(g - m) + t * exp(h - m)
//   at last   see OnlineSum
#pragma once

#include <optional>

#include "schedule/plan.h"

namespace litz {

// The kernel with all such sums moved to the stages of their maxima, where that saves a pass.
// Nothing where it saves none.
std::optional<Kernel> with_online_sums(const Kernel& kernel);

// What g starts as.
double lowest_finite(DType dtype);

}  // namespace litz
