// Element types of tensors. The list covers every dtype that a graph may mention; `is_native` says
// which of them Litz computes with itself. The numbers are part of the artifact ABI (LitzDType):
// append, never reorder.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace litz {

// X(enumerator, spelling, torch name, bytes, category, native)
#define LITZ_DTYPES(X)                                             \
  X(kBool, "bool", "bool", 1, kBoolean, true)                      \
  X(kUInt8, "u8", "uint8", 1, kIntegral, true)                     \
  X(kInt8, "i8", "int8", 1, kIntegral, true)                       \
  X(kInt16, "i16", "int16", 2, kIntegral, true)                    \
  X(kInt32, "i32", "int32", 4, kIntegral, true)                    \
  X(kInt64, "i64", "int64", 8, kIntegral, true)                    \
  X(kFloat16, "f16", "float16", 2, kFloating, true)                \
  X(kBFloat16, "bf16", "bfloat16", 2, kFloating, true)             \
  X(kFloat32, "f32", "float32", 4, kFloating, true)                \
  X(kFloat64, "f64", "float64", 8, kFloating, true)                \
  X(kUInt16, "u16", "uint16", 2, kIntegral, false)                 \
  X(kUInt32, "u32", "uint32", 4, kIntegral, false)                 \
  X(kUInt64, "u64", "uint64", 8, kIntegral, false)                 \
  X(kComplex32, "c32", "complex32", 4, kComplex, false)            \
  X(kComplex64, "c64", "complex64", 8, kComplex, false)            \
  X(kComplex128, "c128", "complex128", 16, kComplex, false)        \
  X(kFloat8E4M3, "f8e4m3fn", "float8_e4m3fn", 1, kFloating, false) \
  X(kFloat8E5M2, "f8e5m2", "float8_e5m2", 1, kFloating, false)     \
  X(kOther, "other", "other", 1, kOpaque, false)

enum class DTypeCategory : uint8_t { kBoolean, kIntegral, kFloating, kComplex, kOpaque };

enum class DType : uint8_t {
#define LITZ_DTYPE_ENUM(name, ...) name,
  LITZ_DTYPES(LITZ_DTYPE_ENUM)
#undef LITZ_DTYPE_ENUM
};

std::string_view to_string(DType dtype);
std::string_view torch_name(DType dtype);
int64_t size_of(DType dtype);
DTypeCategory category(DType dtype);
bool is_native(DType dtype);

// Accepts the short spelling ("f32") and torch's name ("float32").
std::optional<DType> parse_dtype(std::string_view text);

inline bool is_floating(DType dtype) { return category(dtype) == DTypeCategory::kFloating; }
inline bool is_integral(DType dtype) { return category(dtype) == DTypeCategory::kIntegral; }
inline bool is_signed(DType dtype) {
  return dtype != DType::kBool && dtype != DType::kUInt8 && dtype != DType::kUInt16 &&
         dtype != DType::kUInt32 && dtype != DType::kUInt64;
}
// bfloat16 and float16: computed in float32, rounded after every op.
inline bool is_half(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

// torch.promote_types for the native dtypes.
DType promote_types(DType a, DType b);

}  // namespace litz
