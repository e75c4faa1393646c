// Prints a sum over windows (schedule/window_sum.h), and what is stored behind it, as C++.
//
// Channels are neighbours in memory and the lanes of vectors. A row of pixels of the result is cut
// into strips, whose sums stay in registers while the taps pass by: each element of the input that
// a row of taps needs is loaded once for all pixels of a strip. Strips at the borders leave out the
// taps that lie outside, each in a function of its own, and rows of taps outside are no iterations.
// What is stored behind a strip reads it from an array that stays in the first level cache.
#pragma once

#include "codegen/cpp/cpp_kernel.h"
#include "schedule/window_sum.h"

namespace litz {

// The kernel as such a sum, where its sizes are constant, its channels fill vectors, and each bound
// is of one dimension.
std::optional<WindowSum> cpp_window(const Kernel& kernel, const PreludeTarget& target);

CppKernel print_cpp_window(const Program& program, const Kernel& kernel, const WindowSum& sum,
                           Prelude& prelude, const PreludeTarget& target);

}  // namespace litz
