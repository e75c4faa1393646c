// Reads the text form of a Program that ir/print_program.h writes.
#pragma once

#include <string_view>

#include "ir/program.h"

namespace litz {

// Makes a program with contexts of its own. Expressions are built anew, so that text which is not
// canonical (see ir/expr.h) becomes canonical. Throws UserError "line:column: what is wrong".
// Checks what the text form needs, such as names and dtypes; ir/verify_program.h checks the rest.
Program parse_program(std::string_view text);

}  // namespace litz
