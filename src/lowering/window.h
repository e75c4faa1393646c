// Sums over windows: pools and their gradients. For every position the window is a box of taps on
// the last axes of another tensor, some of which may lie outside of it.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lowering/lowering.h"

namespace litz {

// One axis. `at` is a coordinate of the result, `tap` one below `taps`.
struct WindowAxis {
  Index taps;
  std::function<Index(Index at, Index tap)> position;  // in the other tensor
  std::function<Expr(Index at, Index tap)> is_inside;  // bool; a constant where it is known
};

// Both of two conditions; one of them where the other is known to hold.
Expr conjunction(Expr a, Expr b);
// 0 <= value < size, as far as that is not proven.
Expr in_range(OpCall& call, Index value, Index size);
// a < b, as far as that is not proven.
Expr is_less(OpCall& call, Index a, Index b);
// The smaller and the larger of two, where that is proven one of them.
Index smaller(Index a, Index b);
Index larger(Index a, Index b);

// Windows with at most this many taps are written out, larger ones are loops.
constexpr int64_t kUnrolledTaps = 25;
bool is_unrolled(std::span<const WindowAxis> axes);

// The taps of all axes, one for each.
using TapVisitor = std::function<void(std::span<const Index> taps)>;
// Every tap of unrolled windows, those of the last axis fastest.
void for_each_tap(OpCall& call, std::span<const WindowAxis> axes, const TapVisitor& visit);

// Where taps are in the other tensor, of which the axes are the last dimensions; all others are
// shared.
std::vector<Index> tap_position(std::span<const WindowAxis> axes, std::span<const Index> position,
                                std::span<const Index> taps);
// Whether it is inside.
Expr is_inside(std::span<const WindowAxis> axes, std::span<const Index> position,
               std::span<const Index> taps);

// Sets result 0 to finish(position, sum), where sum adds up term(position in the other tensor)
// over the taps inside.
void set_window_sum(OpCall& call, std::span<const WindowAxis> axes,
                    const std::function<Expr(std::span<const Index> other)>& term,
                    const std::function<Expr(std::span<const Index> position, Expr sum)>& finish);

}  // namespace litz
