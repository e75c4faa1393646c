// The list of scalar operations that loop bodies are made of. Enum, printer, parser, verifier,
// interpreter and every dialect derive from it; adding an operation touches this list, one row in
// each dialect, and a test.
//
// Meaning, for all operations:
// - Integers are two's complement and wrap in their own width. Bool is 0 or 1.
// - Floating point is IEEE 754, round to nearest even, in the operand's dtype; transcendental
//   functions may differ from the correctly rounded value within the bounds of docs/numerics.md.
//   float16 and bfloat16 have no arithmetic: lowering casts up to float32 and casts the result
//   down, so that every intermediate has the value eager gives it.
// - Nothing is undefined: shifts by a count out of range, integer division by zero and casts of
//   out-of-range floats have the values documented at the operation. (Eager raises an error for
//   integer division by zero, which is for kCheckDivisor to say, and crashes for the smallest int32
//   or int64 divided by -1, which wraps here.)
// - Evaluation has no order and no effects except kCheckIndex, kCheck and kCheckDivisor, which may
//   record an error, and kMasked, whose second operand is evaluated only where its first is true.
//
// Casts, as tensor.to(dtype) of eager on x86, whatever the length of the tensor:
// - integer to integer keeps the low bits; integer or float to bool is != 0 (NaN is true);
// - integer to float16 or bfloat16, and float64 to them, rounds to float32 first and then again;
// - float to integer truncates toward zero into an intermediate integer, of 64 bits for int64 and
//   uint8, of 32 bits for int32, int16 and int8, and keeps its low bits. Values outside the
//   intermediate's range, infinities and NaN give its smallest value: INT64_MIN, INT32_MIN, and so
//   0 for uint8, int16 and int8.
//
// Random words are those of Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As
// Easy as 1, 2, 3; 2011). The seed is the key. Words 4 c to 4 c + 3 are the four of the counter
// whose low 64 bits are c and whose high 64 bits are 0; word numbers are unsigned. So neighbours
// share a block, and code that computes several of them in a row computes each block once.
//
// ir/scalar_semantics.h says all this in C++.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace litz {

// How the result dtype follows: kSame as the operands (which agree), kBoolean, kSpecial as the
// operation says.
enum class OpResult : uint8_t { kSame, kBoolean, kSpecial };
// Which dtypes the operands may have.
enum class OpDomain : uint8_t {
  kAny,
  kFloat,
  kIntegral,
  kBits /* integral or bool */,
  kNumber /* not bool */
};

// X(enumerator, spelling, operand count, result, domain, meaning)
#define LITZ_LEAF_OPS(X)                                                            \
  X(kConstant, "const", 0, kSpecial, kAny, "a scalar of the node's dtype")          \
  X(kIndexValue, "index", 0, kSpecial, kAny, "value of an index expression, int64") \
  X(kLoad, "load", -1, kSpecial, kAny,                                              \
    "element of a buffer; operands are the runtime index values i0, i1, ...")       \
  X(kReduced, "reduced", 0, kSpecial, kAny, "result number n of the enclosing kernel's reductions")

#define LITZ_SPECIAL_OPS(X)                                                                       \
  X(kCast, "cast", 1, kSpecial, kAny, "conversion as tensor.to(dtype), see above")                \
  X(kBitcast, "bitcast", 1, kSpecial, kAny, "same bits as another dtype of the same size")        \
  X(kWhere, "where", 3, kSpecial, kAny,                                                           \
    "second operand where the first (bool) holds, else the third")                                \
  X(kMasked, "masked", 3, kSpecial, kAny,                                                         \
    "as where, but loads of the second operand happen only where the first holds")                \
  X(kCheckIndex, "check_index", 1, kSpecial, kAny,                                                \
    "int64 operand where 0 <= operand < extent; else records the status of its IndexFault, is 0") \
  X(kCheck, "check", 2, kSpecial, kNumber,                                                        \
    "the first operand; records LITZ_VALUE_OUT_OF_RANGE where the second (bool) does not hold")   \
  X(kCheckDivisor, "check_divisor", 1, kSame, kIntegral,                                          \
    "the operand; records LITZ_DIVISION_BY_ZERO where that is 0")                                 \
  X(kPhilox32, "philox32", 2, kSpecial, kIntegral,                                                \
    "int32: word number b (int64) of the random words of seed a (int64), see above")              \
  X(kPhilox64, "philox64", 2, kSpecial, kIntegral,                                                \
    "int64: words number 2 b and 2 b + 1 of them, the first one in the low half")

