#include "codegen/cuda/cuda_dialect.h"

#include <algorithm>
#include <iterator>

// Functions that the device library has are taken from it, since eager PyTorch uses the same ones;
// everything else is what the C++ prelude has for scalars.
namespace litz {
namespace {

using prelude::Shape;

constexpr std::string_view kHeader =
    R"(#define LITZ_INLINE static __device__ __forceinline__
#define LITZ_COLD static __device__ __noinline__
#define LITZ_HAS(x) 0
)";

constexpr std::string_view kHelpers = R"(template <class T, class F>
LITZ_INLINE T litz_bit_cast(F x) {
  static_assert(sizeof(T) == sizeof(F), "bits");
  T r;
  memcpy(&r, &x, sizeof(T));
  return r;
}
#define LITZ_ALIGNED(p) __builtin_assume(((u64)p & 15) == 0)
#define __builtin_bit_cast(T, x) litz_bit_cast<T>(x)
#define __builtin_inff() __int_as_float(0x7f800000)
#define __builtin_inf() __longlong_as_double(0x7ff0000000000000ll)
#define __builtin_nanf(x) __int_as_float(0x7fc00000)
#define __builtin_nan(x) __longlong_as_double(0x7ff8000000000000ll)
#define __builtin_copysign(x, y) copysign(x, y)
#define __builtin_trunc(x) trunc(x)
#define __builtin_tan(x) tan(x)
#define __builtin_log(x) log(x)
// A failed check ends the kernel, as a failed assertion of eager PyTorch does.
extern "C" __device__ void __assertfail(const char*, const char*, unsigned, const char*, unsigned long);
// Division of integers by zero has no meaning there, and no check.
LITZ_COLD void check_failed(i32*, i32 failure) {
  if (failure != 5) __assertfail("index or value out of range", "litz", 0, "kernel", 1);
}
LITZ_INLINE i64 checked_index(i64 value, i64 extent, i32* status, i32 failure) {
  if ((u64)value < (u64)extent) return value;
  if (status) check_failed(status, failure);
  return 0;
}
template <class T>
LITZ_INLINE T litz_shuffle(T x, i32 o) {
  if constexpr (sizeof(T) == 8) {
    return litz_bit_cast<T>(__shfl_xor_sync(~0u, litz_bit_cast<unsigned long long>(x), o));
  } else if constexpr (sizeof(T) == 4) {
    return litz_bit_cast<T>(__shfl_xor_sync(~0u, litz_bit_cast<u32>(x), o));
  } else {
    return (T)__shfl_xor_sync(~0u, (i32)x, o);
  }
}
)";

// Comparisons give -1 or 0 in an integer as wide as the lane; all other operators stay in the
// lane's type.
constexpr std::string_view kPack = R"(template <class H>
struct litz_pack {
  H a, b;
};
template <class T>
struct litz_lane {
  using type = T;
};
template <class H>
struct litz_lane<litz_pack<H>> : litz_lane<H> {};
template <unsigned long bytes>
struct litz_int;
template <>
struct litz_int<1> {
  using type = i8;
};
template <>
struct litz_int<2> {
  using type = i16;
};
template <>
struct litz_int<4> {
  using type = i32;
};
template <>
struct litz_int<8> {
  using type = i64;
};
template <class H>
struct litz_mask {
  using type = typename litz_int<sizeof(H)>::type;
  LITZ_INLINE type of(bool m) { return (type)-(i32)m; }
};
template <class H>
struct litz_mask<litz_pack<H>> {
  using type = litz_pack<typename litz_mask<H>::type>;
  LITZ_INLINE type of(type m) { return m; }
};
#define LITZ_PACK_FORMS(op, result, make)                                              \
  template <class H>                                                                   \
  LITZ_INLINE result operator op(litz_pack<H> x, litz_pack<H> y) {                     \
    return {make(x.a op y.a), make(x.b op y.b)};                                       \
  }                                                                                    \
  template <class H>                                                                   \
  LITZ_INLINE result operator op(litz_pack<H> x, typename litz_lane<H>::type y) {      \
    return {make(x.a op y), make(x.b op y)};                                           \
  }                                                                                    \
  template <class H>                                                                   \
  LITZ_INLINE result operator op(typename litz_lane<H>::type x, litz_pack<H> y) {      \
    return {make(x op y.a), make(x op y.b)};                                           \
  }
