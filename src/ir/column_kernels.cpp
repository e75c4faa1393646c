#include "ir/column_kernels.h"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "ir/scalar_semantics.h"
#include "support/error.h"

namespace litz {
namespace {

namespace s = semantics;

template <class Out, class In, auto Function>
void map1(void* out, const void* const* operands, int64_t count) {
  const In* a = static_cast<const In*>(operands[0]);
  Out* o = static_cast<Out*>(out);
  for (int64_t i = 0; i < count; ++i) o[i] = Function(a[i]);
}

template <class Out, class In, auto Function>
void map2(void* out, const void* const* operands, int64_t count) {
  const In* a = static_cast<const In*>(operands[0]);
  const In* b = static_cast<const In*>(operands[1]);
  Out* o = static_cast<Out*>(out);
  for (int64_t i = 0; i < count; ++i) o[i] = Function(a[i], b[i]);
}

template <class T>
void fma_columns(void* out, const void* const* operands, int64_t count) {
  const T* a = static_cast<const T*>(operands[0]);
  const T* b = static_cast<const T*>(operands[1]);
  const T* c = static_cast<const T*>(operands[2]);
  T* o = static_cast<T*>(out);
  for (int64_t i = 0; i < count; ++i) o[i] = std::fma(a[i], b[i], c[i]);
}

template <class T>
void select_columns(void* out, const void* const* operands, int64_t count) {
  const bool* condition = static_cast<const bool*>(operands[0]);
  const T* a = static_cast<const T*>(operands[1]);
  const T* b = static_cast<const T*>(operands[2]);
  T* o = static_cast<T*>(out);
  for (int64_t i = 0; i < count; ++i) o[i] = condition[i] ? a[i] : b[i];
}

// Transcendental functions are computed in double and rounded to the operand's dtype.
template <class T, auto Function>
ColumnKernel via_double() {
  return map1<T, T, [](T a) { return static_cast<T>(Function(static_cast<double>(a))); }>;
}
template <class T, auto Function>
ColumnKernel via_double2() {
  return map2<T, T, [](T a, T b) {
    return static_cast<T>(Function(static_cast<double>(a), static_cast<double>(b)));
  }>;
}

template <class T>
ColumnKernel float_unary(ExprOp op) {
  switch (op) {
    case ExprOp::kFloor:
      return map1<T, T, [](T a) { return std::floor(a); }>;
    case ExprOp::kCeil:
      return map1<T, T, [](T a) { return std::ceil(a); }>;
    case ExprOp::kTrunc:
      return map1<T, T, [](T a) { return std::trunc(a); }>;
    case ExprOp::kRound:
      return map1<T, T, [](T a) { return std::nearbyint(a); }>;
    case ExprOp::kSqrt:
      return map1<T, T, [](T a) { return std::sqrt(a); }>;
    case ExprOp::kRsqrt:
      return via_double<T, [](double a) { return 1 / std::sqrt(a); }>();
    case ExprOp::kReciprocal:
      return map1<T, T, [](T a) { return T(1) / a; }>;
    case ExprOp::kExp:
      return via_double<T, [](double a) { return std::exp(a); }>();
    case ExprOp::kExp2:
      return via_double<T, [](double a) { return std::exp2(a); }>();
    case ExprOp::kExpm1:
      return via_double<T, [](double a) { return std::expm1(a); }>();
    case ExprOp::kLog:
      return via_double<T, [](double a) { return std::log(a); }>();
    case ExprOp::kLog2:
      return via_double<T, [](double a) { return std::log2(a); }>();
    case ExprOp::kLog10:
      return via_double<T, [](double a) { return std::log10(a); }>();
    case ExprOp::kLog1p:
      return via_double<T, [](double a) { return std::log1p(a); }>();
    case ExprOp::kSin:
      return via_double<T, [](double a) { return std::sin(a); }>();
    case ExprOp::kCos:
      return via_double<T, [](double a) { return std::cos(a); }>();
    case ExprOp::kTan:
      return via_double<T, [](double a) { return std::tan(a); }>();
    case ExprOp::kAsin:
      return via_double<T, [](double a) { return std::asin(a); }>();
    case ExprOp::kAcos:
      return via_double<T, [](double a) { return std::acos(a); }>();
    case ExprOp::kAtan:
      return via_double<T, [](double a) { return std::atan(a); }>();
    case ExprOp::kSinh:
      return via_double<T, [](double a) { return std::sinh(a); }>();
    case ExprOp::kCosh:
      return via_double<T, [](double a) { return std::cosh(a); }>();
    case ExprOp::kTanh:
      return via_double<T, [](double a) { return std::tanh(a); }>();
    case ExprOp::kAsinh:
      return via_double<T, [](double a) { return std::asinh(a); }>();
    case ExprOp::kAcosh:
      return via_double<T, [](double a) { return std::acosh(a); }>();
    case ExprOp::kAtanh:
      return via_double<T, [](double a) { return std::atanh(a); }>();
    case ExprOp::kErf:
      return via_double<T, [](double a) { return std::erf(a); }>();
    case ExprOp::kErfc:
      return via_double<T, [](double a) { return std::erfc(a); }>();
    case ExprOp::kErfinv:
      return via_double<T, s::erfinv>();
    case ExprOp::kLgamma:
      return via_double<T, s::lgamma>();
    case ExprOp::kDigamma:
      return via_double<T, s::digamma>();
    case ExprOp::kSigmoid:
      return via_double<T, [](double a) { return 1 / (1 + std::exp(-a)); }>();
    case ExprOp::kIsNan:
      return map1<bool, T, [](T a) { return std::isnan(a); }>;
    case ExprOp::kIsInf:
      return map1<bool, T, [](T a) { return std::isinf(a); }>;
    default:
      return nullptr;
  }
}

template <class T>
ColumnKernel float_binary(ExprOp op) {
  switch (op) {
    case ExprOp::kDiv:
      return map2<T, T, [](T a, T b) { return a / b; }>;
    case ExprOp::kAtan2:
      return via_double2<T, [](double a, double b) { return std::atan2(a, b); }>();
    case ExprOp::kHypot:
      return via_double2<T, [](double a, double b) { return std::hypot(a, b); }>();
    case ExprOp::kCopySign:
      return map2<T, T, [](T a, T b) { return std::copysign(a, b); }>;
    case ExprOp::kNextAfter:
      return map2<T, T, [](T a, T b) { return std::nextafter(a, b); }>;
    case ExprOp::kFma:
      return fma_columns<T>;
    default:
      return float_unary<T>(op);
  }
}

// Not bool.
template <class T>
ColumnKernel number_kernel(ExprOp op) {
  switch (op) {
    case ExprOp::kNeg:
      return map1<T, T, s::neg<T>>;
    case ExprOp::kAbs:
      return map1<T, T, s::abs<T>>;
    case ExprOp::kSign:
      return map1<T, T, s::sign<T>>;
    case ExprOp::kSignBit:
      return map1<bool, T, s::sign_bit<T>>;
    case ExprOp::kAdd:
      return map2<T, T, s::add<T>>;
    case ExprOp::kSub:
      return map2<T, T, s::sub<T>>;
    case ExprOp::kMul:
      return map2<T, T, s::mul<T>>;
    case ExprOp::kFloorDiv:
      return map2<T, T, s::floor_div<T>>;
    case ExprOp::kTruncDiv:
      return map2<T, T, s::trunc_div<T>>;
    case ExprOp::kFmod:
      return map2<T, T, s::fmod<T>>;
    case ExprOp::kRemainder:
      return map2<T, T, s::remainder<T>>;
    case ExprOp::kPow:
      return map2<T, T, s::pow<T>>;
    case ExprOp::kShiftLeft:
      if constexpr (std::is_integral_v<T>) return map2<T, T, s::shift_left<T>>;
      return nullptr;
    case ExprOp::kShiftRight:
      if constexpr (std::is_integral_v<T>) return map2<T, T, s::shift_right<T>>;
      return nullptr;
    default:
      if constexpr (std::is_floating_point_v<T>) return float_binary<T>(op);
      return nullptr;
  }
}

template <class T>
ColumnKernel any_kernel(ExprOp op) {
  switch (op) {
    case ExprOp::kWhere:
      return select_columns<T>;
    case ExprOp::kMin:
      return map2<T, T, s::min<T>>;
    case ExprOp::kMax:
      return map2<T, T, s::max<T>>;
    case ExprOp::kEq:
      return map2<bool, T, [](T a, T b) { return a == b; }>;
    case ExprOp::kNe:
      return map2<bool, T, [](T a, T b) { return a != b; }>;
    case ExprOp::kLt:
      return map2<bool, T, [](T a, T b) { return a < b; }>;
    case ExprOp::kLe:
      return map2<bool, T, [](T a, T b) { return a <= b; }>;
    case ExprOp::kGt:
      return map2<bool, T, [](T a, T b) { return b < a; }>;
    case ExprOp::kGe:
      return map2<bool, T, [](T a, T b) { return a >= b; }>;
    case ExprOp::kBitNot:
      if constexpr (std::is_integral_v<T>) return map1<T, T, s::bit_not<T>>;
      return nullptr;
    case ExprOp::kBitAnd:
      if constexpr (std::is_integral_v<T>) return map2<T, T, [](T a, T b) { return T(a & b); }>;
      return nullptr;
    case ExprOp::kBitOr:
      if constexpr (std::is_integral_v<T>) return map2<T, T, [](T a, T b) { return T(a | b); }>;
      return nullptr;
    case ExprOp::kBitXor:
      if constexpr (std::is_integral_v<T>) return map2<T, T, [](T a, T b) { return T(a ^ b); }>;
      return nullptr;
    default:
      if constexpr (!std::is_same_v<T, bool>) return number_kernel<T>(op);
      return nullptr;
  }
}

// Calls with a value of the dtype's column type.
template <class F>
auto with_column_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kBool:
      return f(bool());
    case DType::kUInt8:
      return f(uint8_t());
    case DType::kInt8:
      return f(int8_t());
    case DType::kInt16:
      return f(int16_t());
    case DType::kInt32:
      return f(int32_t());
    case DType::kInt64:
      return f(int64_t());
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32:
      return f(float());
    case DType::kFloat64:
      return f(double());
    default:
      throw_internal("is_native(dtype)", __FILE__, __LINE__, "no column holds this dtype");
  }
}

