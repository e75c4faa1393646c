#include "ir/scalar_cell.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "ir/scalar_semantics.h"
#include "support/error.h"

namespace litz {
namespace {

template <class T>
ScalarCell cell_of(T value) {
  ScalarCell cell{};
  std::memcpy(cell.bytes, &value, sizeof(T));
  return cell;
}

template <class T>
T value_of(const ScalarCell& cell) {
  T value;
  std::memcpy(&value, cell.bytes, sizeof(T));
  return value;
}

}  // namespace

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

ScalarCell to_cell(const Scalar& scalar) {
  switch (scalar.dtype) {
    case DType::kFloat64:
      return cell_of(scalar.real);
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32:
      return cell_of(static_cast<float>(scalar.real));
    default:  // little-endian: the low bytes are the narrower integer
      return cell_of(scalar.integer);
  }
}

Scalar to_scalar(DType dtype, const ScalarCell& cell) {
  switch (dtype) {
    case DType::kFloat64:
      return Scalar::of_double(dtype, value_of<double>(cell));
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32:
      return Scalar::of_double(dtype, value_of<float>(cell));
    case DType::kBool:
      return Scalar::of_int(dtype, value_of<bool>(cell));
    default:
      return Scalar::of_int(dtype, value_of<int64_t>(cell));
  }
}

}  // namespace litz
