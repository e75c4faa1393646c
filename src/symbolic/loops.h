// Changes of a loop nest that keep its set of iterations: splitting a variable where expressions
// divide it, dropping variables of extent 1, and merging neighbours that every expression walks
// contiguously.
#pragma once

#include <span>
#include <vector>

#include "symbolic/index.h"

namespace litz {

// A new loop nest, outermost first, and what each old variable is in terms of the new ones.
struct LoopRewrite {
  std::vector<Index> variables;  // new loop variables (numbered 0.. in order)
  std::vector<std::pair<Index, Index>>
      replacements;  // old variable -> expression over the new variables
};

// The factors, outermost first, into which `variable` has to be split so that the floor-divisions
// and modulos of it in `expressions` become linear; {extent} where no split helps or the divisors
// do not nest.
std::vector<Index> find_split(Index variable, std::span<const Index> expressions);

// True if for every expression walking `inner` (extent n) and then `outer` equals walking one
// merged loop: each expression is linear in both and its stride in outer equals n times its stride
// in inner.
bool can_merge(Index outer, Index inner, std::span<const Index> expressions);

// Splits, drops and merges until nothing changes. `boundaries` lists positions p where variables
// p-1 and p must stay apart (between outer and reduction loops). The new variables keep the order
// of the old ones.
LoopRewrite simplify_loops(IndexContext& context, std::span<const Index> variables,
                           std::span<const size_t> boundaries, std::span<const Index> expressions,
                           std::vector<size_t>* new_boundaries);

// Puts the new loops into another order and numbers them anew; `order` has the old place of each.
void reorder_loops(IndexContext& context, LoopRewrite& rewrite, std::span<const size_t> order);

}  // namespace litz
