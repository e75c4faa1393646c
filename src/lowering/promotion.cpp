#include "lowering/promotion.h"

#include <limits>
#include <optional>

namespace litz {
namespace {

// The dtype of operands of one priority so far; absent where there are none.
using Candidate = std::optional<DType>;

void join(Candidate& candidate, DType dtype) {
  candidate = candidate ? promote_types(*candidate, dtype) : dtype;
}

// `lower` counts only where it is of a higher category.
Candidate combine(Candidate higher, Candidate lower) {
  if (!higher || !lower) return higher ? higher : lower;
  if (is_floating(*higher)) return higher;
  if (*higher == DType::kBool || is_floating(*lower)) return promote_types(*higher, *lower);
  return higher;
}

DType dtype_of_number(const Argument& number) {
  if (number.holds<double>()) return DType::kFloat32;
  if (number.holds<bool>()) return DType::kBool;
  return DType::kInt64;
}

}  // namespace

DType result_type(const OpCall& call, std::initializer_list<std::string_view> arguments) {
  Candidate with_dimensions;
  Candidate without;
  Candidate numbers;
  for (std::string_view name : arguments) {
    if (call.is_none(name)) continue;
    if (call.is_tensor(name)) {
      const TensorValue& value = call.tensor(name);
      join(value.rank() > 0 ? with_dimensions : without, value.dtype);
    } else {
      join(numbers, dtype_of_number(call.scalar(name)));
    }
  }
  const Candidate result = combine(with_dimensions, combine(without, numbers));
  LITZ_CHECK(result.has_value(), call.node().name + " has no operands to promote");
  return *result;
}

Expr convert(Expr element, DType dtype) {
  ExprContext& exprs = element.context();
  return exprs.cast(exprs.cast(element, dtype), computation_dtype(dtype));
}

Expr round_result(Expr value, DType dtype, DType stored) {
  ExprContext& exprs = value.context();
  if (value.dtype() == computation_dtype(dtype)) value = exprs.cast(value, dtype);
  return exprs.cast(value, stored);
}

Expr rounded(Expr value, DType dtype) { return convert(value, dtype); }

Scalar largest_finite(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return Scalar::of_double(dtype, 65504.0);
    case DType::kBFloat16:
      return Scalar::of_double(dtype, 0x1.fep127);
    case DType::kFloat32:
      return Scalar::of_double(dtype, std::numeric_limits<float>::max());
    default:
      return Scalar::of_double(dtype, std::numeric_limits<double>::max());
  }
}

}  // namespace litz
