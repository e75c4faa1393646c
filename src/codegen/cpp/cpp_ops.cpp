#include "codegen/cpp/cpp_ops.h"

#include <optional>

#include "codegen/cpp/cpp_body.h"
#include "codegen/cpp/cpp_text.h"
#include "support/error.h"

namespace litz {
namespace {

// Operations that are one prelude function.
std::optional<PreludeFn> prelude_function(ExprOp op) {
  switch (op) {
    case ExprOp::kNeg:
      return PreludeFn::kNeg;
    case ExprOp::kAbs:
      return PreludeFn::kAbs;
    case ExprOp::kSign:
      return PreludeFn::kSign;
    case ExprOp::kFloor:
      return PreludeFn::kFloor;
    case ExprOp::kCeil:
      return PreludeFn::kCeil;
    case ExprOp::kTrunc:
      return PreludeFn::kTrunc;
    case ExprOp::kRound:
      return PreludeFn::kRound;
    case ExprOp::kSqrt:
      return PreludeFn::kSqrt;
    case ExprOp::kRsqrt:
      return PreludeFn::kRsqrt;
    case ExprOp::kReciprocal:
      return PreludeFn::kReciprocal;
    case ExprOp::kExp:
      return PreludeFn::kExp;
    case ExprOp::kExp2:
      return PreludeFn::kExp2;
    case ExprOp::kExpm1:
      return PreludeFn::kExpm1;
    case ExprOp::kLog:
      return PreludeFn::kLog;
    case ExprOp::kLog2:
      return PreludeFn::kLog2;
    case ExprOp::kLog10:
      return PreludeFn::kLog10;
    case ExprOp::kLog1p:
      return PreludeFn::kLog1p;
    case ExprOp::kSin:
      return PreludeFn::kSin;
    case ExprOp::kCos:
      return PreludeFn::kCos;
    case ExprOp::kTan:
      return PreludeFn::kTan;
    case ExprOp::kAsin:
      return PreludeFn::kAsin;
    case ExprOp::kAcos:
      return PreludeFn::kAcos;
    case ExprOp::kAtan:
      return PreludeFn::kAtan;
    case ExprOp::kSinh:
      return PreludeFn::kSinh;
    case ExprOp::kCosh:
      return PreludeFn::kCosh;
    case ExprOp::kTanh:
      return PreludeFn::kTanh;
    case ExprOp::kAsinh:
      return PreludeFn::kAsinh;
    case ExprOp::kAcosh:
      return PreludeFn::kAcosh;
    case ExprOp::kAtanh:
      return PreludeFn::kAtanh;
    case ExprOp::kErf:
      return PreludeFn::kErf;
    case ExprOp::kErfc:
      return PreludeFn::kErfc;
    case ExprOp::kErfinv:
      return PreludeFn::kErfinv;
    case ExprOp::kLgamma:
      return PreludeFn::kLgamma;
    case ExprOp::kDigamma:
      return PreludeFn::kDigamma;
    case ExprOp::kSigmoid:
      return PreludeFn::kSigmoid;
    case ExprOp::kAdd:
      return PreludeFn::kAdd;
    case ExprOp::kSub:
      return PreludeFn::kSub;
    case ExprOp::kMul:
      return PreludeFn::kMul;
    case ExprOp::kFloorDiv:
      return PreludeFn::kFloorDiv;
    case ExprOp::kTruncDiv:
      return PreludeFn::kTruncDiv;
    case ExprOp::kFmod:
      return PreludeFn::kFmod;
    case ExprOp::kRemainder:
      return PreludeFn::kRemainder;
    case ExprOp::kPow:
      return PreludeFn::kPow;
    case ExprOp::kAtan2:
      return PreludeFn::kAtan2;
    case ExprOp::kHypot:
      return PreludeFn::kHypot;
    case ExprOp::kCopySign:
      return PreludeFn::kCopysign;
    case ExprOp::kNextAfter:
      return PreludeFn::kNextafter;
    case ExprOp::kMin:
      return PreludeFn::kMin;
    case ExprOp::kMax:
      return PreludeFn::kMax;
    case ExprOp::kShiftLeft:
      return PreludeFn::kShiftLeft;
    case ExprOp::kShiftRight:
      return PreludeFn::kShiftRight;
    case ExprOp::kFma:
      return PreludeFn::kFma;
    case ExprOp::kConstant:
    case ExprOp::kIndexValue:
    case ExprOp::kLoad:
    case ExprOp::kReduced:
    case ExprOp::kCast:
    case ExprOp::kBitcast:
    case ExprOp::kWhere:
    case ExprOp::kMasked:
    case ExprOp::kCheckIndex:
    case ExprOp::kCheck:
    case ExprOp::kCheckDivisor:
    case ExprOp::kPhilox32:
    case ExprOp::kPhilox64:
    case ExprOp::kIsNan:
    case ExprOp::kIsInf:
    case ExprOp::kSignBit:
    case ExprOp::kBitNot:
    case ExprOp::kDiv:
    case ExprOp::kBitAnd:
    case ExprOp::kBitOr:
    case ExprOp::kBitXor:
    case ExprOp::kEq:
    case ExprOp::kNe:
    case ExprOp::kLt:
    case ExprOp::kLe:
    case ExprOp::kGt:
    case ExprOp::kGe:
      return std::nullopt;
  }
  return std::nullopt;
}

// The infix operator of an operation that C++ has on scalars and vectors alike.
std::string_view infix(ExprOp op) {
  switch (op) {
    case ExprOp::kAdd:
      return "+";
    case ExprOp::kSub:
      return "-";
    case ExprOp::kMul:
      return "*";
    case ExprOp::kDiv:
      return "/";
    case ExprOp::kBitAnd:
      return "&";
    case ExprOp::kBitOr:
      return "|";
    case ExprOp::kBitXor:
      return "^";
    case ExprOp::kEq:
      return "==";
    case ExprOp::kNe:
      return "!=";
    case ExprOp::kLt:
      return "<";
    case ExprOp::kLe:
      return "<=";
    case ExprOp::kGt:
      return ">";
    case ExprOp::kGe:
      return ">=";
    default:
      return {};
  }
}

std::string join(const std::string& function, const std::vector<CppOperand>& operands) {
  std::string text = function + "(";
  for (size_t i = 0; i < operands.size(); ++i) text += (i == 0 ? "" : ", ") + operands[i].text;
  return text + ")";
}

std::string infinity(DType dtype) {
  return dtype == DType::kFloat64 ? "__builtin_inf()" : "__builtin_inff()";
}

// Comparisons and min/max of masks, which are all ones or zero.
std::string mask_expression(ExprOp op, const std::string& a, const std::string& b) {
  switch (op) {
    case ExprOp::kBitAnd:
    case ExprOp::kMin:
      return a + " & " + b;
    case ExprOp::kBitOr:
    case ExprOp::kMax:
      return a + " | " + b;
    case ExprOp::kBitXor:
    case ExprOp::kNe:
      return a + " ^ " + b;
    case ExprOp::kEq:
      return "(" + a + " ^ " + b + ") == 0";
    case ExprOp::kLt:
      return "(" + a + " == 0) & " + b;
    case ExprOp::kLe:
      return "(" + a + " == 0) | " + b;
    case ExprOp::kGt:
      return a + " & (" + b + " == 0)";
    case ExprOp::kGe:
      return a + " | (" + b + " == 0)";
    default:
      LITZ_CHECK(false, "operation " + std::string(to_string(op)) + " on bools");
  }
}

std::string cast_text(Prelude& prelude, DType from, DType to, const std::string& value, int lanes) {
  const DType source = register_dtype(from);
  if (source == to || (from == to)) return value;
  // A half in registers is a float32 already; widening it is nothing.
  if (is_half(from) && to == DType::kFloat32) return value;
  return prelude.convert(source, to, lanes) + "(" + value + ")";
}

// The bits of a half are in memory only.
std::string bitcast_half_scalar(Prelude& prelude, DType from, DType to, const std::string& value) {
  const std::string bits = is_half(from) ? prelude.to_bits(from) + "(" + value + ")" : value;
  const std::string result = prelude.type(to, 1);
  if (!is_half(to)) return "(" + result + ")" + bits;
  return prelude.from_bits(to) + "(" + bits + ")";
}

std::string bitcast_half(Prelude& prelude, DType from, DType to, const std::string& value,
                         int lanes) {
  const std::string result = prelude.type(register_dtype(to), lanes);
  const std::string store = prelude.store(from, lanes);
  const std::string load = prelude.load(to, lanes);
  return "[&]{ " + prelude.type(DType::kInt16, 1) + " m[" + std::to_string(lanes) + "]; " + store +
         "(m, " + value + "); const " + result + " r = " + load + "(m); return r; }()";
}

}  // namespace

std::string cpp_scalar_expression(Prelude& prelude, ExprOp op, DType result,
                                  const std::vector<CppOperand>& operands) {
  const CppOperand& a = operands[0];
  const DType dtype = register_dtype(a.dtype);
  const bool is_bool = dtype == DType::kBool;
  const std::string type =
      register_dtype(result) == DType::kBool ? "bool" : prelude.type(register_dtype(result), 1);
  switch (op) {
    case ExprOp::kCast:
      if (result == DType::kBool) return is_bool ? a.text : a.text + " != 0";
      if (is_bool) return "(" + type + ")" + a.text;
      return cast_text(prelude, a.dtype, result, a.text, 1);
    case ExprOp::kBitcast:
      if (is_half(a.dtype) || is_half(result))
        return bitcast_half_scalar(prelude, a.dtype, result, a.text);
      if (result == DType::kBool) return a.text + " != 0";
      if (is_bool) return "(" + type + ")" + a.text;
      return "__builtin_bit_cast(" + type + ", " + a.text + ")";
    case ExprOp::kWhere:
      return a.text + " ? " + operands[1].text + " : " + operands[2].text;
    case ExprOp::kIsNan:
      return a.text + " != " + a.text;
    case ExprOp::kIsInf:
      return prelude.function(PreludeFn::kAbs, dtype, 1) + "(" + a.text + ") == " + infinity(dtype);
    case ExprOp::kSignBit:
      if (!is_floating(dtype)) return a.text + " < 0";
      return "__builtin_bit_cast(" +
             prelude.type(integer_of_bytes(static_cast<int64_t>(size_of(dtype))), 1) + ", " +
             a.text + ") < 0";
    case ExprOp::kBitNot:
      return is_bool ? "!" + a.text : "(" + type + ")~" + a.text;
    case ExprOp::kPhilox32:
    case ExprOp::kPhilox64:
      return join(prelude.philox(result, 1), operands);
    default:
      break;
  }
  if (is_bool) {
    if (op == ExprOp::kMin) return a.text + " & " + operands[1].text;
    if (op == ExprOp::kMax) return a.text + " | " + operands[1].text;
  }
  const bool exact_infix = is_bool || is_floating(dtype) || result == DType::kBool ||
                           op == ExprOp::kBitAnd || op == ExprOp::kBitOr || op == ExprOp::kBitXor;
  if (const std::string_view symbol = infix(op); !symbol.empty() && exact_infix) {
    const std::string text = a.text + " " + std::string(symbol) + " " + operands[1].text;
    return is_floating(dtype) || result == DType::kBool ? text : "(" + type + ")(" + text + ")";
  }
  const std::optional<PreludeFn> function = prelude_function(op);
  LITZ_CHECK(function.has_value(), "operation " + std::string(to_string(op)) + " has no C++ text");
  return join(prelude.function(*function, dtype, 1), operands);
}

CppVectorExpression cpp_vector_expression(Prelude& prelude, ExprOp op, DType result,
                                          const std::vector<CppOperand>& operands, int lanes) {
  const CppOperand& a = operands[0];
  const DType dtype = register_dtype(a.dtype);
  const bool is_bool = dtype == DType::kBool;
  const int bytes = static_cast<int>(size_of(dtype));
  const std::string type =
      result == DType::kBool ? "" : prelude.type(register_dtype(result), lanes);
  switch (op) {
    case ExprOp::kCast:
      if (result == DType::kBool) {
        if (is_bool) return {a.text, a.mask_bytes};
        return {prelude.nonzero(dtype, lanes) + "(" + a.text + ")", bytes};
      }
      if (is_bool)
        return {prelude.mask_to(a.mask_bytes, register_dtype(result), lanes) + "(" + a.text + ")"};
      return {cast_text(prelude, a.dtype, result, a.text, lanes)};
    case ExprOp::kBitcast:
      if (is_half(a.dtype) || is_half(result))
        return {bitcast_half(prelude, a.dtype, result, a.text, lanes)};
      if (result == DType::kBool)
        return {prelude.nonzero(dtype, lanes) + "(" + a.text + ")", bytes};
      if (is_bool)
        return {prelude.mask_to(a.mask_bytes, register_dtype(result), lanes) + "(" + a.text + ")"};
      return {"__builtin_bit_cast(" + type + ", " + a.text + ")"};
    case ExprOp::kWhere:
      if (result == DType::kBool) {
        return {"(" + a.text + " & " + operands[1].text + ") | ((" + a.text + " == 0) & " +
                    operands[2].text + ")",
                a.mask_bytes};
      }
      return {join(prelude.select(), operands)};
    case ExprOp::kIsNan:
      return {a.text + " != " + a.text, bytes};
    case ExprOp::kIsInf:
      return {prelude.function(PreludeFn::kAbs, dtype, lanes) + "(" + a.text +
                  ") == " + infinity(dtype),
              bytes};
    case ExprOp::kSignBit:
      if (!is_floating(dtype)) return {a.text + " < 0", bytes};
      return {"__builtin_bit_cast(" + prelude.type(integer_of_bytes(bytes), lanes) + ", " + a.text +
                  ") < 0",
              bytes};
    case ExprOp::kBitNot:
      if (is_bool) return {a.text + " == 0", a.mask_bytes};
      return {"~" + a.text};
    default:
      break;
  }
  if (is_bool) return {mask_expression(op, a.text, operands[1].text), a.mask_bytes};
  const bool exact_infix = is_floating(dtype) || result == DType::kBool || op == ExprOp::kBitAnd ||
                           op == ExprOp::kBitOr || op == ExprOp::kBitXor;
  if (const std::string_view symbol = infix(op); !symbol.empty() && exact_infix) {
    return {a.text + " " + std::string(symbol) + " " + operands[1].text,
            result == DType::kBool ? bytes : 0};
  }
  const std::optional<PreludeFn> function = prelude_function(op);
  LITZ_CHECK(function.has_value(), "operation " + std::string(to_string(op)) + " has no C++ text");
  return {join(prelude.function(*function, dtype, lanes), operands)};
}

}  // namespace litz