#define LITZ_PACK_OP(op) LITZ_PACK_FORMS(op, litz_pack<H>, (H))
#define LITZ_PACK_COMPARE(op) \
  LITZ_PACK_FORMS(op, litz_pack<typename litz_mask<H>::type>, litz_mask<H>::of)
LITZ_PACK_OP(+)
LITZ_PACK_OP(-)
LITZ_PACK_OP(*)
LITZ_PACK_OP(/)
LITZ_PACK_OP(&)
LITZ_PACK_OP(|)
LITZ_PACK_OP(^)
LITZ_PACK_OP(<<)
LITZ_PACK_OP(>>)
LITZ_PACK_COMPARE(<)
LITZ_PACK_COMPARE(<=)
LITZ_PACK_COMPARE(>)
LITZ_PACK_COMPARE(>=)
LITZ_PACK_COMPARE(==)
LITZ_PACK_COMPARE(!=)
template <class H>
LITZ_INLINE litz_pack<H> operator-(litz_pack<H> x) {
  return {(H)-x.a, (H)-x.b};
}
template <class H>
LITZ_INLINE litz_pack<H> operator~(litz_pack<H> x) {
  return {(H)~x.a, (H)~x.b};
}
struct __align__(16) litz_bytes16 {
  u32 a, b, c, d;
};
)";

constexpr std::string_view kUnary[] = {
    "exp",   "exp2", "expm1", "log",    "log2",   "log10", "log1p", "sin",   "cos",
    "tan",   "asin", "acos",  "atan",   "sinh",   "cosh",  "tanh",  "asinh", "acosh",
    "atanh", "erf",  "erfc",  "erfinv", "lgamma", "floor", "ceil",  "trunc"};
constexpr std::string_view kBinary[] = {"pow", "atan2", "hypot", "fmod", "nextafter"};

template <size_t N>
bool contains(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

std::string fragment_text(std::string_view name, Shape shape) {
  if (name == "load") return "\nLITZ_INLINE @V @N(const void* p) { return *(const @V*)p; }\n";
  if (name == "store") return "\nLITZ_INLINE void @N(void* p, @V v) { *(@V*)p = v; }\n";
  if (name == "load_tail") return "\nLITZ_INLINE @V @N(const void*, i64) { return @V(); }\n";
  if (name == "store_tail") return "\nLITZ_INLINE void @N(void*, @V, i64) {}\n";
  if (!is_floating(shape.dtype)) return "";
  const bool is_f32 = shape.dtype == DType::kFloat32;
  const std::string suffix = is_f32 ? "f" : "";
  const std::string unary = "\nLITZ_INLINE @V @N(@V x) { return ";
  if (contains(kUnary, name)) return unary + std::string(name) + suffix + "(x); }\n";
  if (contains(kBinary, name))
    return "\nLITZ_INLINE @V @N(@V x, @V y) { return " + std::string(name) + suffix + "(x, y); }\n";
  if (name == "round") return unary + "rint" + suffix + "(x); }\n";
  if (name == "sqrt") return unary + (is_f32 ? "__fsqrt_rn" : "__dsqrt_rn") + "(x); }\n";
  if (name == "abs") return unary + "fabs" + suffix + "(x); }\n";
  if (is_f32 && (name == "min" || name == "max")) {
    return replace_all(R"(
LITZ_INLINE f32 @N(f32 x, f32 y) {
#if __CUDA_ARCH__ >= 800
  f32 r;
  asm("MINMAX.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
  return r;
#else
  return x != x || y != y ? x + y : fMINMAXf(x, y);
#endif
}
)",
                       "MINMAX", name);
  }
  if (name == "sigmoid") return unary + "1.0@F / (1.0@F + @{exp}(-x)); }\n";
  if (name == "fma")
    return std::string("\nLITZ_INLINE @V @N(@V x, @V y, @V z) { return ") +
           (is_f32 ? "__fmaf_rn" : "__fma_rn") + "(x, y, z); }\n";
  return "";
}

std::string conversion_text(std::string_view name, Shape from, DType to) {
  if (name == "from_f16")
    return "\nLITZ_INLINE f32 @N(u16 x) {\n  f32 r;\n  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(r) : "
           "\"h\"(x));\n  return r;\n}\n";
  if (name == "bits_f16")
    return "\nLITZ_INLINE u16 @N(f32 x) {\n  u16 r;\n  asm(\"cvt.rn.f16.f32 %0, %1;\" : "
           "\"=h\"(r) : \"f\"(x));\n  return r;\n}\n";
  if (name == "from_bf16")
    return "\nLITZ_INLINE f32 @N(u16 x) { return __uint_as_float((u32)x << 16); }\n";
  if (name == "bits_bf16")
    return R"(
LITZ_INLINE u16 @N(f32 x) {
#if __CUDA_ARCH__ >= 800
  u16 r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x));
  return r;
#else
  const u32 u = __float_as_uint(x);
  return x != x ? 0x7fff : (u16)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
#endif
}
)";
  if (is_floating(from.dtype) && is_integral(to))
    return prelude::replace_to("\nLITZ_INLINE @T{TO} @N(@V x) { return (@T{TO})x; }\n", to);
  return "";
}

