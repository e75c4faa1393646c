#include "symbolic/index.h"

#include <algorithm>
#include <unordered_set>

#include "support/error.h"
#include "symbolic/node.h"
#include "symbolic/sum.h"

namespace litz {

IndexKind Index::kind() const { return node_->kind; }
uint32_t Index::id() const { return node_->id; }
IndexContext& Index::context() const { return *node_->context; }

bool Index::is_constant(int64_t value) const { return is_constant() && node_->constant == value; }

std::optional<int64_t> Index::as_constant() const {
  if (!is_constant()) return std::nullopt;
  return node_->constant;
}

int64_t Index::constant() const {
  LITZ_CHECK(is_constant(), to_string(*this) + " is not a constant");
  return node_->constant;
}

SymbolKind Index::symbol_kind() const {
  LITZ_CHECK(is_symbol(), to_string(*this) + " is not a symbol");
  return node_->symbol->kind;
}

std::string_view Index::symbol_name() const {
  LITZ_CHECK(is_symbol(), to_string(*this) + " is not a symbol");
  return node_->symbol->name;
}

uint32_t Index::symbol_number() const {
  LITZ_CHECK(is_symbol(), to_string(*this) + " is not a symbol");
  return node_->symbol->number;
}

Index Index::extent() const {
  LITZ_CHECK(symbol_kind() != SymbolKind::kSize, to_string(*this) + " is a size: it has no extent");
  return node_->symbol->extent;
}

int64_t Index::sum_constant() const {
  return kind() == IndexKind::kSum || is_constant() ? node_->constant : 0;
}

std::span<const std::pair<int64_t, Index>> Index::terms() const {
  LITZ_CHECK(kind() == IndexKind::kSum, to_string(*this) + " is not a sum");
  return {node_->terms, node_->count};
}

std::span<const Index> Index::operands() const {
  if (node_->operands == nullptr) return {};
  return {node_->operands, node_->count};
}

ValueRange Index::range() const { return node_->range; }

bool Index::depends_on(Index symbol) const {
  const uint64_t bits = symbol.node()->symbols;
  if ((node_->symbols & bits) == 0) return false;
  std::vector<Index> stack = {*this};
  std::unordered_set<Index> seen;
  while (!stack.empty()) {
    const Index at = stack.back();
    stack.pop_back();
    if (at == symbol) return true;
    if (at.node()->tree_size > 1 && !seen.insert(at).second) continue;
    const auto push = [&](Index child) {
      if ((child.node()->symbols & bits) != 0) stack.push_back(child);
    };
    if (at.kind() == IndexKind::kSum) {
      for (const Term& term : at.terms()) push(term.second);
    } else {
      for (Index operand : at.operands()) push(operand);
    }
  }
  return false;
}

SumView::SumView(Index a) : single_(1, a), constant_(a.sum_constant()) {
  if (a.kind() == IndexKind::kSum) {
    terms_ = a.terms();
  } else if (!a.is_constant()) {
    terms_ = {&single_, 1};
  }
}

Index operator+(Index a, Index b) {
  SumBuilder sum(a.context());
  sum.add(a, 1);
  sum.add(b, 1);
  return sum.finish();
}

Index operator-(Index a, Index b) {
  SumBuilder sum(a.context());
  sum.add(a, 1);
  sum.add(b, -1);
  return sum.finish();
}

Index operator-(Index a) { return a * -1; }

Index operator+(Index a, int64_t b) {
  const SumView view(a);
  return IndexBuilder::sum(a.context(), add_checked(view.constant(), b), view.terms());
}

Index operator-(Index a, int64_t b) {
  const SumView view(a);
  int64_t constant;
  if (__builtin_sub_overflow(view.constant(), b, &constant)) throw IndexTooLarge();
  return IndexBuilder::sum(a.context(), constant, view.terms());
}

Index operator*(Index a, int64_t b) {
  if (b == 0) return a.context().constant(0);
  if (b == 1) return a;
  if (a.kind() != IndexKind::kSum && !a.is_constant()) {
    const Term term(b, a);
    return IndexBuilder::sum(a.context(), 0, {&term, 1});
  }
  SumBuilder sum(a.context());
  sum.add(a, b);
  return sum.finish();
}

Index operator*(Index a, Index b) {
  if (b.is_constant()) return a * b.constant();
  if (a.is_constant()) return b * a.constant();
  SumBuilder sum(a.context());
  const SumView left(a);
  const SumView right(b);
  const auto add = [&](int64_t coefficient, std::span<const Index> x, std::span<const Index> y) {
    std::vector<Index> factors(x.size() + y.size());
    std::merge(x.begin(), x.end(), y.begin(), y.end(), factors.begin(), IndexLess());
    sum.add(IndexBuilder::product(a.context(), factors), coefficient);
  };
  for (const auto& [c, s] : left.terms()) {
    for (const auto& [d, t] : right.terms()) {
      add(multiply_checked(c, d), factors_of(s), factors_of(t));
    }
    if (right.constant() != 0) sum.add(s, multiply_checked(c, right.constant()));
  }
  if (left.constant() != 0) sum.add(b, left.constant());
  return sum.finish();
}

}  // namespace litz
