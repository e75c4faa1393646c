#include "lowering/index_helpers.h"

#include <algorithm>

#include "lowering/reduction_helpers.h"

namespace litz {
namespace {

// Sizes of values broadcast together.
std::vector<Index> broadcast_sizes(std::span<const std::optional<TensorValue>> values) {
  std::vector<Index> sizes;
  for (const std::optional<TensorValue>& value : values) {
    if (!value) continue;
    if (value->rank() > sizes.size()) {
      sizes.insert(sizes.begin(), value->sizes.begin(),
                   value->sizes.end() - static_cast<std::ptrdiff_t>(sizes.size()));
    }
    const size_t skipped = sizes.size() - value->rank();
    for (size_t i = 0; i < value->rank(); ++i) {
      if (sizes[skipped + i].is_constant(1)) sizes[skipped + i] = value->sizes[i];
    }
  }
  return sizes;
}

Expr to_checked_index(OpCall& call, Expr element, Index size, Negative negative,
                      IndexFault fault = IndexFault::kIndexError) {
  ExprContext& exprs = call.exprs();
  Expr index = exprs.cast(element, DType::kInt64);
  if (negative == Negative::kWraps) {
    index = select(less(index, 0), index + exprs.index_value(size), index);
  }
  return exprs.check_index(index, size, fault);
}

}  // namespace

Expr load_index(OpCall& call, const TensorValue& index, std::span<const Index> position, Index size,
                Negative negative, IndexFault fault) {
  return to_checked_index(call, call.load(index, position), size, negative, fault);
}

void set_scatter(OpCall& call, const OpCall::Body& initial, StoreMode mode,
                 std::span<const Index> sizes, const StoreAt& store) {
  TensorMeta meta = call.result();
  if (mode == StoreMode::kAdd || mode == StoreMode::kMul)
    meta.dtype = computation_dtype(meta.dtype);
  const auto converted = [&](std::span<const Index> p) {
    OpCall::Store stored = store(p);
    stored.value = cast(stored.value, meta.dtype);
    return stored;
  };
  set_rounded(call, 0,
              call.scatter(
                  meta, [&](std::span<const Index> p) { return cast(initial(p), meta.dtype); },
                  mode, sizes, converted));
}

std::optional<AdvancedIndex> AdvancedIndex::make(OpCall& call, std::span<const Index> sizes) {
  AdvancedIndex index;
  index.sizes_.assign(sizes.begin(), sizes.end());
  index.indices_ = call.tensor_list("indices");
  index.indices_.resize(sizes.size());
  for (const std::optional<TensorValue>& tensor : index.indices_) {
    if (tensor && (tensor->dtype == DType::kBool || tensor->dtype == DType::kUInt8))
      return std::nullopt;
  }
  index.broadcast_ = broadcast_sizes(index.indices_);

  const auto has_value = [](const std::optional<TensorValue>& t) { return t.has_value(); };
  const auto begin = index.indices_.begin();
  const auto end = index.indices_.end();
  const auto first = std::find_if(begin, end, has_value);
  const auto after = std::find_if_not(first, end, has_value);
  const bool neighbours = std::none_of(after, end, has_value);
  index.start_ = neighbours ? static_cast<size_t>(first - begin) : 0;
  return index;
}

std::vector<Index> AdvancedIndex::result_sizes() const {
  std::vector<Index> sizes;
  for (size_t i = 0; i < sizes_.size(); ++i) {
    if (!indices_[i]) sizes.push_back(sizes_[i]);
  }
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(start_), broadcast_.begin(),
               broadcast_.end());
  return sizes;
}

std::vector<Index> AdvancedIndex::element(OpCall& call, std::span<const Index> position,
                                          std::vector<Expr>* runtime) const {
  const std::span<const Index> own = position.subspan(start_, broadcast_.size());
  std::vector<Index> kept(position.begin(), position.begin() + static_cast<std::ptrdiff_t>(start_));
  kept.insert(kept.end(), position.begin() + static_cast<std::ptrdiff_t>(start_ + own.size()),
              position.end());
  std::vector<Index> element;
  size_t next = 0;
  for (size_t i = 0; i < sizes_.size(); ++i) {
    if (!indices_[i]) {
      element.push_back(kept[next++]);
      continue;
    }
    element.push_back(call.indices().indirect(static_cast<uint32_t>(runtime->size()), sizes_[i]));
    runtime->push_back(to_checked_index(call, call.load_broadcast(*indices_[i], own), sizes_[i],
                                        Negative::kWraps));
  }
  return element;
}

}  // namespace litz