std::string pair_conversion_text(std::string_view name, const std::string& own) {
  if (name == "from_bf16") {
    return "\nLITZ_INLINE f32x2 " + own + R"((u16x2 x) {
  const u32 bits = litz_bit_cast<u32>(x);
  return {__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000u)};
}
)";
  }
  if (name == "bits_bf16" || name == "bits_f16") {
    const std::string half(name);
    return "\nLITZ_INLINE u16x2 " + own + "(f32x2 x) {\n#if __CUDA_ARCH__ >= 800\n  u32 bits;\n" +
           "  asm(\"cvt.rn." + half.substr(5) +
           "x2.f32 %0, %1, %2;\" : \"=r\"(bits) : \"f\"(x.b), \"f\"(x.a));\n" +
           "  return litz_bit_cast<u16x2>(bits);\n#else\n  return {" + half + "_f32(x.a), " + half +
           "_f32(x.b)};\n#endif\n}\n";
  }
  return "";
}

// One transaction where the address allows it.
std::string pack_access_text(std::string_view name, std::string_view half, Shape shape) {
  const std::string own = std::string(name) + "_" + std::string(to_string(shape.dtype)) + "x" +
                          std::to_string(shape.lanes);
  const std::string value = std::string(to_string(shape.dtype)) + "x" + std::to_string(shape.lanes);
  const std::string offset = std::to_string(shape.bytes() / 2);
  std::string word;
  switch (shape.bytes()) {
    case 2:
      word = "u16";
      break;
    case 4:
      word = "u32";
      break;
    case 8:
      word = "u64";
      break;
    case 16:
      word = "litz_bytes16";
      break;
    default:
      break;
  }
  const std::string aligned = "  if (((u64)p & " + std::to_string(shape.bytes() - 1) + ") == 0) ";
  std::string text;
  if (name == "load") {
    text = "\nLITZ_INLINE " + value + " " + own + "(const void* p) {\n";
    if (!word.empty())
      text += aligned + "return litz_bit_cast<" + value + ">(*(const " + word + "*)p);\n";
    return text + "  return {" + std::string(half) + "(p), " + std::string(half) +
           "((const char*)p + " + offset + ")};\n}\n";
  }
  text = "\nLITZ_INLINE void " + own + "(void* p, " + value + " v) {\n";
  if (!word.empty())
    text +=
        aligned + "{\n    *(" + word + "*)p = litz_bit_cast<" + word + ">(v);\n    return;\n  }\n";
  return text + "  " + std::string(half) + "(p, v.a);\n  " + std::string(half) + "((char*)p + " +
         offset + ", v.b);\n}\n";
}

