// Sums that wait for a result of the row, in the pass over the row that finds it: those of exp(x -
// m), m the greatest x, and those of (x - m)^2, m the mean of the x.
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
//
// Deviations are summed up from a value near the mean: each lane, with n elements, takes its first
// one, low, and has the sums d of x - low and q of (x - low)^2. Then its sum is n low + d, its mean
// low + d / n, its sum of squared deviations from that q - d^2 / n; parts with n_i elements, sums
// s_i and squares q_i together have the sum s of the s_i and that of q_i + n_i (s_i / n_i - s /
// n)^2 (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
// variances", 1979). The mean of n elements is no further from one of them than sqrt(n - 1)
// standard deviations, so that no more than a factor of n is lost, whatever the elements.
#pragma once

#include <optional>

#include "schedule/plan.h"

namespace litz {

// The kernel with all such sums moved to the stages of what they wait for, where that saves a pass;
// those of deviations only where the dialect has them. Nothing where it saves none.
std::optional<Kernel> with_online_sums(const Kernel& kernel, bool deviations);

// What g starts as.
double lowest_finite(DType dtype);

}  // namespace litz
