#include "ir/fold_constants.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ir/column_kernels.h"
#include "ir/scalar_semantics.h"
#include "support/error.h"

namespace litz {
namespace {

// A column of one value.
struct Cell {
  alignas(8) char bytes[8];
};

template <class T>
Cell to_cell(T value) {
  Cell cell{};
  std::memcpy(cell.bytes, &value, sizeof(T));
  return cell;
}

template <class T>
T from_cell(const Cell& cell) {
  T value;
  std::memcpy(&value, cell.bytes, sizeof(T));
  return value;
}

Cell scalar_to_cell(const Scalar& scalar) {
  switch (scalar.dtype) {
    case DType::kFloat64:
      return to_cell(scalar.real);
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32:
      return to_cell(static_cast<float>(scalar.real));
    default:  // little-endian: the low bytes are the narrower integer
      return to_cell(scalar.integer);
  }
}

Scalar cell_to_scalar(DType dtype, const Cell& cell) {
  switch (dtype) {
    case DType::kFloat64:
      return Scalar::of_double(dtype, from_cell<double>(cell));
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32:
      return Scalar::of_double(dtype, from_cell<float>(cell));
    case DType::kBool:
      return Scalar::of_int(dtype, from_cell<bool>(cell));
    default:
      return Scalar::of_int(dtype, from_cell<int64_t>(cell));
  }
}

bool is_exact_on_floats(ExprOp op) {
  switch (op) {
    case ExprOp::kCast:
    case ExprOp::kNeg:
    case ExprOp::kAbs:
    case ExprOp::kSign:
    case ExprOp::kFloor:
    case ExprOp::kCeil:
    case ExprOp::kTrunc:
    case ExprOp::kRound:
    case ExprOp::kSqrt:
    case ExprOp::kReciprocal:
    case ExprOp::kIsNan:
    case ExprOp::kIsInf:
    case ExprOp::kSignBit:
    case ExprOp::kAdd:
    case ExprOp::kSub:
    case ExprOp::kMul:
    case ExprOp::kDiv:
    case ExprOp::kCopySign:
    case ExprOp::kMin:
    case ExprOp::kMax:
    case ExprOp::kEq:
    case ExprOp::kNe:
    case ExprOp::kLt:
    case ExprOp::kLe:
    case ExprOp::kGt:
    case ExprOp::kGe:
    case ExprOp::kFma:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::optional<Scalar> fold_constants(ExprOp op, DType result, std::span<const Expr> operands) {
  if (operands.empty() || operands.size() > 3) return std::nullopt;
  for (Expr operand : operands) {
    if (operand.op() != ExprOp::kConstant) return std::nullopt;
  }
  const DType operand = operands[0].dtype();
  const bool foldable = is_floating(operand) ? is_exact_on_floats(op)
                                             : op != ExprOp::kBitcast && op != ExprOp::kCheckIndex;
  if (!foldable) return std::nullopt;

  Cell cells[3];
  const void* columns[3];
  for (size_t i = 0; i < operands.size(); ++i) {
    cells[i] = scalar_to_cell(operands[i].scalar());
    columns[i] = cells[i].bytes;
  }
  Cell out{};
  find_column_kernel(op, operand, result)(out.bytes, columns, 1);
  return cell_to_scalar(result, out);
}

Scalar Scalar::of_int(DType dtype, int64_t value) {
  Scalar scalar;
  scalar.dtype = dtype;
  switch (dtype) {
    case DType::kBool:
      scalar.integer = value != 0;
      return scalar;
    case DType::kUInt8:
      scalar.integer = static_cast<uint8_t>(value);
      return scalar;
    case DType::kInt8:
      scalar.integer = static_cast<int8_t>(value);
      return scalar;
    case DType::kInt16:
      scalar.integer = static_cast<int16_t>(value);
      return scalar;
    case DType::kInt32:
      scalar.integer = static_cast<int32_t>(value);
      return scalar;
    case DType::kInt64:
      scalar.integer = value;
      return scalar;
    case DType::kFloat64:
      scalar.real = static_cast<double>(value);
      return scalar;
    default:  // to float32 at once: through double it would round twice
      return of_double(dtype, static_cast<float>(value));
  }
}

Scalar Scalar::of_double(DType dtype, double value) {
  LITZ_CHECK(is_native(dtype), "scalar of " + std::string(to_string(dtype)));
  Scalar scalar;
  scalar.dtype = dtype;
  if (std::isnan(value)) {
    // One NaN of each sign, so that equal constants are one node.
    value = std::copysign(std::numeric_limits<double>::quiet_NaN(), value);
  }
  switch (dtype) {
    case DType::kFloat64:
      scalar.real = value;
      return scalar;
    case DType::kFloat32:
      scalar.real = static_cast<float>(value);
      return scalar;
    case DType::kFloat16:
      scalar.real = semantics::round_to_float16(static_cast<float>(value));
      return scalar;
    case DType::kBFloat16:
      scalar.real = semantics::round_to_bfloat16(static_cast<float>(value));
      return scalar;
    case DType::kBool:
      scalar.integer = value != 0;
      return scalar;
    case DType::kUInt8:
    case DType::kInt64:
      return of_int(dtype, semantics::truncate_to_int64(value));
    default:
      return of_int(dtype, semantics::truncate_to_int32(value));
  }
}

bool Scalar::is_zero() const { return is_floating(dtype) ? real == 0 : integer == 0; }

}  // namespace litz
