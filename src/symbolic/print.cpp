#include <algorithm>
#include <compare>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "symbolic/node.h"

namespace litz {
namespace {

using Piece = std::variant<std::string, Index>;

// Expressions that agree down to this depth are put in order of creation.
constexpr int kMaxCompareDepth = 4;

// Loop variables come first, then loaded values, sizes and everything else.
int rank(Index a) {
  if (!a.is_symbol()) return 3 + static_cast<int>(a.kind());
  switch (a.symbol_kind()) {
    case SymbolKind::kVariable:
      return 0;
    case SymbolKind::kIndirect:
      return 1;
    case SymbolKind::kSize:
      return 2;
  }
  return 3;
}

// The order in which terms and factors are printed: by what they are, not by when they were made.
std::strong_ordering compare(Index a, Index b, int depth);

std::strong_ordering compare(std::span<const Index> a, std::span<const Index> b, int depth) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (const auto order = compare(a[i], b[i], depth); order != 0) return order;
  }
  return b.size() <=> a.size();  // d0*s0 before d0
}

std::vector<Index> in_order(std::span<const Index> operands, int depth) {
  std::vector<Index> sorted(operands.begin(), operands.end());
  std::sort(sorted.begin(), sorted.end(),
            [&](Index a, Index b) { return compare(a, b, depth) < 0; });
  return sorted;
}

std::vector<Term> in_order(std::span<const Term> terms, int depth) {
  std::vector<Term> sorted(terms.begin(), terms.end());
  std::sort(sorted.begin(), sorted.end(),
            [&](const Term& a, const Term& b) { return compare(a.second, b.second, depth) < 0; });
  return sorted;
}

std::strong_ordering compare(Index a, Index b, int depth) {
  if (a == b) return std::strong_ordering::equal;
  if (depth == kMaxCompareDepth) return a.id() <=> b.id();
  ++depth;
  if (a.kind() == IndexKind::kProduct || b.kind() == IndexKind::kProduct) {
    return compare(in_order(factors_of(a), depth), in_order(factors_of(b), depth), depth);
  }
  if (rank(a) != rank(b)) return rank(a) <=> rank(b);
  switch (a.kind()) {
    case IndexKind::kConstant:
      return a.constant() <=> b.constant();
    case IndexKind::kSymbol:
      return std::tuple(a.symbol_number(), a.symbol_name(), a.id()) <=>
             std::tuple(b.symbol_number(), b.symbol_name(), b.id());
    case IndexKind::kSum: {
      const std::vector<Term> x = in_order(a.terms(), depth);
      const std::vector<Term> y = in_order(b.terms(), depth);
      for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
        if (const auto order = compare(x[i].second, y[i].second, depth); order != 0) return order;
        if (x[i].first != y[i].first) return x[i].first <=> y[i].first;
      }
      return std::tuple(x.size(), a.sum_constant()) <=> std::tuple(y.size(), b.sum_constant());
    }
    case IndexKind::kProduct:
    case IndexKind::kFloorDiv:
    case IndexKind::kMod:
      return compare(a.operands(), b.operands(), depth);
    case IndexKind::kMin:
    case IndexKind::kMax:
      return compare(in_order(a.operands(), depth), in_order(b.operands(), depth), depth);
  }
  return a.id() <=> b.id();
}

// "16*d0", "-d0", "-4*d0"; `first` is false where a sign has to join the term to what is before it.
void append_term(std::vector<Piece>& pieces, const Term& term, bool first) {
  const int64_t coefficient = term.first;
  const uint64_t size = coefficient < 0 ? -static_cast<uint64_t>(coefficient) : coefficient;
  std::string prefix = coefficient < 0 ? (first ? "-" : " - ") : (first ? "" : " + ");
  if (size != 1) prefix += std::to_string(size) + "*";
  pieces.emplace_back(std::move(prefix));
  pieces.emplace_back(term.second);
}

void append_list(std::vector<Piece>& pieces, std::span<const Index> operands, std::string open,
                 const char* separator, const char* close) {
  pieces.emplace_back(std::move(open));
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i > 0) pieces.emplace_back(separator);
    pieces.emplace_back(operands[i]);
  }
  pieces.emplace_back(close);
}

// The text of one node, its operands left to be printed.
std::vector<Piece> pieces_of(Index a) {
  std::vector<Piece> pieces;
  switch (a.kind()) {
    case IndexKind::kConstant:
      pieces.emplace_back(std::to_string(a.constant()));
      break;
    case IndexKind::kSymbol:
      pieces.emplace_back(std::string(a.symbol_name()));
      break;
    case IndexKind::kSum: {
      for (const Term& term : in_order(a.terms(), 0)) append_term(pieces, term, pieces.empty());
      const int64_t constant = a.sum_constant();
      if (constant > 0) pieces.emplace_back(" + " + std::to_string(constant));
      if (constant < 0) {
        pieces.emplace_back(" - " + std::to_string(-static_cast<uint64_t>(constant)));
      }
      break;
    }
    case IndexKind::kProduct:
      append_list(pieces, in_order(a.operands(), 0), "", "*", "");
      break;
    case IndexKind::kFloorDiv:
      append_list(pieces, a.operands(), "floor_div(", ", ", ")");
      break;
    case IndexKind::kMod:
      append_list(pieces, a.operands(), "mod(", ", ", ")");
      break;
    case IndexKind::kMin:
      append_list(pieces, in_order(a.operands(), 0), "min(", ", ", ")");
      break;
    case IndexKind::kMax:
      append_list(pieces, in_order(a.operands(), 0), "max(", ", ", ")");
      break;
  }
  return pieces;
}

}  // namespace

std::string to_string(Index expression) {
  if (!expression.valid()) return "<null>";
  std::string text;
  std::vector<Piece> stack = {expression};
  while (!stack.empty()) {
    const Piece piece = std::move(stack.back());
    stack.pop_back();
    if (const auto* literal = std::get_if<std::string>(&piece)) {
      text += *literal;
      continue;
    }
    std::vector<Piece> pieces = pieces_of(std::get<Index>(piece));
    stack.insert(stack.end(), std::make_move_iterator(pieces.rbegin()),
                 std::make_move_iterator(pieces.rend()));
  }
  return text;
}

}  // namespace litz
