// The checks that loop bodies make on values, and what a failed one tells the caller.
#pragma once

#include <string_view>

#include "ir/expr.h"
#include "litz/artifact.h"

namespace litz {

// kCheckIndex, kCheck, kCheckDivisor: the operations whose evaluation may fail.
bool is_check(ExprOp op);

LitzStatus status_of(IndexFault fault);

// What went wrong, for messages that go on with the place: "index out of range in ".
std::string_view failure_text(LitzStatus status);

}  // namespace litz
