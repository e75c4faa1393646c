// The prelude of a generated C++ kernel: header-free text fragments (types, memory access, math)
// that are printed in front of the kernel, only what it uses. The text includes nothing, calls
// nothing but libm, and compiles with g++ >= 12 and clang >= 14.
//
// Values. A value of `lanes` elements (a power of two, 1..64) has the type `type(dtype, lanes)`:
//   lanes 1             the scalar typedef: f32, f64, i8, u8, i16, u16, i32, u32, i64, u64
//   fits a register     a GCC vector, e.g. f32x8
//   wider than that     litz_pack<half>, a struct {a, b} of the low and the high half, recursively
// float16 and bfloat16 live in registers as float32 values that are already rounded; a bool lives
// as a mask. The operators + - * / & | ^ ~ << >> and the comparisons work on all three kinds and
// mix with scalars of the element type. `?:` and v[i] do not work on packs: use select() and
// function(), and splat() to broadcast. For integers use kAdd, kSub, kMul: unlike the operators
// they wrap, and narrow types do not promote.
//
// Masks. The mask of lanes of B bytes is an integer vector (or pack) of that width, each lane -1 or
// 0; for lanes 1 it is a C++ bool. A comparison of two values gives the mask of their width. Negate
// with `m == 0`, combine with & | ^.
//
// Every function gives, lane by lane, the bits that its lanes-1 version gives, so bodies and tails
// agree. Results of different targets may differ (with or without FMA).
//
// Compile with -O2 -ffp-contract=off and the target's instruction sets. (g++ -O1 leaves out the
// vzeroupper before calls of libm, which can make those calls 30 times slower.)
//
// All methods that return a string register what they name, with everything it needs, and return
// the name to write in the kernel. The same sequence of requests gives the same text.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support/dtype.h"