#define LITZ_UNARY_OPS(X)                                                                  \
  X(kNeg, "neg", 1, kSame, kNumber, "sign flipped, of zeros too; an integer wraps")        \
  X(kAbs, "abs", 1, kSame, kNumber, "absolute value; the smallest integer stays as it is") \
  X(kSign, "sign", 1, kSame, kNumber, "-1, 0 or 1; NaN gives 0 as eager's sgn")            \
  X(kFloor, "floor", 1, kSame, kFloat, "")                                                 \
  X(kCeil, "ceil", 1, kSame, kFloat, "")                                                   \
  X(kTrunc, "trunc", 1, kSame, kFloat, "")                                                 \
  X(kRound, "round", 1, kSame, kFloat, "half to even")                                     \
  X(kSqrt, "sqrt", 1, kSame, kFloat, "")                                                   \
  X(kRsqrt, "rsqrt", 1, kSame, kFloat, "1 / sqrt(a)")                                      \
  X(kReciprocal, "reciprocal", 1, kSame, kFloat, "1 / a")                                  \
  X(kExp, "exp", 1, kSame, kFloat, "")                                                     \
  X(kExp2, "exp2", 1, kSame, kFloat, "")                                                   \
  X(kExpm1, "expm1", 1, kSame, kFloat, "")                                                 \
  X(kLog, "log", 1, kSame, kFloat, "")                                                     \
  X(kLog2, "log2", 1, kSame, kFloat, "")                                                   \
  X(kLog10, "log10", 1, kSame, kFloat, "")                                                 \
  X(kLog1p, "log1p", 1, kSame, kFloat, "")                                                 \
  X(kSin, "sin", 1, kSame, kFloat, "")                                                     \
  X(kCos, "cos", 1, kSame, kFloat, "")                                                     \
  X(kTan, "tan", 1, kSame, kFloat, "")                                                     \
  X(kAsin, "asin", 1, kSame, kFloat, "")                                                   \
  X(kAcos, "acos", 1, kSame, kFloat, "")                                                   \
  X(kAtan, "atan", 1, kSame, kFloat, "")                                                   \
  X(kSinh, "sinh", 1, kSame, kFloat, "")                                                   \
  X(kCosh, "cosh", 1, kSame, kFloat, "")                                                   \
  X(kTanh, "tanh", 1, kSame, kFloat, "")                                                   \
  X(kAsinh, "asinh", 1, kSame, kFloat, "")                                                 \
  X(kAcosh, "acosh", 1, kSame, kFloat, "")                                                 \
  X(kAtanh, "atanh", 1, kSame, kFloat, "")                                                 \
  X(kErf, "erf", 1, kSame, kFloat, "")                                                     \
  X(kErfc, "erfc", 1, kSame, kFloat, "")                                                   \
  X(kErfinv, "erfinv", 1, kSame, kFloat, "")                                               \
  X(kLgamma, "lgamma", 1, kSame, kFloat, "")                                               \
  X(kDigamma, "digamma", 1, kSame, kFloat, "")                                             \
  X(kSigmoid, "sigmoid", 1, kSame, kFloat, "1 / (1 + exp(-a))")                            \
  X(kIsNan, "isnan", 1, kBoolean, kFloat, "")                                              \
  X(kIsInf, "isinf", 1, kBoolean, kFloat, "")                                              \
  X(kSignBit, "signbit", 1, kBoolean, kNumber, "sign bit of a float, a < 0 of an integer") \
  X(kBitNot, "bit_not", 1, kSame, kBits, "complement; of a bool the logical not")

