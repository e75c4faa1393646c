// Checks a Program against the invariants that the rooms after lowering rely on. They are listed,
// with their numbers, at the top of ir/verify_program.cpp.
#pragma once

#include <string>
#include <vector>

#include "ir/program.h"

namespace litz {

// What is wrong, one message each, such as "P12: softmax: model.py:12: buffer y is written twice";
// empty for a valid program.
std::vector<std::string> find_program_faults(const Program& program);

// Throws InternalError with the faults.
void verify_program(const Program& program);

}  // namespace litz