// Compare and swap of the aligned word that holds the element.
constexpr std::string_view kAtomic = R"(
template <class M, class Change>
LITZ_INLINE void litz_atomic(M* p, Change change) {
  if constexpr (sizeof(M) == 8) {
    unsigned long long* word = (unsigned long long*)p;
    unsigned long long old = *word, seen;
    do {
      seen = old;
      old = atomicCAS(word, seen, litz_bit_cast<unsigned long long>(change(litz_bit_cast<M>(seen))));
    } while (old != seen);
  } else {
    u32* word = (u32*)((u64)p & ~(u64)3);
    const u32 shift = (u32)((u64)p & 3) * 8;
    const u32 mask = sizeof(M) == 4 ? ~0u : ((1u << (sizeof(M) * 8 % 32)) - 1) << shift;
    u32 old = *word, seen;
    do {
      seen = old;
      M element;
      const u32 bits = (seen & mask) >> shift;
      memcpy(&element, &bits, sizeof(M));
      element = change(element);
      u32 next = 0;
      memcpy(&next, &element, sizeof(M));
      old = atomicCAS(word, seen, (seen & ~mask) | (next << shift));
    } while (old != seen);
  }
}
)";

std::string atomic_text(const std::string& own, const std::string& combine, const std::string& load,
                        const std::string& store, const std::string& value,
                        const std::string& memory) {
  std::string text = "void " + own + "(void* p, " + value + " x) {";
  const bool adds = combine.starts_with("add_");
  if (adds && (memory == "f32" || memory == "f64")) {
    return text + " atomicAdd((" + memory + "*)p, x); }";
  }
  if (adds && memory == "i32") return text + " atomicAdd((i32*)p, x); }";
  if (adds && memory == "i64")
    return text + " atomicAdd((unsigned long long*)p, (unsigned long long)x); }";
  return text + "\n  litz_atomic((" + memory + "*)p, [=](" + memory + " old) { return (" + memory +
         ")" + store + "(" + combine + "(" + load + "(old), x)); });\n}";
}

SimtWords cuda_words() {
  SimtWords words;
  words.kernel = "extern \"C\" __global__ void __launch_bounds__(THREADS) NAME";
  words.local = "__shared__ ";
  words.block[0] = "blockIdx.x";
  words.block[1] = "blockIdx.y";
  words.thread = "threadIdx.x";
  words.barrier = "__syncthreads();";
  words.aligned = "LITZ_ALIGNED(POINTER);";
  words.prefetch = "asm volatile(\"prefetch.global.L2 [%0];\" :: \"l\"(POINTER));";
  words.unroll = "_Pragma(\"unroll\") ";
  words.unroll_some = "_Pragma(\"unroll COUNT\") ";
  words.shuffle = "litz_shuffle";
  words.combines_kernels = true;
  return words;
}

class CudaDialect final : public SimtDialect {
 public:
  CudaDialect() : SimtDialect(cuda_words()) {}

  std::string header() const override { return std::string(kHeader); }
  std::string helpers() const override { return std::string(kHelpers); }
  std::string fragment(std::string_view name, Shape shape) const override {
    return fragment_text(name, shape);
  }
  std::string conversion(std::string_view name, Shape from, DType to) const override {
    return conversion_text(name, from, to);
  }
  std::string pair_conversion(std::string_view name, const std::string& own) const override {
    return pair_conversion_text(name, own);
  }
  std::string pack() const override { return std::string(kPack); }
  std::string pack_access(std::string_view name, std::string_view half,
                          Shape shape) const override {
    return pack_access_text(name, half, shape);
  }
  std::string atomic_helper() const override { return std::string(kAtomic); }
  std::string atomic(const std::string& own, const std::string& combine, const std::string& load,
                     const std::string& store, const std::string& value,
                     const std::string& memory) const override {
    return atomic_text(own, combine, load, store, value, memory);
  }
};

}  // namespace

const SimtDialect& cuda_dialect() {
  static const CudaDialect dialect;
  return dialect;
}

}  // namespace litz
