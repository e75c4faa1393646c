// Sums under construction. Private to this room.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "support/error.h"
#include "symbolic/node.h"

namespace litz {

// The index arithmetic of this graph does not fit int64.
class IndexTooLarge : public UserError {
 public:
  IndexTooLarge();
};

// Collects scaled terms; finish() merges equal ones, applies the sum rules and interns the result.
class SumBuilder {
 public:
  explicit SumBuilder(IndexContext& context) : context_(context) { terms_.reserve(8); }

  void add(Index a, int64_t scale);
  void add_constant(int64_t value) { constant_ = add_checked(constant_, value); }
  Index finish();

  // The steps of finish(): merge() sorts the terms and adds equal ones up, which is how the rules
  // see them; intern() makes the sum as it stands.
  void merge();
  Index intern() const { return IndexBuilder::sum(context_, constant_, terms_); }

  IndexContext& context() const { return context_; }
  std::span<const Term> terms() const { return terms_; }
  int64_t coefficient(Index term) const;  // 0 where there is none
  bool includes(Index a) const;  // a has terms, and all are here with the same coefficients
  bool covers(Index a) const;    // the same with coefficients that are at least as far from 0
  // Subtracts every one of `old` and adds `by`. (The sum of `old` would be rewritten by the very
  // rule that asks.)
  void replace(std::initializer_list<Index> old, Index by);

 private:
  IndexContext& context_;
  int64_t constant_ = 0;
  std::vector<Term> terms_;
};

// Rewrites part of a sum; false where the rule does not apply.
struct SumRule {
  std::string_view equation;
  bool (*apply)(SumBuilder& sum);
};
std::span<const SumRule> sum_rules();

}  // namespace litz