namespace litz {

class SimtDialect;

struct PreludeTarget {
  bool avx2 = false;
  bool fma = false;
  bool f16c = false;
  bool avx512 = false;      // F, BW, DQ and VL together
  bool bf16_pairs = false;  // AVX512-BF16; needs vectors of 64 bytes
  bool bf16_tiles = false;  // AMX-BF16; needs bf16_pairs
  int vector_bytes = 16;    // width of a native vector: 16, 32 (needs avx2) or 64 (needs avx512)
  // A language for devices instead, in which every vector is a pack of scalars; the other fields
  // have no meaning. Must outlive the prelude.
  const SimtDialect* device = nullptr;
};

// X(enumerator, spelling, operands, meaning). Floats: F32 and F64 (F16 and BF16 compute as F32; the
// caller rounds). The float-only rows are marked f; rows marked i take integers only.
#define LITZ_PRELUDE_FNS(X)                                                                        \
  X(kAdd, "add", 2, "x + y, integers wrap")                                                        \
  X(kSub, "sub", 2, "x - y, integers wrap")                                                        \
  X(kMul, "mul", 2, "x * y, integers wrap")                                                        \
  X(kNeg, "neg", 1, "-x, integers wrap")                                                           \
  X(kAbs, "abs", 1, "|x|, the smallest integer is kept")                                           \
  X(kSign, "sign", 1, "-1, 0 or 1; 0 for NaN and for -0.0")                                        \
  X(kMin, "min", 2, "smaller; NaN if either is; x if equal")                                       \
  X(kMax, "max", 2, "larger; NaN if either is; x if equal")                                        \
  X(kFloorDiv, "floor_div", 2,                                                                     \
    "torch.div(rounding_mode='floor'); integer: 0 if y is 0, smallest / -1 wraps")                 \
  X(kTruncDiv, "trunc_div", 2, "quotient towards zero; integer: 0 if y is 0, smallest / -1 wraps") \
  X(kRemainder, "remainder", 2, "torch.remainder: sign of y; integer: 0 if y is 0")                \
  X(kFmod, "fmod", 2, "torch.fmod: sign of x; integer: 0 if y is 0")                               \
  X(kPow, "pow", 2, "x ** y; integers wrap, negative exponents as torch")                          \
  X(kShiftLeft, "shl", 2, "i: x << y; 0 if y is negative or >= bits")                              \
  X(kShiftRight, "shr", 2, "i: x >> y; 0 or -1 (sign of x) if y is negative or >= bits")           \
  X(kFloor, "floor", 1, "f")                                                                       \
  X(kCeil, "ceil", 1, "f")                                                                         \
  X(kTrunc, "trunc", 1, "f")                                                                       \
  X(kRound, "round", 1, "f: to nearest, half to even")                                             \
  X(kSqrt, "sqrt", 1, "f: correctly rounded")                                                      \
  X(kRsqrt, "rsqrt", 1, "f: 1 / sqrt(x)")                                                          \
  X(kReciprocal, "reciprocal", 1, "f: 1 / x")                                                      \
  X(kFma, "fma", 3, "f: x * y + z, one rounding where the target has FMA, else two")               \
  X(kExp, "exp", 1, "f")                                                                           \
  X(kExp2, "exp2", 1, "f")                                                                         \
  X(kExpm1, "expm1", 1, "f")                                                                       \
  X(kLog, "log", 1, "f")                                                                           \
  X(kLog2, "log2", 1, "f")                                                                         \
  X(kLog10, "log10", 1, "f")                                                                       \
  X(kLog1p, "log1p", 1, "f")                                                                       \
  X(kSin, "sin", 1, "f: full range")                                                               \
  X(kCos, "cos", 1, "f: full range")                                                               \
  X(kTan, "tan", 1, "f: full range")                                                               \
  X(kAsin, "asin", 1, "f")                                                                         \
  X(kAcos, "acos", 1, "f")                                                                         \
  X(kAtan, "atan", 1, "f")                                                                         \
  X(kSinh, "sinh", 1, "f")                                                                         \
  X(kCosh, "cosh", 1, "f")                                                                         \
  X(kTanh, "tanh", 1, "f")                                                                         \
  X(kAsinh, "asinh", 1, "f")                                                                       \
  X(kAcosh, "acosh", 1, "f")                                                                       \
  X(kAtanh, "atanh", 1, "f")                                                                       \
  X(kErf, "erf", 1, "f")                                                                           \
  X(kErfc, "erfc", 1, "f")                                                                         \
  X(kErfinv, "erfinv", 1, "f: NaN outside [-1, 1]")                                                \
  X(kLgamma, "lgamma", 1, "f: log |gamma(x)|")                                                     \
  X(kDigamma, "digamma", 1, "f: torch's poles: -inf at 0, inf at -0, NaN at negative integers")    \
  X(kSigmoid, "sigmoid", 1, "f: 1 / (1 + exp(-x))")                                                \
  X(kAtan2, "atan2", 2, "f: angle of (y, x), operands in that order")                              \
  X(kHypot, "hypot", 2, "f")                                                                       \
  X(kCopysign, "copysign", 2, "f: |x| with the sign of y")                                         \
  X(kNextafter, "nextafter", 2, "f")

enum class PreludeFn : uint8_t {
#define LITZ_PRELUDE_FN_ENUM(name, ...) name,
  LITZ_PRELUDE_FNS(LITZ_PRELUDE_FN_ENUM)
#undef LITZ_PRELUDE_FN_ENUM
};

std::string_view to_string(PreludeFn fn);
int operand_count(PreludeFn fn);
// Whether the function is defined for values of this dtype.
bool supports(PreludeFn fn, DType dtype);

// Pixels next to each other, each the sum over rows of taps of x[i * row + pixel * step + tap * gap
// + channel] * w[i * weight_row + tap * weight_gap + channel], stored at to[pixel * width +
// channel].
struct PreludeWindow {
  int64_t pixels = 0;
  int64_t taps = 0;
  std::vector<bool> counts;  // [pixel][tap]: whether the tap is in the sum
  int64_t step = 0;
  int64_t gap = 0;
  int64_t row = 0;
  int64_t weight_row = 0;
  int64_t weight_gap = 0;
  int64_t width = 0;
  int64_t rows_ahead = 0;  // of x behind the last one, which are read soon: brought into the caches
};

// Of a matrix unit's tiles: rows of the left operand and the result; pairs of bfloat16; columns of
// the right operand and the result.
inline constexpr int64_t kTileRows = 16;
inline constexpr int64_t kTilePairs = 16;
inline constexpr int64_t kTileColumns = 16;

// A register tile of a matrix product.
struct PreludeTile {
  enum class Left : uint8_t {
    kFactors,  // factors lie apart: rows are neighbours
    kRows,     // rows lie apart: factors are neighbours
    kFarRows,  // ... so far that the first cache cannot hold all of them: a few factors are copied
  };
  int64_t rows = 0;
  int vectors = 0;
  Left left = Left::kRows;
  bool pairs = false;      // factors are pairs of bfloat16
  bool join_rows = false;  // of pairs: the right operand's rows lie as they are
  // A further argument, `i64 ahead`, says where what is read next lies, from b: it is brought into
  // the caches.
  bool prefetches = false;
  // A last argument, `const f32* next`, says where so many rows lie that a later step of the left
  // operand's reads, as far apart as its rows: they are brought into the second cache.
  int64_t next_rows = 0;
  // Arguments in front of it, `const f32* source, i64 source_stride`, say where the right operand's
  // rows lie that are packed for the next step: with each factor one is brought there, too.
  bool brings_source = false;
};

class Prelude {
 public:
  explicit Prelude(const PreludeTarget& target);

