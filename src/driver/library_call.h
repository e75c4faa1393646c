// A call of the library as text, for whoever times it outside of a run.
#pragma once

#include <optional>
#include <string>

#include "ir/program.h"

namespace litz {

// JSON: "op", "overload" and "arguments" in schema order, each null, a number, a bool, or a tensor
// as "dtype", "sizes" and "strides". Nothing where an argument is anything else, or a size is known
// only at run time. Equal texts take equal time.
std::optional<std::string> describe_library_call(const ExternKernel& call);

}  // namespace litz