template <class From>
ColumnKernel cast_kernel(DType to) {
  if (to == DType::kFloat16) {
    return map1<float, From, [](From a) { return s::round_to_float16(static_cast<float>(a)); }>;
  }
  if (to == DType::kBFloat16) {
    return map1<float, From, [](From a) { return s::round_to_bfloat16(static_cast<float>(a)); }>;
  }
  return with_column_type(to, [](auto value) -> ColumnKernel {
    using To = decltype(value);
    return map1<To, From, s::cast<To, From>>;
  });
}

// ---- storage form ----

struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

template <class Stored>
auto from_storage(Stored value) {
  if constexpr (std::is_same_v<Stored, Float16>) {
    return float16_to_float(value.bits);
  } else if constexpr (std::is_same_v<Stored, BFloat16>) {
    return bfloat16_to_float(value.bits);
  } else {
    return value;
  }
}
// A byte of a bool tensor that is neither 0 nor 1 counts as true.
struct StoredBool {
  uint8_t byte;
};
inline bool from_storage(StoredBool value) { return value.byte != 0; }

template <class Stored, class Value>
Stored to_storage(Value value) {
  if constexpr (std::is_same_v<Stored, Float16>) {
    return {float_to_float16(value)};
  } else if constexpr (std::is_same_v<Stored, BFloat16>) {
    return {float_to_bfloat16(value)};
  } else if constexpr (std::is_same_v<Stored, StoredBool>) {
    return {static_cast<uint8_t>(value)};
  } else {
    return value;
  }
}

