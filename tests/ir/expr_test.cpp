#include "ir/expr.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/print_program.h"
#include "support/error.h"

namespace litz {
namespace {

class ExprTest : public ::testing::Test {
 protected:
  Expr load(uint32_t buffer, DType dtype) {
    return exprs_.load(BufferId(buffer), dtype, {indices_.variable(0, size_)});
  }
  Expr f32(double value) { return exprs_.constant(DType::kFloat32, value); }
  Expr i32(int64_t value) { return exprs_.constant_int(DType::kInt32, value); }

  std::shared_ptr<IndexContext> shared_ = std::make_shared<IndexContext>();
  IndexContext& indices_ = *shared_;
  ExprContext exprs_{shared_};
  Index size_ = indices_.size_symbol("s0");
};

TEST_F(ExprTest, EqualExpressionsAreOneNode) {
  const Expr x = load(0, DType::kFloat32);
  EXPECT_EQ(x, load(0, DType::kFloat32));
  EXPECT_NE(x, load(1, DType::kFloat32));
  EXPECT_EQ(exprs_.binary(ExprOp::kAdd, x, f32(1)), exprs_.binary(ExprOp::kAdd, x, f32(1)));
  EXPECT_NE(exprs_.binary(ExprOp::kAdd, x, f32(1)), exprs_.binary(ExprOp::kAdd, x, f32(2)));
  EXPECT_NE(exprs_.reduced(0, DType::kFloat32), exprs_.reduced(1, DType::kFloat32));
  EXPECT_EQ(exprs_.index_value(size_ + 1), exprs_.index_value(size_ + 1));
}

TEST_F(ExprTest, OperandsHaveSmallerIds) {
  const Expr sum = exprs_.binary(ExprOp::kAdd, load(0, DType::kFloat32), f32(1));
  for (Expr operand : sum.operands()) EXPECT_LT(operand.id(), sum.id());
}

TEST_F(ExprTest, ZeroAndNegativeZeroDiffer) {
  EXPECT_NE(f32(0.0), f32(-0.0));
  EXPECT_EQ(f32(std::nan("1")), f32(std::nan("2")));
  EXPECT_NE(f32(std::nan("")), f32(-std::nan("")));
}

TEST_F(ExprTest, ConstantsAreInTheValueSetOfTheirDType) {
  EXPECT_EQ(f32(0.1).scalar().real, static_cast<double>(0.1f));
  EXPECT_EQ(exprs_.constant(DType::kBFloat16, 1.01).scalar().real, 1.0078125);
  EXPECT_EQ(exprs_.constant(DType::kFloat16, 65520.0).scalar().real,
            std::numeric_limits<double>::infinity());
  EXPECT_EQ(exprs_.constant_int(DType::kUInt8, -1).scalar().integer, 255);
  EXPECT_EQ(exprs_.constant_int(DType::kInt8, 200).scalar().integer, -56);
  EXPECT_EQ(exprs_.constant_int(DType::kBool, 7).scalar().integer, 1);
  EXPECT_EQ(exprs_.constant(DType::kInt32, 2.9).scalar().integer, 2);
  // 2^24 + 1 rounds once, to even.
  EXPECT_EQ(exprs_.constant_int(DType::kFloat32, 16777217).scalar().real, 16777216.0);
}

TEST_F(ExprTest, IntegerConstantsFold) {
  EXPECT_EQ(exprs_.binary(ExprOp::kAdd, i32(INT32_MAX), i32(1)), i32(INT32_MIN));
  EXPECT_EQ(exprs_.binary(ExprOp::kFloorDiv, i32(-7), i32(2)), i32(-4));
  EXPECT_EQ(exprs_.binary(ExprOp::kFloorDiv, i32(7), i32(0)), i32(0));
  EXPECT_EQ(exprs_.binary(ExprOp::kPow, i32(3), i32(40)), i32(689956897));
  EXPECT_EQ(exprs_.binary(ExprOp::kLt, i32(1), i32(2)), exprs_.constant_int(DType::kBool, 1));
  const Expr u8 = exprs_.constant_int(DType::kUInt8, 200);
  EXPECT_EQ(exprs_.binary(ExprOp::kMul, u8, u8).scalar().integer, 64);
}

TEST_F(ExprTest, FloatConstantsFoldInTheirOwnPrecision) {
  const Expr tenth = f32(0.1);
  EXPECT_EQ(exprs_.binary(ExprOp::kMul, tenth, tenth).scalar().real,
            static_cast<double>(0.1f * 0.1f));
  EXPECT_EQ(exprs_.binary(ExprOp::kDiv, f32(1), f32(3)).scalar().real,
            static_cast<double>(1.0f / 3.0f));
  EXPECT_EQ(exprs_.unary(ExprOp::kExp, f32(1)).op(), ExprOp::kExp);
}

TEST_F(ExprTest, AddingZeroToAFloatStays) {
  const Expr x = load(0, DType::kFloat32);
  EXPECT_EQ(exprs_.binary(ExprOp::kAdd, x, f32(0)).op(), ExprOp::kAdd);
  EXPECT_EQ(exprs_.binary(ExprOp::kMul, x, f32(0)).op(), ExprOp::kMul);
}

TEST_F(ExprTest, CastsThatLoseNothingAreSkipped) {
  const Expr x = load(0, DType::kBFloat16);
  EXPECT_EQ(exprs_.cast(x, DType::kBFloat16), x);
  EXPECT_EQ(exprs_.cast(exprs_.cast(x, DType::kFloat32), DType::kBFloat16), x);
  const Expr y = load(1, DType::kFloat32);
  const Expr rounded = exprs_.cast(exprs_.cast(y, DType::kBFloat16), DType::kFloat32);
  EXPECT_EQ(rounded.operand(0).op(), ExprOp::kCast);
  const Expr i = load(2, DType::kInt32);
  EXPECT_EQ(exprs_.cast(exprs_.cast(i, DType::kFloat64), DType::kInt8),
            exprs_.cast(i, DType::kInt8));
  const Expr through_float = exprs_.cast(exprs_.cast(i, DType::kFloat32), DType::kInt64);
  EXPECT_EQ(through_float.operand(0).op(), ExprOp::kCast);
  const Expr b = load(3, DType::kUInt8);
  EXPECT_EQ(exprs_.cast(exprs_.cast(b, DType::kInt8), DType::kInt32).operand(0).op(),
            ExprOp::kCast);
}

TEST_F(ExprTest, ChoicesWithOneOutcomeVanish) {
  const Expr x = load(0, DType::kFloat32);
  const Expr y = load(1, DType::kFloat32);
  const Expr c = load(2, DType::kBool);
  const Expr yes = exprs_.constant_int(DType::kBool, 1);
  const Expr no = exprs_.constant_int(DType::kBool, 0);
  EXPECT_EQ(exprs_.where(yes, x, y), x);
  EXPECT_EQ(exprs_.masked(no, x, y), y);
  EXPECT_EQ(exprs_.where(c, x, x), x);
  EXPECT_EQ(exprs_.masked(c, x, y).op(), ExprOp::kMasked);
}

TEST_F(ExprTest, ExchangedOperandsOfIntegersAreOneNode) {
  const Expr a = load(0, DType::kInt64);
  const Expr b = load(1, DType::kInt64);
  EXPECT_EQ(exprs_.binary(ExprOp::kAdd, b, a), exprs_.binary(ExprOp::kAdd, a, b));
  EXPECT_NE(exprs_.binary(ExprOp::kSub, b, a), exprs_.binary(ExprOp::kSub, a, b));
  const Expr one = exprs_.constant_int(DType::kInt64, 1);
  EXPECT_EQ(exprs_.binary(ExprOp::kMul, one, a).operand(1), one);
  const Expr x = load(2, DType::kFloat32);
  const Expr y = load(3, DType::kFloat32);
  // max(0, -0) is the first of the two.
  EXPECT_NE(exprs_.binary(ExprOp::kMax, x, y), exprs_.binary(ExprOp::kMax, y, x));
}

TEST_F(ExprTest, ChecksThatAlwaysPassVanish) {
  const Expr value = exprs_.index_value(indices_.variable(0, size_));
  EXPECT_EQ(exprs_.check_index(value, size_), value);
  EXPECT_EQ(exprs_.check_index(value, indices_.constant(4)).op(), ExprOp::kCheckIndex);
  const Expr three = exprs_.constant_int(DType::kInt64, 3);
  EXPECT_EQ(exprs_.check_index(three, indices_.constant(4)), three);
  EXPECT_EQ(exprs_.check_index(three, indices_.constant(3)).op(), ExprOp::kCheckIndex);
  const Expr index = load(1, DType::kInt64);
  EXPECT_NE(exprs_.check_index(index, size_),
            exprs_.check_index(index, size_, IndexFault::kRuntimeError));
  EXPECT_EQ(exprs_.check(three, exprs_.constant_int(DType::kBool, 1)), three);
  EXPECT_EQ(exprs_.check(three, exprs_.constant_int(DType::kBool, 0)).op(), ExprOp::kCheck);
}

TEST_F(ExprTest, WrongDTypesAreInternalErrors) {
  const Expr x = load(0, DType::kFloat32);
  const Expr i = load(1, DType::kInt64);
  const Expr b = load(2, DType::kBool);
  const Expr h = load(3, DType::kBFloat16);
  EXPECT_THROW(exprs_.binary(ExprOp::kAdd, x, i), InternalError);
  EXPECT_THROW(exprs_.unary(ExprOp::kExp, i), InternalError);
  EXPECT_THROW(exprs_.binary(ExprOp::kBitAnd, x, x), InternalError);
  EXPECT_THROW(exprs_.binary(ExprOp::kShiftLeft, b, b), InternalError);
  EXPECT_THROW(exprs_.binary(ExprOp::kAdd, b, b), InternalError);
  EXPECT_THROW(exprs_.binary(ExprOp::kAdd, h, h), InternalError);
  EXPECT_THROW(exprs_.where(i, x, x), InternalError);
  EXPECT_THROW(exprs_.where(b, x, i), InternalError);
  EXPECT_THROW(exprs_.bitcast(x, DType::kInt64), InternalError);
  EXPECT_THROW(exprs_.check_index(x, size_), InternalError);
  EXPECT_THROW(exprs_.check(x, x), InternalError);
  EXPECT_THROW(exprs_.check(h, b), InternalError);
  EXPECT_THROW(exprs_.binary(ExprOp::kNeg, x, x), InternalError);
  EXPECT_THROW(exprs_.make(ExprOp::kLoad, DType::kFloat32, {}), InternalError);
  EXPECT_THROW(exprs_.unary(ExprOp::kNeg, Expr()), InternalError);
  EXPECT_THROW(exprs_.load(BufferId(0), DType::kFloat32, {size_}, {x}), InternalError);
  EXPECT_THROW(exprs_.cast(x, DType::kComplex64), InternalError);
}

TEST_F(ExprTest, RewriterReplacesVariablesAndLoads) {
  const Expr x = load(0, DType::kFloat32);
  const Expr sum =
      exprs_.binary(ExprOp::kAdd, x,
                    exprs_.cast(exprs_.index_value(indices_.variable(0, size_)), DType::kFloat32));
  Substitution shift;
  shift.set(indices_.variable(0, size_), indices_.variable(1, size_) + 2);
  ExprRewriter rewriter(exprs_, shift,
                        [&](BufferId buffer, std::span<const Index> coordinates,
                            std::span<const Expr>, Expr original) {
                          EXPECT_EQ(buffer, BufferId(0));
                          EXPECT_EQ(original, x);
                          EXPECT_EQ(coordinates[0], indices_.variable(1, size_) + 2);
                          return f32(5);
                        });
  const Expr index = exprs_.index_value(indices_.variable(1, size_) + 2);
  EXPECT_EQ(rewriter.apply(sum),
            exprs_.binary(ExprOp::kAdd, f32(5), exprs_.cast(index, DType::kFloat32)));
}

TEST_F(ExprTest, RewriterKeepsLoadsWithoutAReplacement) {
  const Index other = indices_.variable(1, size_);
  const Expr gathered = exprs_.load(BufferId(0), DType::kFloat32, {indices_.indirect(0, size_)},
                                    {exprs_.check_index(load(1, DType::kInt64), size_)});
  Substitution rename;
  rename.set(indices_.variable(0, size_), other);
  const Expr renamed = ExprRewriter(exprs_, rename).apply(gathered);
  EXPECT_EQ(renamed.operand(0).operand(0).coordinates()[0], other);
  EXPECT_EQ(renamed.coordinates()[0], gathered.coordinates()[0]);
}

TEST_F(ExprTest, LongChainsDoNotOverflowTheStack) {
  Expr chain = load(0, DType::kFloat32);
  for (int i = 0; i < 100000; ++i) chain = exprs_.binary(ExprOp::kAdd, chain, f32(i % 7 + 1));
  size_t visited = 0;
  visit_postorder({&chain, 1}, [&](Expr) { ++visited; });
  EXPECT_EQ(visited, 100000u + 1 + 7);
  Substitution rename;
  rename.set(indices_.variable(0, size_), indices_.variable(1, size_));
  const Expr renamed = ExprRewriter(exprs_, rename).apply(chain);
  EXPECT_EQ(collect_indices({&renamed, 1}), std::vector<Index>{indices_.variable(1, size_)});
}

TEST_F(ExprTest, EveryOperationHasOneSpelling) {
#define LITZ_CHECK_SPELLING(name, spelling, ...)    \
  EXPECT_EQ(parse_expr_op(spelling), ExprOp::name); \
  EXPECT_EQ(to_string(ExprOp::name), spelling);
  LITZ_EXPR_OPS(LITZ_CHECK_SPELLING)
#undef LITZ_CHECK_SPELLING
  EXPECT_FALSE(parse_expr_op("nonsense"));
}

}  // namespace
}  // namespace litz
