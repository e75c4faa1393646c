#include "support/dtype.h"

#include "support/error.h"

namespace litz {
namespace {

struct Row {
  std::string_view spelling;
  std::string_view torch;
  int64_t bytes;
  DTypeCategory category;
  bool native;
};

constexpr Row kRows[] = {
#define LITZ_DTYPE_ROW(name, spelling, torch, bytes, cat, native) \
  {spelling, torch, bytes, DTypeCategory::cat, native},
    LITZ_DTYPES(LITZ_DTYPE_ROW)
#undef LITZ_DTYPE_ROW
};

constexpr int kCount = static_cast<int>(sizeof(kRows) / sizeof(kRows[0]));

const Row& row(DType dtype) { return kRows[static_cast<int>(dtype)]; }

}  // namespace

std::string_view to_string(DType dtype) { return row(dtype).spelling; }
std::string_view torch_name(DType dtype) { return row(dtype).torch; }
int64_t size_of(DType dtype) { return row(dtype).bytes; }
DTypeCategory category(DType dtype) { return row(dtype).category; }
bool is_native(DType dtype) { return row(dtype).native; }

std::optional<DType> parse_dtype(std::string_view text) {
  for (int i = 0; i < kCount; ++i) {
    if (kRows[i].spelling == text || kRows[i].torch == text) return static_cast<DType>(i);
  }
  return std::nullopt;
}

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  LITZ_CHECK(is_native(a) && is_native(b), "promotion of a dtype that Litz does not compute with");
  if (a == DType::kBool) return b;
  if (b == DType::kBool) return a;
  const bool a_floating = is_floating(a);
  const bool b_floating = is_floating(b);
  if (a_floating != b_floating) return a_floating ? a : b;
  if (a_floating) {
    if (is_half(a) && is_half(b)) return DType::kFloat32;
    return size_of(a) > size_of(b) ? a : b;
  }
  if (a == DType::kUInt8 || b == DType::kUInt8) {
    const DType other = a == DType::kUInt8 ? b : a;
    return other == DType::kInt8 ? DType::kInt16 : other;
  }
  return size_of(a) > size_of(b) ? a : b;
}

}  // namespace litz
