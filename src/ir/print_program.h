// The text form of a Program. ir/parse_program.h reads it back exactly; docs/program-text.md is its
// grammar with an example of everything.
#pragma once

#include <span>
#include <string>

#include "ir/program.h"

namespace litz {

std::string to_string(const Program& program);
// With these operations alone.
std::string to_string(const Program& program, std::span<const OperationId> operations);

// One operation as it stands in the program's text, and one expression as a body of its own: a line
// for each node but constants, shared nodes named once, `yield` at the end.
std::string to_string(const Program& program, const Operation& operation);
std::string to_string(const Program& program, Expr expression);

// "1.5: f32"; the shortest text that reads back as the same value.
std::string to_string(const Scalar& scalar);

}  // namespace litz