  // Lanes of a full register of this element size; what a kernel's main loop should use.
  int native_lanes(int bytes) const { return target_.vector_bytes / bytes; }

  // Of a language for devices: in front of a type that global memory holds, and behind a literal of
  // 64 bits.
  std::string global() const;
  std::string_view int64_suffix() const;
  // What the language has no text for, in words: "erfinv of float32". The text is no program then.
  const std::vector<std::string>& missing() const { return missing_; }

  std::string type(DType dtype, int lanes);  // bool: the mask of 1-byte lanes
  std::string type_mask(int bytes, int lanes);

  // T name(T x[, T y[, T z]])
  std::string function(PreludeFn fn, DType dtype, int lanes);

  // T name(S x): x in every lane.
  std::string splat(DType dtype, int lanes);
  // T name(S x): x, x + 1, x + 2, ... in S's arithmetic.
  std::string iota(DType dtype, int lanes);

  // Random words (ir/expr_ops.h): i32 or i64 name(i64 seed, i64 index) gives those of the numbers
  // index, index + 1, ... in the lanes. Fastest where index is a multiple of four words.
  std::string philox(DType result, int lanes);

  // Memory. Pointers are void pointers, need no alignment, and count elements of the memory dtype
  // (half floats 2 bytes; bool 1 byte, which is 0 or 1). A half load widens to f32; a half store
  // rounds to nearest even.
  //   T    load_X(const void* p)
  //   T    load_tail_X(const void* p, i64 n)            0 < n < lanes; other lanes are zero
  //   void store_X(void* p, T v)
  //   void store_tail_X(void* p, T v, i64 n)            0 < n < lanes; touches n elements
  //   void store_stream_X(void* p, T v)                 past the caches where p is aligned to the
  //                                                     register width; needs sfence() at the end
  //   T    gather_X(const void* p, I offsets)           offsets: i32 or i64 lanes, in elements
  // For bool, T is the mask of 1-byte lanes.
  std::string load(DType memory, int lanes);
  std::string load_tail(DType memory, int lanes);
  std::string store(DType memory, int lanes);
  std::string store_tail(DType memory, int lanes);
  // ... of values that the memory's dtype has as they are: a half store does not round.
  std::string store_exact(DType memory, int lanes);
  std::string store_exact_tail(DType memory, int lanes);
  // ... where denormal bfloat16 may become 0, which an instruction does that rounds.
  std::string store_flushed(DType memory, int lanes);
  std::string store_flushed_tail(DType memory, int lanes);
  std::string store_stream(DType memory, int lanes);
  std::string gather(DType memory, DType offsets, int lanes);
  std::string fence();  // void name(): orders streaming stores before what follows

  // T name(F x). Float to integer truncates; out of range and NaN give what eager gives on x86: i32
  // and i64 their smallest value, i8, i16 and u8 the low bits of the i32 (u8 from f64: of the i64).
  // Integer to integer wraps. To f16 or bf16 rounds the value (to nearest even, NaN stays NaN) and
  // keeps it in f32. Not for bool: see mask_to and nonzero.
  std::string convert(DType from, DType to, int lanes);

  // M name(T x): x != 0, NaN included.
  std::string nonzero(DType from, int lanes);
  // T name(M m): 1 where true, else 0; M is the mask of `bytes` lanes.
  std::string mask_to(int bytes, DType to, int lanes);
  // M2 name(M1 m)
  std::string convert_mask(int from_bytes, int to_bytes, int lanes);
  // bool name(M m)
  std::string any(int bytes, int lanes);
  std::string all(int bytes, int lanes);
  // M name(i64 n): the first n lanes are true.
  std::string first_lanes(int bytes, int lanes);
  // Whether a read-modify-write store needs atomic() because threads may share the element.
  bool has_atomics() const { return target_.device != nullptr; }
  // The bits of a half float, an int16, as a value and back.
  std::string from_bits(DType half);
  std::string to_bits(DType half);
  // void name(void* p, T x): the element becomes fn(element, x), in the memory's dtype.
  std::string atomic(PreludeFn fn, DType memory);
  // "select": T select(M m, T x, T y), any T whose lanes are as wide as M's.
  std::string select();

