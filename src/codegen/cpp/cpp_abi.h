// Text that every generated translation unit shares: the declarations of litz/artifact.h without
// its includes, checked against the header that Litz itself was built with by static assertions,
// and small helpers.
#pragma once

#include <string>

namespace litz {

// Needs the types i32 and i64 of the prelude.
std::string cpp_abi_text();

}  // namespace litz
