// A program as a host runs it, by the interpreter: what takes the place of a loaded library where
// there is none.
#pragma once

#include <memory>

#include "ir/program.h"
#include "runtime/executable.h"

namespace litz {

// Throws InternalError where a size symbol of the program has no source (ir/bind_symbols.h).
std::shared_ptr<const Executable> make_interpreted_graph(const Program& program);

}  // namespace litz
