// Runs a graph on made-up inputs, without PyTorch.
#pragma once

#include <string>

#include "runtime/executable.h"

namespace litz {

// What --help and docs/debugging.md say about the inputs.
inline constexpr const char* kPatternDoc =
    "Size symbols are 6. Element i (in row-major order) of input k is, for floats, "
    "((5*i + 3*k) mod 11 - 5) / 4; for integers, (i + k) mod 4; for bools, whether i + k is odd.";

// Runs the graph on inputs of that pattern. Returns the outputs, and the inputs that it writes to,
// as text; a message where the run fails. Throws UserError where inputs have other sizes than
// numbers and symbols.
std::string run_on_pattern(const Executable& graph);

}  // namespace litz
