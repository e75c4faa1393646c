// Runtime indices of the indexing family: how elements of index tensors become positions.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lowering/expr_formulas.h"
#include "lowering/lowering.h"

namespace litz {

// Whether a negative index counts from the end.
enum class Negative : bool { kIsError, kWraps };

// The element of an index tensor as int64, checked to be below `size`.
Expr load_index(OpCall& call, const TensorValue& index, std::span<const Index> position, Index size,
                Negative negative, IndexFault fault = IndexFault::kIndexError);

// The only runtime index of a load or store, standing for a value below `size`.
inline Index runtime_index(OpCall& call, Index size) { return call.indices().indirect(0, size); }

using StoreAt = std::function<OpCall::Store(std::span<const Index> position)>;

// Result 0 becomes `initial` with stores over a space of `sizes`. Sums and products of halves are
// rounded once, at the end.
void set_scatter(OpCall& call, const OpCall::Body& initial, StoreMode mode,
                 std::span<const Index> sizes, const StoreAt& store);

// What the list of index tensors of aten::index does to a tensor of sizes `sizes`.
class AdvancedIndex {
 public:
  // nullopt where an index is a mask, whose result has as many elements as it holds.
  static std::optional<AdvancedIndex> make(OpCall& call, std::span<const Index> sizes);

  // Sizes of the result: those of the index tensors, broadcast together, stand where the first of
  // them stands if they are neighbours, else in front.
  std::vector<Index> result_sizes() const;

  // The element of the tensor that a position of the result names; `runtime` gets the values of
  // i0, i1, ...
  std::vector<Index> element(OpCall& call, std::span<const Index> position,
                             std::vector<Expr>* runtime) const;

 private:
  std::vector<Index> sizes_;
  std::vector<std::optional<TensorValue>> indices_;  // one for each dimension
  std::vector<Index> broadcast_;                     // sizes of the index tensors together
  size_t start_ = 0;                                 // where these stand in the result
};

}  // namespace litz
