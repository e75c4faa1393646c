#include <string>
#include <variant>
#include <vector>

#include "symbolic/node.h"

namespace litz {
namespace {

using Piece = std::variant<std::string, Index>;

// "16*d0", "-d0", "-4*d0"; `first` is false where a sign has to join the term to what is before it.
void append_term(std::vector<Piece>& pieces, const Term& term, bool first) {
  const int64_t coefficient = term.first;
  const uint64_t size = coefficient < 0 ? -static_cast<uint64_t>(coefficient) : coefficient;
  std::string prefix = coefficient < 0 ? (first ? "-" : " - ") : (first ? "" : " + ");
  if (size != 1) prefix += std::to_string(size) + "*";
  pieces.emplace_back(std::move(prefix));
  pieces.emplace_back(term.second);
}

void append_list(std::vector<Piece>& pieces, Index a, std::string open, const char* separator,
                 const char* close) {
  pieces.emplace_back(std::move(open));
  for (size_t i = 0; i < a.operands().size(); ++i) {
    if (i > 0) pieces.emplace_back(separator);
    pieces.emplace_back(a.operands()[i]);
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
      for (const Term& term : a.terms()) append_term(pieces, term, pieces.empty());
      const int64_t constant = a.sum_constant();
      if (constant > 0) pieces.emplace_back(" + " + std::to_string(constant));
      if (constant < 0) {
        pieces.emplace_back(" - " + std::to_string(-static_cast<uint64_t>(constant)));
      }
      break;
    }
    case IndexKind::kProduct:
      append_list(pieces, a, "", "*", "");
      break;
    case IndexKind::kFloorDiv:
      append_list(pieces, a, "floor_div(", ", ", ")");
      break;
    case IndexKind::kMod:
      append_list(pieces, a, "mod(", ", ", ")");
      break;
    case IndexKind::kMin:
      append_list(pieces, a, "min(", ", ", ")");
      break;
    case IndexKind::kMax:
      append_list(pieces, a, "max(", ", ", ")");
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
