#include "codegen/triton/triton_ops.h"

#include "codegen/cpp/cpp_body.h"
#include "support/error.h"

namespace litz {
namespace {

std::string call(const std::string& function, const std::vector<TritonOperand>& operands) {
  std::string text = function + "(";
  for (size_t i = 0; i < operands.size(); ++i) text += (i == 0 ? "" : ", ") + operands[i].text;
  return text + ")";
}

// A float's integer goes through 64 bits for uint8 and through 32 for the other narrow ones, as in
// eager; then the low bits count.
std::string float_to_integer(const std::string& value, DType to) {
  switch (to) {
    case DType::kUInt8:
      return value + ".to(tl.int64).to(tl.uint8)";
    case DType::kInt8:
    case DType::kInt16:
      return value + ".to(tl.int32).to(" + triton_type(to) + ")";
    default:
      return value + ".to(" + triton_type(to) + ")";
  }
}

std::string cast(const TritonOperand& a, DType to) {
  const DType from = register_dtype(a.dtype);
  if (a.dtype == to) return a.text;
  if (to == DType::kBool) return a.text + " != 0";
  if (is_half(to)) {
    const std::string single = from == DType::kFloat32 ? a.text : a.text + ".to(tl.float32)";
    return single + ".to(" + triton_type(to) + ").to(tl.float32)";
  }
  if (from == to) return a.text;
  if (is_floating(from) && !is_floating(to)) return float_to_integer(a.text, to);
  return a.text + ".to(" + triton_type(to) + ")";
}

std::string bitcast(const TritonOperand& a, DType to) {
  std::string bits = a.text;
  if (is_half(a.dtype)) bits += ".to(" + triton_type(a.dtype) + ")";
  if (to == DType::kBool) return bits + " != 0";
  if (a.dtype == DType::kBool) return bits + ".to(" + triton_type(to) + ")";
  bits += ".to(" + triton_type(to) + ", bitcast=True)";
  return is_half(to) ? bits + ".to(tl.float32)" : bits;
}

}  // namespace

std::string triton_extreme(TritonPrelude& prelude, bool max, DType dtype) {
  const std::string stem = max ? "max" : "min";
  if (dtype == DType::kBool) return prelude.use(max ? "bit_or" : "bit_and");
  if (dtype == DType::kFloat64) return prelude.use(stem + "_double");
  return prelude.use(stem + (is_floating(dtype) ? "_float" : "_int"));
}

std::string triton_expression(TritonPrelude& prelude, ExprOp op, DType result,
                              const std::vector<TritonOperand>& operands) {
  const TritonOperand& a = operands[0];
  const DType dtype = register_dtype(a.dtype);
  const bool is_double = dtype == DType::kFloat64;
  const bool is_float = is_floating(dtype);
  const bool is_bool = dtype == DType::kBool;
  const bool has_sign = is_signed(dtype);
  const std::string bits = std::to_string(size_of(dtype) * 8);
  const auto infix = [&](const std::string& symbol) {
    const TritonOperand& b = operands[1];
    const bool left = !a.literal.empty() && b.literal.empty();
    const bool right = a.literal.empty() && !b.literal.empty();
    return (left ? a.literal : a.text) + " " + symbol + " " + (right ? b.literal : b.text);
  };
  const auto device = [&](const char* name) {
    return call(std::string("libdevice.") + name, operands);
  };
  const auto helper = [&](const std::string& name) { return call(prelude.use(name), operands); };
  const auto one = [&] { return triton_constant(false, 0, 1, dtype); };
  const auto quotient = [&](const std::string& x, const std::string& y) {
    return is_double ? x + " / " + y : "tl.div_rn(" + x + ", " + y + ")";
  };
  const auto root = [&] { return (is_double ? "libdevice.sqrt(" : "tl.sqrt_rn(") + a.text + ")"; };
  const auto shifted = [&](const std::string& name) {
    return prelude.use(name) + "(" + a.text + ", " + operands[1].text + ", " + bits + ")";
  };
  switch (op) {
    case ExprOp::kCast:
      return cast(a, result);
    case ExprOp::kBitcast:
      return bitcast(a, result);
    case ExprOp::kWhere:
      return "tl.where(" + a.text + ", " + operands[1].text + ", " + operands[2].text + ")";
    // Zero minus zero is not minus zero.
    case ExprOp::kNeg:
      if (!is_float) return "0 - " + a.text;
      return a.text + " * " +
             (is_double ? triton_constant(false, 0, -1, dtype) : std::string("(-1.0)"));
    case ExprOp::kAbs:
      return has_sign || is_float ? "tl.abs(" + a.text + ")" : a.text;
    case ExprOp::kSign: {
      const std::string type = triton_type(dtype);
      return "(" + a.text + " > 0).to(" + type + ") - (" + a.text + " < 0).to(" + type + ")";
    }
    case ExprOp::kFloor:
      return device("floor");
    case ExprOp::kCeil:
      return device("ceil");
    case ExprOp::kTrunc:
      return device("trunc");
    case ExprOp::kRound:
      return device("rint");
    case ExprOp::kSqrt:
      return root();
    case ExprOp::kRsqrt:
      return quotient(one(), root());
    case ExprOp::kReciprocal:
      return quotient(one(), a.text);
    case ExprOp::kExp:
      return device("exp");
    case ExprOp::kExp2:
      return device("exp2");
    case ExprOp::kExpm1:
      return device("expm1");
    case ExprOp::kLog:
      return device("log");
    case ExprOp::kLog2:
      return device("log2");
    case ExprOp::kLog10:
      return device("log10");
    case ExprOp::kLog1p:
      return device("log1p");
    case ExprOp::kSin:
      return device("sin");
    case ExprOp::kCos:
      return device("cos");
    case ExprOp::kTan:
      return device("tan");
    case ExprOp::kAsin:
      return device("asin");
    case ExprOp::kAcos:
      return device("acos");
    case ExprOp::kAtan:
      return device("atan");
    case ExprOp::kSinh:
      return device("sinh");
    case ExprOp::kCosh:
      return device("cosh");
    case ExprOp::kTanh:
      return device("tanh");
    case ExprOp::kAsinh:
      return device("asinh");
    case ExprOp::kAcosh:
      return device("acosh");
    case ExprOp::kAtanh:
      return device("atanh");
    case ExprOp::kErf:
      return device("erf");
    case ExprOp::kErfc:
      return device("erfc");
    case ExprOp::kErfinv:
      return device("erfinv");
    case ExprOp::kLgamma:
      return device("lgamma");
    case ExprOp::kDigamma: {
      const std::string function = prelude.use("digamma");
      if (is_double) return function + "(" + a.text + ")";
      return function + "(" + a.text + ".to(tl.float64)).to(tl.float32)";
    }
    case ExprOp::kSigmoid:
      return quotient(one(), "(" + one() + " + libdevice.exp(" + a.text + " * " +
                                 triton_constant(false, 0, -1, dtype) + "))");
    case ExprOp::kIsNan:
      return a.text + " != " + a.text;
    case ExprOp::kIsInf:
      return "tl.abs(" + a.text + ") == float(\"inf\")";
    case ExprOp::kSignBit:
      if (!is_float) return a.text + " < 0";
      return a.text + ".to(tl.int" + bits + ", bitcast=True) < 0";
    case ExprOp::kBitNot:
      if (is_bool) return a.text + " == 0";
      return has_sign ? "~" + a.text : a.text + " ^ 255";
    case ExprOp::kAdd:
      return infix("+");
    case ExprOp::kSub:
      return infix("-");
    case ExprOp::kMul:
      return infix("*");
    case ExprOp::kDiv:
      return quotient(a.text, operands[1].text);
    case ExprOp::kFloorDiv:
      if (is_float) return helper(is_double ? "floor_div_double" : "floor_div_float");
      return helper(has_sign ? "floor_div_signed" : "div_unsigned");
    case ExprOp::kTruncDiv:
      if (is_float) return "libdevice.trunc(" + quotient(a.text, operands[1].text) + ")";
      return helper(has_sign ? "trunc_div_signed" : "div_unsigned");
    case ExprOp::kFmod:
      if (is_float) return device("fmod");
      return helper(has_sign ? "fmod_signed" : "mod_unsigned");
    case ExprOp::kRemainder:
      if (is_float) return helper("remainder_float");
      return helper(has_sign ? "remainder_signed" : "mod_unsigned");
    case ExprOp::kPow:
      if (is_float) return device("pow");
      return helper(has_sign ? "pow_signed" : "pow_unsigned");
    case ExprOp::kAtan2:
      return device("atan2");
    case ExprOp::kHypot:
      return device("hypot");
    case ExprOp::kCopySign:
      return device("copysign");
    case ExprOp::kNextAfter:
      return device("nextafter");
    case ExprOp::kMin:
    case ExprOp::kMax:
      if (is_bool) return infix(op == ExprOp::kMin ? "&" : "|");
      return call(triton_extreme(prelude, op == ExprOp::kMax, dtype), operands);
    case ExprOp::kBitAnd:
      return infix("&");
    case ExprOp::kBitOr:
      return infix("|");
    case ExprOp::kBitXor:
      return infix("^");
    case ExprOp::kShiftLeft:
      return shifted("shift_left");
    case ExprOp::kShiftRight:
      return shifted(has_sign ? "shift_right_signed" : "shift_right_unsigned");
    case ExprOp::kEq:
      return infix("==");
    case ExprOp::kNe:
      return infix("!=");
    case ExprOp::kLt:
      return is_bool ? "(" + a.text + " == 0) & " + operands[1].text : infix("<");
    case ExprOp::kLe:
      return is_bool ? "(" + a.text + " == 0) | " + operands[1].text : infix("<=");
    case ExprOp::kGt:
      return is_bool ? a.text + " & (" + operands[1].text + " == 0)" : infix(">");
    case ExprOp::kGe:
      return is_bool ? a.text + " | (" + operands[1].text + " == 0)" : infix(">=");
    case ExprOp::kFma:
      return call("tl.fma", operands);
    case ExprOp::kPhilox32:
      return call(prelude.use("philox32"), operands);
    case ExprOp::kPhilox64:
      return call(prelude.use("philox64"), operands);
    case ExprOp::kConstant:
    case ExprOp::kIndexValue:
    case ExprOp::kLoad:
    case ExprOp::kReduced:
    case ExprOp::kMasked:
    case ExprOp::kCheckIndex:
    case ExprOp::kCheck:
    case ExprOp::kCheckDivisor:
      break;
  }
  LITZ_CHECK(false, "operation " + std::string(to_string(op)) + " is no function of its operands");
}

}  // namespace litz
