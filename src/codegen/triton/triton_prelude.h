// The library of Triton helpers: functions for what Triton's language has not, or means otherwise.
// A module gets those that its kernels use.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "support/dtype.h"

namespace litz {

class TritonPrelude {
 public:
  // The name to write, once the function is asked for: "floor_div_float".
  std::string use(std::string_view name);
  // All that another one was asked for, too.
  void add(const TritonPrelude& other) { used_.insert(other.used_.begin(), other.used_.end()); }
  // Imports, and the functions asked for, in a fixed order.
  std::string text() const;

 private:
  std::set<std::string, std::less<>> used_;
};

// "tl.float32": the type that values of this dtype have in registers or in memory.
std::string triton_type(DType dtype);
// "*fp32": the type of an argument that points to them; a bool is a byte.
std::string triton_pointer_type(DType dtype);

// What follows is text for a value of the dtype in registers, which a half has as a float32.
// A scalar of the dtype, whatever stands around it.
std::string triton_constant(bool is_integer, int64_t integer, double real, DType dtype);
// The same as a literal, where an operator's other operand gives it its type; empty where a literal
// is not safe.
std::string triton_literal(bool is_integer, int64_t integer, double real, DType dtype);

}  // namespace litz