template <class Stored>
void load_column(void* column, const void* memory, const int64_t* offsets, int64_t count) {
  using Value = decltype(from_storage(Stored()));
  Value* out = static_cast<Value*>(column);
  for (int64_t i = 0; i < count; ++i) {
    Stored stored;  // memcpy: a bit view may be less aligned than its dtype
    std::memcpy(&stored, static_cast<const char*>(memory) + offsets[i] * int64_t(sizeof(Stored)),
                sizeof(Stored));
    out[i] = from_storage(stored);
  }
}

template <class Stored>
void store_column(const void* column, void* memory, const int64_t* offsets, int64_t count) {
  using Value = decltype(from_storage(Stored()));
  const Value* in = static_cast<const Value*>(column);
  for (int64_t i = 0; i < count; ++i) {
    const Stored stored = to_storage<Stored>(in[i]);
    std::memcpy(static_cast<char*>(memory) + offsets[i] * int64_t(sizeof(Stored)), &stored,
                sizeof(Stored));
  }
}

// Calls with a value of the type that memory of this dtype holds.
template <class F>
auto with_stored_type(DType dtype, F&& f) {
  if (dtype == DType::kBool) return f(StoredBool());
  if (dtype == DType::kFloat16) return f(Float16());
  if (dtype == DType::kBFloat16) return f(BFloat16());
  return with_column_type(dtype, [&](auto value) {
    if constexpr (std::is_same_v<decltype(value), bool>) {
      return f(StoredBool());
    } else {
      return f(value);
    }
  });
}

