// The meaning of the scalar operations as C++: one function template per operation that plain C++
// does not define, or defines otherwise. ir/expr_ops.h says the same in words. Constant folding and
// the reference interpreter use these; the dialects' preludes must agree with them.
//
// T is one of the types that values are computed in: uint8_t, int8_t, int16_t, int32_t, int64_t,
// float, double, and bool where it is said.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "support/half.h"

namespace litz::semantics {

template <class T>
using UnsignedOf = std::make_unsigned_t<T>;

// ---- casts ----

// What x86 conversion instructions do, and so eager there: out of range and NaN give the smallest
// integer.
inline int32_t truncate_to_int32(double value) {
  return value > -2147483649.0 && value < 2147483648.0 ? static_cast<int32_t>(value)
                                                       : std::numeric_limits<int32_t>::min();
}
inline int64_t truncate_to_int64(double value) {
  return value >= -0x1p63 && value < 0x1p63 ? static_cast<int64_t>(value)
                                            : std::numeric_limits<int64_t>::min();
}

template <class To, class From>
To cast(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // uint8 goes through 64 bits, int8 and int16 through 32, as eager does.
    if constexpr (std::is_same_v<To, int64_t> || std::is_same_v<To, uint8_t>) {
      return static_cast<To>(truncate_to_int64(value));
    } else {
      return static_cast<To>(truncate_to_int32(value));
    }
  } else {
    return static_cast<To>(value);
  }
}

inline float round_to_float16(float value) { return float16_to_float(float_to_float16(value)); }
inline float round_to_bfloat16(float value) { return bfloat16_to_float(float_to_bfloat16(value)); }

// ---- arithmetic ----

template <class T>
T add(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a + b;
  return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <class T>
T sub(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a - b;
  return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
template <class T>
T mul(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a * b;
  return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
template <class T>
T neg(T a) {
  if constexpr (std::is_floating_point_v<T>) return -a;
  return sub(T(0), a);
}
template <class T>
T abs(T a) {
  if constexpr (std::is_floating_point_v<T>) return std::fabs(a);
  return a < T(0) ? neg(a) : a;
}
template <class T>
T sign(T a) {
  return static_cast<T>((a > T(0)) - (a < T(0)));
}
template <class T>
bool sign_bit(T a) {
  if constexpr (std::is_floating_point_v<T>) return std::signbit(a);
  return a < T(0);
}

template <class T>
T trunc_div(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return std::trunc(a / b);
  if (b == T(0)) return T(0);
  if constexpr (std::is_signed_v<T>) {
    if (b == T(-1)) return neg(a);
  }
  return static_cast<T>(a / b);
}
template <class T>
T fmod(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmod(a, b);
  } else {
    if (b == T(0)) return T(0);
    if constexpr (std::is_signed_v<T>) {
      if (b == T(-1)) return T(0);
    }
    return static_cast<T>(a % b);
  }
}
template <class T>
T remainder(T a, T b) {
  const T r = fmod(a, b);
  return r != T(0) && (r < T(0)) != (b < T(0)) ? static_cast<T>(r + b) : r;
}
template <class T>
T floor_div(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (b == T(0)) return a / b;
    const T r = std::fmod(a, b);
    T quotient = (a - r) / b;
    if (r != T(0) && (b < T(0)) != (r < T(0))) quotient -= T(1);
    if (quotient == T(0)) return std::copysign(T(0), a / b);
    const T floored = std::floor(quotient);
    return quotient - floored > T(0.5) ? floored + T(1) : floored;
  } else {
    if (b == T(0)) return T(0);
    const T quotient = trunc_div(a, b);
    const T r = fmod(a, b);
    return r != T(0) && (r < T(0)) != (b < T(0)) ? sub(quotient, T(1)) : quotient;
  }
}
template <class T>
T pow(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(std::pow(static_cast<double>(a), static_cast<double>(b)));
  } else {
    if constexpr (std::is_signed_v<T>) {
      if (b < T(0)) {
        if (a == T(1)) return T(1);
        if (a == T(-1)) return b % 2 == 0 ? T(1) : T(-1);
        return T(0);
      }
    }
    T result = 1;
    for (T base = a, exponent = b; exponent != T(0); exponent = static_cast<T>(exponent / 2)) {
      if (exponent % 2 != 0) result = mul(result, base);
      base = mul(base, base);
    }
    return result;
  }
}

// The first operand where the two are equal, which decides between 0 and -0.
template <class T>
T min(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
  }
  return b < a ? b : a;
}
template <class T>
T max(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
  }
  return b > a ? b : a;
}

// ---- bits; T may be bool except in shifts ----

template <class T>
T bit_not(T a) {
  if constexpr (std::is_same_v<T, bool>) {
    return !a;
  } else {
    return static_cast<T>(~a);
  }
}
template <class T>
T shift_left(T a, T count) {
  constexpr int kBits = 8 * sizeof(T);
  if (count < T(0) || count >= kBits) return T(0);
  return static_cast<T>(static_cast<UnsignedOf<T>>(a) << count);
}
template <class T>
T shift_right(T a, T count) {
  constexpr int kBits = 8 * sizeof(T);
  if (count < T(0) || count >= kBits) return a < T(0) ? T(-1) : T(0);
  return static_cast<T>(a >> count);
}

// ---- functions that <cmath> lacks ----

double digamma(double x);
double erfinv(double y);
double lgamma(double x);

// ---- random words ----

struct PhiloxBlock {
  uint32_t words[4];
};

inline PhiloxBlock philox_block(uint64_t seed, uint64_t counter, uint64_t high = 0) {
  uint32_t a = static_cast<uint32_t>(counter);
  uint32_t b = static_cast<uint32_t>(counter >> 32);
  uint32_t c = static_cast<uint32_t>(high);
  uint32_t d = static_cast<uint32_t>(high >> 32);
  uint32_t low_key = static_cast<uint32_t>(seed);
  uint32_t high_key = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{a} * 0xD2511F53u;
    const uint64_t second = uint64_t{c} * 0xCD9E8D57u;
    a = static_cast<uint32_t>(second >> 32) ^ b ^ low_key;
    b = static_cast<uint32_t>(second);
    c = static_cast<uint32_t>(first >> 32) ^ d ^ high_key;
    d = static_cast<uint32_t>(first);
    low_key += 0x9E3779B9u;
    high_key += 0xBB67AE85u;
  }
  return {{a, b, c, d}};
}

inline int32_t philox32(int64_t seed, int64_t index) {
  const uint64_t word = static_cast<uint64_t>(index);
  return static_cast<int32_t>(philox_block(static_cast<uint64_t>(seed), word >> 2).words[word & 3]);
}
inline int64_t philox64(int64_t seed, int64_t index) {
  const uint64_t pair = static_cast<uint64_t>(index);
  const PhiloxBlock block = philox_block(static_cast<uint64_t>(seed), pair >> 1);
  return static_cast<int64_t>(uint64_t{block.words[2 * (pair & 1) + 1]} << 32 |
                              block.words[2 * (pair & 1)]);
}

}  // namespace litz::semantics
