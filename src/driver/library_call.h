// A call of the library as text, for whoever times it outside of a run.
#pragma once

#include <optional>
#include <string>

#include "ir/program.h"

namespace litz {

// JSON: "op", "overload" and "arguments" in schema order, each null, a number, a bool, a tensor as
// "dtype", "sizes" and "strides", or a list of such. Nothing where an argument is anything else, a
// size is known only at run time, or the op is not PyTorch's own. Equal texts take equal time.
std::optional<std::string> describe_library_call(const ExternKernel& call);

}  // namespace litz