#define LITZ_BINARY_OPS(X)                                                                         \
  X(kAdd, "add", 2, kSame, kNumber, "")                                                            \
  X(kSub, "sub", 2, kSame, kNumber, "")                                                            \
  X(kMul, "mul", 2, kSame, kNumber, "")                                                            \
  X(kDiv, "div", 2, kSame, kFloat, "IEEE division")                                                \
  X(kFloorDiv, "floor_div", 2, kSame, kNumber,                                                     \
    "torch.div rounding_mode=floor; integer by zero gives 0")                                      \
  X(kTruncDiv, "trunc_div", 2, kSame, kNumber,                                                     \
    "torch.div rounding_mode=trunc; integer by zero gives 0")                                      \
  X(kFmod, "fmod", 2, kSame, kNumber, "remainder with the sign of a; integer by zero gives 0")     \
  X(kRemainder, "remainder", 2, kSame, kNumber,                                                    \
    "remainder with the sign of b; integer by zero gives 0")                                       \
  X(kPow, "pow", 2, kSame, kNumber, "integers wrap; a negative integer exponent gives 1, -1 or 0") \
  X(kAtan2, "atan2", 2, kSame, kFloat, "")                                                         \
  X(kHypot, "hypot", 2, kSame, kFloat, "")                                                         \
  X(kCopySign, "copysign", 2, kSame, kFloat, "")                                                   \
  X(kNextAfter, "nextafter", 2, kSame, kFloat, "")                                                 \
  X(kMin, "min", 2, kSame, kAny, "NaN where either is NaN; the first where both are equal")        \
  X(kMax, "max", 2, kSame, kAny, "NaN where either is NaN; the first where both are equal")        \
  X(kBitAnd, "bit_and", 2, kSame, kBits, "")                                                       \
  X(kBitOr, "bit_or", 2, kSame, kBits, "")                                                         \
  X(kBitXor, "bit_xor", 2, kSame, kBits, "")                                                       \
  X(kShiftLeft, "shl", 2, kSame, kIntegral, "count outside [0, bits) gives 0")                     \
  X(kShiftRight, "shr", 2, kSame, kIntegral,                                                       \
    "arithmetic; count outside [0, bits) gives the sign fill")                                     \
  X(kEq, "eq", 2, kBoolean, kAny, "")                                                              \
  X(kNe, "ne", 2, kBoolean, kAny, "")                                                              \
  X(kLt, "lt", 2, kBoolean, kAny, "")                                                              \
  X(kLe, "le", 2, kBoolean, kAny, "")                                                              \
  X(kGt, "gt", 2, kBoolean, kAny, "")                                                              \
  X(kGe, "ge", 2, kBoolean, kAny, "")

#define LITZ_TERNARY_OPS(X) X(kFma, "fma", 3, kSame, kFloat, "a * b + c, rounded once")

#define LITZ_EXPR_OPS(X) \
  LITZ_LEAF_OPS(X) LITZ_SPECIAL_OPS(X) LITZ_UNARY_OPS(X) LITZ_BINARY_OPS(X) LITZ_TERNARY_OPS(X)

enum class ExprOp : uint8_t {
#define LITZ_EXPR_ENUM(name, ...) name,
  LITZ_EXPR_OPS(LITZ_EXPR_ENUM)
#undef LITZ_EXPR_ENUM
};

std::string_view to_string(ExprOp op);
int operand_count(ExprOp op);  // -1: any number
OpResult result_rule(ExprOp op);
OpDomain domain(ExprOp op);
std::optional<ExprOp> parse_expr_op(std::string_view spelling);

}  // namespace litz