  // Reductions to a scalar, S name(T x): halves are combined until one lane is left (lane i with
  // lane i + lanes/2 first), so the order depends on `lanes` alone. Floats: NaN propagates.
  std::string reduce(PreludeFn fn, DType dtype, int lanes);  // kAdd, kMul, kMin, kMax
  std::string reduce_and(DType dtype, int lanes);            // integers
  std::string reduce_or(DType dtype, int lanes);

  // void name(T* rows): transposes `lanes` vectors of `lanes` elements of 4 or 8 bytes in place. A
  // vector must fit a register.
  std::string transpose(DType dtype, int lanes);

  // ---- matrix products (codegen/cpp/cpp_product.h), in vectors of native lanes ----
  // void name(const A* a, i64 a_stride, const B* b, i64 b_stride, i64 steps, f32* c, i64 width,
  //           bool adds)
  // The sums over `steps` factors k of a[i, k] * b[k, j], for i < rows and j < vectors * lanes, go
  // to c[i * width + j], or are added to what is there. Rows of b are b_stride apart, its columns
  // are neighbours; rows of a are a_stride apart and its factors neighbours, or the other way
  // round.
  // A factor is a float32 or a pair of bfloat16, of which the sum of the two products counts
  // (has_pairs). Pairs are words of an f32 array, but that A is u16 where rows lie apart, and B
  // where they are to be joined: strides count elements of A and B.
  std::string product_tile(const PreludeTile& tile);
  // The same where the factors are neighbours in both, and columns of b are b_stride apart. Of
  // pairs, A and B are u16, which `steps` counts, too: the last one may be half a pair.
  std::string dot_tile(int64_t rows, int64_t columns, bool pairs);
  // void name(const void* from, i64 stride, i64 rows, i64 columns, f32* to): panels of vectors *
  // lanes columns of a matrix, one after the other, in each the rows one after the other; 0 for
  // columns that there are not. The matrix's rows are `stride` elements apart, or its columns are.
  std::string pack_rows(DType memory, int vectors);
  std::string pack_columns(DType memory, int vectors);
  // void name(const void* from, i64 stride, i64 rows, i64 columns, f32* to, i64 width): half floats
  // as float32, rows that were `stride` elements apart are then `width`.
  std::string widen_rows(DType memory);

  // Whether the target multiplies pairs of bfloat16.
  bool has_pairs() const { return target_.bf16_pairs; }
  // pack_columns, for `rows` bfloat16 that become pairs; where the last one has no second half, it
  // is 0, as in all that follows. Rows of zeros may fill a matrix unit's tiles.
  std::string pack_pairs(int vectors, bool whole_tiles = false);
  // void name(const void* from, i64 stride, i64 rows, i64 columns, f32* to, i64 width): panels of
  // `width` columns, a multiple of the lanes, of a matrix whose rows are `stride` elements apart;
  // two rows become one of pairs. Rows of zeros may fill a matrix unit's tiles.
  std::string join_rows(bool whole_tiles = false);
  // void name(const void* from, i64 stride, i64 rows, i64 columns, f32* to, i64 width): rows of
  // `columns` bfloat16 that were `stride` elements apart are then `width` pairs.
  std::string copy_pairs();

  // Whether the target has a unit that multiplies matrices of pairs, in tiles of at most kTileRows
  // rows, kTilePairs pairs and kTileColumns columns.
  bool has_tiles() const { return target_.bf16_tiles; }
  // void name(i64 rows, i64 pairs): sets the tiles' sizes for matrix_tile, up to 2 * kTileRows
  // rows, and up to kTilePairs pairs of a factor. A thread that has done so calls release_tiles at
  // last.
  std::string configure_tiles();
  std::string configure_tiles_of_two();  // ... for two times so many rows, at most kTileRows
  std::string release_tiles();           // void name()
  // An expression: how many pairs of so many rows there are in whole tiles.
  static std::string pairs_of_whole_tiles(const std::string& rows);
  // product_tile for pairs, of more than kTileRows rows or of no more, and one or two times
  // kTileColumns columns. `steps` counts pairs: whole tiles, or the one that is configured. There
  // may be more arguments:
  //   i64 parts, i64 a_part, i64 b_part   so many products are added up, each of operands that lie
  //                                       so far behind those of the one before
  //   i64 a_next, i64 c_next              the second tile's rows lie so far behind the first one's
  struct MatrixTile {
    bool more_rows = false;
    int vectors = 1;
    bool has_parts = false;
    bool is_of_two = false;
  };
  std::string matrix_tile(const MatrixTile& tile);
  // void name(const void* from, i64 stride, i64 rows, i64 columns, f32* to, i64 width): the columns
  // of a matrix whose rows are `stride` bfloat16 apart, as rows of pairs, `width` pairs apart.
  std::string turn_pairs();

