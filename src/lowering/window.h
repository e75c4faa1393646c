// Sums over windows: pools and their gradients. For every position the window is a box of taps on
// two axes of another tensor, some of which may lie outside of it.
#pragma once

#include <functional>
#include <span>

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
bool is_unrolled(const WindowAxis& rows, const WindowAxis& columns);

// Sets result 0 to finish(position, sum), where sum adds up term(position in the other tensor)
// over the taps inside. The axes are the last two dimensions; all others are shared.
void set_window_sum(OpCall& call, const WindowAxis& rows, const WindowAxis& columns,
                    const std::function<Expr(std::span<const Index> other)>& term,
                    const std::function<Expr(std::span<const Index> position, Expr sum)>& finish);

}  // namespace litz
