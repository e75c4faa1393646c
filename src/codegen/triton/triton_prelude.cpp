#include "codegen/triton/triton_prelude.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "support/error.h"

namespace litz {
namespace {

constexpr std::string_view kImports = R"(import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice
)";

struct Helper {
  std::string_view name;
  std::string_view needs;  // another helper
  std::string_view text;
};

// In the order in which they are printed. Divisors are replaced where the machine would trap or
// give anything at all.
constexpr Helper kHelpers[] = {
    {"add", "", R"(
@triton.jit
def add(a, b):
    return a + b
)"},
    {"mul", "", R"(
@triton.jit
def mul(a, b):
    return a * b
)"},
    {"bit_or", "", R"(
@triton.jit
def bit_or(a, b):
    return a | b
)"},
    {"bit_and", "", R"(
@triton.jit
def bit_and(a, b):
    return a & b
)"},
    {"max_int", "", R"(
@triton.jit
def max_int(a, b):
    return tl.maximum(a, b)
)"},
    {"min_int", "", R"(
@triton.jit
def min_int(a, b):
    return tl.minimum(a, b)
)"},
    {"max_float", "", R"(
@triton.jit
def max_float(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
)"},
    {"min_float", "", R"(
@triton.jit
def min_float(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
)"},
    {"max_double", "", R"(
@triton.jit
def max_double(a, b):
    a, b = tl.broadcast(a, b)
    return tl.where((a >= b) | (a != a), a, b)
)"},
    {"min_double", "", R"(
@triton.jit
def min_double(a, b):
    a, b = tl.broadcast(a, b)
    return tl.where((a <= b) | (a != a), a, b)
)"},
    // NaN is the extreme value, and of equal ones the first wins.
    {"argmax", "", R"(
@triton.jit
def argmax(a, i, b, j):
    a_nan = a != a
    b_nan = b != b
    first = (a > b) | (a_nan & (b_nan == 0)) | (((a == b) | (a_nan & b_nan)) & (i < j))
    return tl.where(first, a, b), tl.where(first, i, j)
)"},
    {"argmin", "", R"(
@triton.jit
def argmin(a, i, b, j):
    a_nan = a != a
    b_nan = b != b
    first = (a < b) | (a_nan & (b_nan == 0)) | (((a == b) | (a_nan & b_nan)) & (i < j))
    return tl.where(first, a, b), tl.where(first, i, j)
)"},
    // Of the sums s of exp(. - g): with values x, where m is the greatest one so far, and with
    // another sum.
    {"add_exp", "", R"(
@triton.jit
def add_exp(s, g, x, m):
    h = tl.maximum(g, m, propagate_nan=tl.PropagateNan.ALL)
    return s * libdevice.exp(g - h) + libdevice.exp(x - h), h
)"},
    {"merge_exp", "", R"(
@triton.jit
def merge_exp(s, g, t, h):
    m = tl.where((g >= h) | (g != g), g, h)
    return s * libdevice.exp(g - m) + t * libdevice.exp(h - m), m
)"},
    // Within 1.5e-7 (Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26).
    {"erf_near", "", R"(
@triton.jit
def erf_near(x):
    z = tl.abs(x)
    t = 1.0 / (1.0 + 0.3275911 * z)
    p = 1.421413741 + t * (-1.453152027 + t * 1.061405429)
    p = t * (0.254829592 + t * (-0.284496736 + t * p))
    e = 1.0 - p * tl.exp2(z * z * -1.4426950408889634)
    return tl.where(x < 0, -e, e)
)"},
    // Of positions: the divisor is positive.
    {"floor_div_index", "", R"(
@triton.jit
def floor_div_index(a, b):
    return a // b - (a % b < 0).to(tl.int32)
)"},
    {"mod_index", "", R"(
@triton.jit
def mod_index(a, b):
    m = a % b
    return tl.where(m < 0, m + b, m)
)"},
    // Of integers: by zero gives 0, the smallest by -1 wraps.
    {"trunc_div_signed", "", R"(
@triton.jit
def trunc_div_signed(x, y):
    q = x // tl.where((y == 0) | (y == -1), 1, y)
    return tl.where(y == 0, 0, tl.where(y == -1, 0 - x, q))
)"},
    {"fmod_signed", "", R"(
@triton.jit
def fmod_signed(x, y):
    special = (y == 0) | (y == -1)
    return tl.where(special, 0, x % tl.where(special, 1, y))
)"},
    {"floor_div_signed", "trunc_div_signed fmod_signed", R"(
@triton.jit
def floor_div_signed(x, y):
    m = fmod_signed(x, y)
    q = trunc_div_signed(x, y)
    return tl.where((m != 0) & ((m < 0) != (y < 0)), q - 1, q)
)"},
    {"remainder_signed", "fmod_signed", R"(
@triton.jit
def remainder_signed(x, y):
    m = fmod_signed(x, y)
    return tl.where((m != 0) & ((m < 0) != (y < 0)), m + y, m)
)"},
    {"div_unsigned", "", R"(
@triton.jit
def div_unsigned(x, y):
    return tl.where(y == 0, 0, x // tl.where(y == 0, 1, y))
)"},
    {"mod_unsigned", "", R"(
@triton.jit
def mod_unsigned(x, y):
    return tl.where(y == 0, 0, x % tl.where(y == 0, 1, y))
)"},
    {"pow_unsigned", "", R"(
@triton.jit
def pow_unsigned(x, y):
    x, y = tl.broadcast(x, y)
    r = x * 0 + 1
    for _ in range(64):
        r = tl.where((y & 1) != 0, r * x, r)
        x = x * x
        y = y >> 1
    return r
)"},
    {"pow_signed", "pow_unsigned", R"(
@triton.jit
def pow_signed(x, y):
    negative = tl.where(x == 1, 1, tl.where(x == -1, tl.where((y & 1) != 0, x, x * x), x * 0))
    return tl.where(y < 0, negative, pow_unsigned(x, tl.where(y < 0, y * 0, y)))
)"},
    // Counts out of range leave nothing, or the sign.
    {"shift_left", "", R"(
@triton.jit
def shift_left(x, y, BITS: tl.constexpr):
    return tl.where((y >= 0) & (y < BITS), x << (y & (BITS - 1)), 0)
)"},
    {"shift_right_signed", "", R"(
@triton.jit
def shift_right_signed(x, y, BITS: tl.constexpr):
    return x >> tl.where((y >= 0) & (y < BITS), y & (BITS - 1), BITS - 1)
)"},
    {"shift_right_unsigned", "", R"(
@triton.jit
def shift_right_unsigned(x, y, BITS: tl.constexpr):
    return tl.where(y < BITS, x >> (y & (BITS - 1)), 0)
)"},
    {"remainder_float", "", R"(
@triton.jit
def remainder_float(x, y):
    m = libdevice.fmod(x, y)
    return tl.where((m != 0.0) & ((y < 0.0) != (m < 0.0)), m + y, m)
)"},
    {"floor_div_float", "", R"(
@triton.jit
def floor_div_float(x, y):
    m = libdevice.fmod(x, y)
    by = tl.div_rn(x, y)
    q = tl.div_rn(x - m, y)
    q = tl.where((m != 0.0) & ((y < 0.0) != (m < 0.0)), q - 1.0, q)
    r = libdevice.floor(q)
    r = tl.where(q - r > 0.5, r + 1.0, r)
    r = tl.where(q == 0.0, libdevice.copysign(q * 0.0, by), r)
    return tl.where(y == 0.0, by, r)
)"},
    {"floor_div_double", "", R"(
@triton.jit
def floor_div_double(x, y):
    m = libdevice.fmod(x, y)
    by = x / y
    q = (x - m) / y
    q = tl.where((m != 0.0) & ((y < 0.0) != (m < 0.0)), q - 1.0, q)
    r = libdevice.floor(q)
    r = tl.where(q - r > 0.5, r + 1.0, r)
    r = tl.where(q == 0.0, libdevice.copysign(q * 0.0, by), r)
    return tl.where(y == 0.0, by, r)
)"},
    // The four words of a block, Philox4x32-10 as in ir/expr_ops.h.
    {"philox_block", "", R"(
@triton.jit
def philox_block(seed, counter):
    a = counter.to(tl.uint32)
    b = (counter >> 32).to(tl.uint32)
    c = a * 0
    d = c
    k = seed.to(tl.uint32)
    l = (seed >> 32).to(tl.uint32)
    first = tl.full([], 0xD2511F53, tl.uint32)
    second = tl.full([], 0xCD9E8D57, tl.uint32)
    for _ in tl.static_range(10):
        p = a * first
        q = c * second
        a, c = tl.umulhi(c, second) ^ b ^ k, tl.umulhi(a, first) ^ d ^ l
        b = q
        d = p
        k = k + 0x9E3779B9
        l = l + 0xBB67AE85
    return a, b, c, d
)"},
    {"philox32", "philox_block", R"(
@triton.jit
def philox32(seed, index):
    a, b, c, d = philox_block(seed, index.to(tl.uint64) >> 2)
    odd = (index & 1) != 0
    return tl.where((index & 2) != 0, tl.where(odd, d, c), tl.where(odd, b, a)).to(tl.int32, bitcast=True)
)"},
    {"philox64", "philox_block", R"(
@triton.jit
def philox64(seed, index):
    a, b, c, d = philox_block(seed, index.to(tl.uint64) >> 1)
    odd = (index & 1) != 0
    low = tl.where(odd, c, a).to(tl.int64)
    return low | (tl.where(odd, d, b).to(tl.int64) << 32)
)"},
    // psi(x) = psi(x + 1) - 1/x up to 10, then the asymptotic series; psi(1 - x) - pi / tan(pi x)
    // below 0.
    {"digamma", "", R"(
@triton.jit
def digamma(x):
    whole = libdevice.trunc(x) == x
    below = x < 0.0
    turn = 3.14159265358979323846 * (x - libdevice.trunc(x))
    r = tl.where(below & (whole == 0), -3.14159265358979323846 / libdevice.tan(tl.where(whole, turn * 0.0 + 1.0, turn)), turn * 0.0)
    y = tl.where(below, 1.0 - x, x)
    for _ in range(10):
        small = y < 10.0
        r = tl.where(small, r - 1.0 / tl.where(y == 0.0, 1.0, y), r)
        y = tl.where(small, y + 1.0, y)
    z = 1.0 / (y * y)
    p = 691.0 / 32760.0 - z / 12.0
    p = 1.0 / 132.0 - z * p
    p = 1.0 / 240.0 - z * p
    p = 1.0 / 252.0 - z * p
    p = 1.0 / 120.0 - z * p
    p = 1.0 / 12.0 - z * p
    r = tl.where(y == float("inf"), y, r + libdevice.log(y) - 0.5 / y - z * p)
    r = tl.where(below & whole, float("nan"), r)
    return tl.where(x == 0.0, libdevice.copysign(float("inf") + x * 0.0, x * -1.0), r)
)"},
};

std::string shortest(double value) {
  char buffer[64];
  char* const end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

std::string TritonPrelude::use(std::string_view name) {
  for (const Helper& helper : kHelpers) {
    if (helper.name != name) continue;
    used_.emplace(name);
    std::string_view needs = helper.needs;
    while (!needs.empty()) {
      const size_t space = std::min(needs.find(' '), needs.size());
      use(needs.substr(0, space));
      needs.remove_prefix(std::min(space + 1, needs.size()));
    }
    return std::string(name);
  }
  LITZ_CHECK(false, "no Triton helper is called " + std::string(name));
}

std::string TritonPrelude::text() const {
  std::string text(kImports);
  for (const Helper& helper : kHelpers) {
    if (used_.contains(helper.name)) text += "\n" + std::string(helper.text);
  }
  return text;
}

std::string triton_type(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "tl.int1";
    case DType::kUInt8:
      return "tl.uint8";
    case DType::kInt8:
      return "tl.int8";
    case DType::kInt16:
      return "tl.int16";
    case DType::kInt32:
      return "tl.int32";
    case DType::kInt64:
      return "tl.int64";
    case DType::kFloat16:
      return "tl.float16";
    case DType::kBFloat16:
      return "tl.bfloat16";
    case DType::kFloat32:
      return "tl.float32";
    case DType::kFloat64:
      return "tl.float64";
    default:
      LITZ_CHECK(false, "no Triton type for " + std::string(to_string(dtype)));
  }
}

std::string triton_pointer_type(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUInt8:
      return "*u8";
    case DType::kInt8:
      return "*i8";
    case DType::kInt16:
      return "*i16";
    case DType::kInt32:
      return "*i32";
    case DType::kInt64:
      return "*i64";
    case DType::kFloat16:
      return "*fp16";
    case DType::kBFloat16:
      return "*bf16";
    case DType::kFloat32:
      return "*fp32";
    case DType::kFloat64:
      return "*fp64";
    default:
      LITZ_CHECK(false, "no Triton type for " + std::string(to_string(dtype)));
  }
}

std::string triton_constant(bool is_integer, int64_t integer, double real, DType dtype) {
  const auto full = [](const std::string& value, const std::string& type) {
    return "tl.full([], " + value + ", " + type + ")";
  };
  const std::string type = triton_type(dtype);
  if (is_integer) return full(std::to_string(integer), type);
  if (std::isnan(real)) return full("float(\"nan\")", type);
  if (std::isinf(real)) return full(real < 0 ? "float(\"-inf\")" : "float(\"inf\")", type);
  if (real == 0 && std::signbit(real)) {
    // tl.full forgets the sign.
    const bool wide = dtype == DType::kFloat64;
    return full(wide ? "-9223372036854775808" : "-2147483648", wide ? "tl.int64" : "tl.int32") +
           ".to(" + type + ", bitcast=True)";
  }
  return full(shortest(real), type);
}

std::string triton_literal(bool is_integer, int64_t integer, double real, DType dtype) {
  if (is_integer) {
    const std::string text = std::to_string(integer);
    return dtype == DType::kBool ? "" : integer < 0 ? "(" + text + ")" : text;
  }
  if (dtype != DType::kFloat32 || !std::isfinite(real)) return "";
  if (real == 0 ? std::signbit(real) : std::abs(real) < std::numeric_limits<float>::min())
    return "";
  return real < 0 ? "(" + shortest(real) + ")" : shortest(real);
}

}  // namespace litz