template <class From, class To>
void bitcast_columns(void* out, const void* const* operands, int64_t count) {
  using FromValue = decltype(from_storage(From()));
  using ToValue = decltype(from_storage(To()));
  const FromValue* in = static_cast<const FromValue*>(operands[0]);
  ToValue* o = static_cast<ToValue*>(out);
  for (int64_t i = 0; i < count; ++i) {
    const From stored = to_storage<From>(in[i]);
    To viewed;
    static_assert(sizeof(From) == sizeof(To));
    std::memcpy(&viewed, &stored, sizeof(To));
    o[i] = from_storage(viewed);
  }
}

ColumnKernel bitcast_kernel(DType from, DType to) {
  return with_stored_type(from, [to](auto from_value) {
    using From = decltype(from_value);
    return with_stored_type(to, [](auto to_value) -> ColumnKernel {
      using To = decltype(to_value);
      if constexpr (sizeof(From) == sizeof(To)) return bitcast_columns<From, To>;
      return nullptr;
    });
  });
}

}  // namespace

ColumnKernel find_column_kernel(ExprOp op, DType operand, DType result) {
  ColumnKernel kernel = nullptr;
  if (op == ExprOp::kCast) {
    kernel = with_column_type(
        operand, [result](auto value) { return cast_kernel<decltype(value)>(result); });
  } else if (op == ExprOp::kBitcast) {
    kernel = bitcast_kernel(operand, result);
  } else if (op == ExprOp::kPhilox32) {
    kernel = map2<int32_t, int64_t, s::philox32>;
  } else if (op == ExprOp::kPhilox64) {
    kernel = map2<int64_t, int64_t, s::philox64>;
  } else {
    kernel =
        with_column_type(operand, [op](auto value) { return any_kernel<decltype(value)>(op); });
  }
  LITZ_CHECK(kernel != nullptr, "no kernel for " + std::string(to_string(op)) + " of " +
                                    std::string(to_string(operand)));
  return kernel;
}

ColumnLoad find_column_load(DType dtype) {
  return with_stored_type(dtype,
                          [](auto value) -> ColumnLoad { return load_column<decltype(value)>; });
}

ColumnStore find_column_store(DType dtype) {
  return with_stored_type(dtype,
                          [](auto value) -> ColumnStore { return store_column<decltype(value)>; });
}

int64_t column_value_bytes(DType dtype) {
  return with_column_type(dtype, [](auto value) -> int64_t { return sizeof(value); });
}

}  // namespace litz