  // ---- attention (codegen/cpp/cpp_attention.h): rows of float32, but for the first in whole
  // vectors of native lanes, whose last one may pass the end ----
  // void name(const void* from, i64 columns, f32* to): elements as float32.
  std::string read_row(DType memory);
  // void name(f32* x, i64 columns, f32 value), and the same that multiplies what is there.
  std::string fill_row();
  std::string scale_row();
  // void name(f32* s, i64 keys, i64 end, f32 base, f32* total): the scores s, none of which is
  // above base, become exp(s - base), and 0 from `keys` to `end`; what is below e^-87 becomes 0,
  // too. The lanes of a vector at `total` get the sum.
  std::string weigh_row();
  // void name(f32* s, i64 keys, i64 end, f32 factor, f32 base, f32* total): the same with 2^((s -
  // base) * factor), within 2^-18 of it, which is rounded: bfloat16 lie where s began. Where the
  // target multiplies pairs of them.
  std::string weigh_row_in_pairs();
  // f32 name(f32* s, i64 keys): the greatest but for NaN; -inf follows the last one in its vector.
  std::string greatest_of_row();
  // void name(const f32* a, i64 rows, i64 factors, const void* from, i64 b_stride, i64 keys,
  //           f32* c, i64 width)
  // The products of rows of a, one after the other, and of `keys` rows of b in memory, b_stride
  // apart: whole vectors of keys at c[i * width + j], anything behind the last key.
  std::string dot_rows(DType memory);
  // void name(const f32* a, i64 a_stride, i64 rows, const void* from, i64 b_stride, i64 keys,
  //           f32* c, i64 width)
  // Adds the rows of b in memory, of so many features, whole vectors, times a[i * a_stride + j] to
  // c[i * width ...].
  std::string sum_rows(DType memory, int64_t features);

  // void name(const f32* x, const f32* w, i64 rows, i64 channels, f32* to)
  // The sums over `rows` rows of taps that are the window's, of at least as many channels as there
  // are lanes.
  std::string window_tile(const PreludeWindow& window);

  // Everything registered so far, in dependency order.
  std::string text() const;

 private:
  std::string require(std::string_view name, DType dtype, int lanes);
  std::string add_pairs();
  std::string load_joined_rows();
  std::string load_part_of_joined_rows();
  std::string load_part_of_pairs();
  void print_configuration(const std::string& own, const std::string& top, const std::string& low);
  std::string power_of_two();
  void print_packing_of_columns(const std::string& own, DType memory, int vectors, int elements,
                                bool whole_tiles = false);
  void add_missing(std::string what);
  std::string fragment(std::string_view name, DType dtype, int lanes);
  std::string require_conversion(std::string_view name, DType from, DType to, int lanes);
  std::string pack_definition(std::string_view name, const std::string& own, DType dtype,
                              int lanes);
  std::string define(std::string name, const std::string& signature_and_body);
  std::string expand(std::string_view text, std::string_view own_name, std::string_view base,
                     DType dtype, int lanes);
  std::string half_of(std::string_view value, DType dtype, int lanes, bool high);
  std::string join(std::string_view low, std::string_view high, DType dtype, int lanes);
  std::string load_like(std::string_view name, DType memory, int lanes);
  std::string store_like(std::string_view name, DType memory, int lanes);
  std::string store_bits(std::string_view name, std::string_view how, std::string_view bits,
                         DType memory, int lanes);
  bool is_pack(int bytes, int lanes) const {
    return lanes > 1 && (target_.device != nullptr || bytes * lanes > target_.vector_bytes);
  }

  PreludeTarget target_;
  std::set<std::string, std::less<>> defined_;
  std::vector<std::string> missing_;
  std::string types_;
  std::string body_;
};

}  // namespace litz
