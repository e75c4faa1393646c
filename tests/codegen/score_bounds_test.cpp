#include "codegen/cpp/score_bounds.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>

namespace litz {
namespace {

class ScoreBounds : public testing::Test {
 protected:
  Expr position(Index index) { return exprs_.index_value(index); }
  Expr masked(Expr condition, Expr score) {
    return exprs_.where(condition, score,
                        exprs_.constant(DType::kFloat32, -std::numeric_limits<double>::infinity()));
  }
  Expr at_most(Expr a, Expr b) { return exprs_.binary(ExprOp::kLe, a, b); }
  Expr plus(Expr a, Expr b) { return exprs_.binary(ExprOp::kAdd, a, b); }
  Expr both(Expr a, Expr b) { return exprs_.binary(ExprOp::kBitAnd, a, b); }

  std::shared_ptr<IndexContext> indices_ = std::make_shared<IndexContext>();
  ExprContext exprs_{indices_};
  const Index query_ = indices_->variable(0, indices_->constant(100));
  const Index key_ = indices_->variable(1, indices_->constant(100));
  const Expr score_ = exprs_.binary(ExprOp::kMul, exprs_.reduced(0, DType::kFloat32),
                                    exprs_.constant(DType::kFloat32, 0.5));
  const Expr causal_ = at_most(position(key_), position(query_));
};

TEST_F(ScoreBounds, TakeUpperBoundsOut) {
  const BoundedScore bounded = bounded_score(masked(causal_, score_), query_, key_);
  EXPECT_EQ(bounded.rest, score_);
  ASSERT_EQ(bounded.upper.size(), 1U);
  EXPECT_TRUE(bounded.upper[0].first.is_constant(0));
  EXPECT_EQ(bounded.upper[0].step, 1);
  EXPECT_EQ(bounded.all.size(), 1U);
}

TEST_F(ScoreBounds, KeepOtherConditions) {
  const Expr window = exprs_.binary(ExprOp::kLt, position(query_), position(key_ + 5));
  const BoundedScore bounded = bounded_score(masked(both(causal_, window), score_), query_, key_);
  EXPECT_EQ(bounded.rest, masked(window, score_));
  EXPECT_EQ(bounded.upper.size(), 1U);
  EXPECT_EQ(bounded.all.size(), 2U);
}

TEST_F(ScoreBounds, TakeOutWhatLiesInside) {
  const BoundedScore bounded = bounded_score(
      masked(causal_, masked(at_most(position(key_), position(indices_->constant(40))), score_)),
      query_, key_);
  EXPECT_EQ(bounded.rest, score_);
  EXPECT_EQ(bounded.upper.size(), 2U);
}

TEST_F(ScoreBounds, TakeTermsForConditions) {
  const Expr zero = exprs_.constant(DType::kFloat32, 0);
  const Expr always = exprs_.constant(DType::kBool, 1);
  const BoundedScore bounded =
      bounded_score(plus(score_, masked(both(causal_, always), zero)), query_, key_);
  EXPECT_EQ(bounded.rest, score_);
  EXPECT_EQ(bounded.upper.size(), 1U);
  const Expr bias = plus(score_, masked(causal_, exprs_.constant(DType::kFloat32, 1)));
  EXPECT_EQ(bounded_score(bias, query_, key_).rest, bias);
}

TEST_F(ScoreBounds, KeepWhatIsNoMask) {
  // A finite number is a score like any other.
  const Expr score = exprs_.where(causal_, score_, exprs_.constant(DType::kFloat32, -1e30));
  const BoundedScore bounded = bounded_score(score, query_, key_);
  EXPECT_EQ(bounded.rest, score);
  EXPECT_TRUE(bounded.all.empty());
  // Only one of two has to hold.
  const Expr either =
      masked(exprs_.binary(ExprOp::kBitOr, causal_, at_most(position(key_), position(query_ + 1))),
             score_);
  EXPECT_EQ(bounded_score(either, query_, key_).rest, either);
  EXPECT_TRUE(bounded_score(either, query_, key_).upper.empty());
}

}  // namespace
}  // namespace litz
