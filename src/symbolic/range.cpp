#include "symbolic/range.h"

#include <algorithm>

namespace litz {
namespace {

constexpr int64_t kMin = ValueRange::kMin;
constexpr int64_t kMax = ValueRange::kMax;

int64_t clamp(__int128 value) {
  return static_cast<int64_t>(std::clamp<__int128>(value, kMin, kMax));
}

bool unbounded(int64_t end) { return end == kMin || end == kMax; }

// `unlimited` is what the sum is when an operand has no limit on this side.
int64_t add_ends(int64_t a, int64_t b, int64_t unlimited) {
  if (a == unlimited || b == unlimited) return unlimited;
  return clamp(static_cast<__int128>(a) + b);
}

int64_t multiply_ends(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (unbounded(a) || unbounded(b)) return (a < 0) == (b < 0) ? kMax : kMin;
  return clamp(static_cast<__int128>(a) * b);
}

int64_t divide_ends(int64_t a, int64_t b) {
  if (unbounded(a)) return a;
  if (b == kMax) return a < 0 ? -1 : 0;
  return floor_div_int(a, b);
}

ValueRange at_least_one(ValueRange range) {
  return {std::max<int64_t>(range.lo, 1), std::max<int64_t>(range.hi, 1)};
}

}  // namespace

ValueRange add_ranges(ValueRange a, ValueRange b) {
  return {add_ends(a.lo, b.lo, kMin), add_ends(a.hi, b.hi, kMax)};
}

ValueRange multiply_ranges(ValueRange a, ValueRange b) {
  const auto [lo, hi] = std::minmax({multiply_ends(a.lo, b.lo), multiply_ends(a.lo, b.hi),
                                     multiply_ends(a.hi, b.lo), multiply_ends(a.hi, b.hi)});
  return {lo, hi};
}

ValueRange scale_range(ValueRange a, int64_t factor) {
  const int64_t x = multiply_ends(a.lo, factor);
  const int64_t y = multiply_ends(a.hi, factor);
  return {std::min(x, y), std::max(x, y)};
}

ValueRange floor_div_range(ValueRange a, ValueRange b) {
  b = at_least_one(b);
  return {divide_ends(a.lo, a.lo < 0 ? b.lo : b.hi), divide_ends(a.hi, a.hi < 0 ? b.hi : b.lo)};
}

ValueRange mod_range(ValueRange a, ValueRange b) {
  b = at_least_one(b);
  if (a.lo >= 0 && a.hi < b.lo) return a;
  const int64_t hi = b.hi == kMax ? kMax : b.hi - 1;
  return {0, a.lo >= 0 ? std::min(a.hi, hi) : hi};
}

ValueRange min_range(ValueRange a, ValueRange b) {
  return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
}

ValueRange max_range(ValueRange a, ValueRange b) {
  return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
}

}  // namespace litz
