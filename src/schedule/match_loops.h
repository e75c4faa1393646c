// Solves for the loop variables of one operation in terms of those of another.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "symbolic/index.h"

namespace litz {

// Expressions for loop variables, as replacements for a Substitution.
using LoopMapping = std::vector<std::pair<Index, Index>>;

Substitution as_substitution(const LoopMapping& mapping);

struct LoopMatch {
  LoopMapping mapping;           // variable -> expression
  std::vector<Index> unmatched;  // variables that position does not mention
};

// Given that an element of a buffer of `sizes` is at `position` (over `variables`) and also at
// `target` (over other symbols), finds what the variables are in terms of the target's symbols. It
// succeeds where position enumerates every element of the buffer exactly once for each value of the
// unmatched variables: each dimension is one variable, or a group of dimensions is the row-major
// walk of a group of variables.
std::optional<LoopMatch> match_loops(IndexContext& context, std::span<const Index> variables,
                                     std::span<const Index> sizes, std::span<const Index> position,
                                     std::span<const Index> target);

}  // namespace litz
