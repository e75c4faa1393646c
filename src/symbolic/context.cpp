#include <algorithm>
#include <string>

#include "support/error.h"
#include "symbolic/node.h"

namespace litz {
namespace {

constexpr size_t kBlockBytes = 1 << 16;

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

uint32_t hash_of(const IndexNode& key) {
  uint64_t hash = mix(static_cast<uint64_t>(key.kind) + 1, static_cast<uint64_t>(key.constant));
  if (key.kind == IndexKind::kSum) {
    for (const auto& [coefficient, term] : std::span(key.terms, key.count)) {
      hash = mix(mix(hash, static_cast<uint64_t>(coefficient)), term.id());
    }
  } else if (key.kind == IndexKind::kSymbol) {
    hash = mix(hash, static_cast<uint64_t>(key.symbol->kind));
    hash = mix(hash, std::hash<std::string_view>()(key.symbol->name));
    if (key.symbol->extent.valid()) hash = mix(hash, key.symbol->extent.id());
  } else {
    for (Index operand : std::span(key.operands, key.count)) hash = mix(hash, operand.id());
  }
  return static_cast<uint32_t>(hash ^ (hash >> 32));
}

bool same(const IndexNode& a, const IndexNode& b) {
  if (a.kind != b.kind || a.constant != b.constant || a.count != b.count) return false;
  switch (a.kind) {
    case IndexKind::kConstant:
      return true;
    case IndexKind::kSymbol:
      return a.symbol->kind == b.symbol->kind && a.symbol->name == b.symbol->name &&
             a.symbol->extent == b.symbol->extent;
    case IndexKind::kSum:
      return std::equal(a.terms, a.terms + a.count, b.terms);
    case IndexKind::kProduct:
    case IndexKind::kFloorDiv:
    case IndexKind::kMod:
    case IndexKind::kMin:
    case IndexKind::kMax:
      return std::equal(a.operands, a.operands + a.count, b.operands);
  }
  return false;
}

ValueRange range_of(const IndexNode& key) {
  const std::span operands(key.operands, key.count);
  switch (key.kind) {
    case IndexKind::kConstant:
      return {key.constant, key.constant};
    case IndexKind::kSymbol:
      return key.range;
    case IndexKind::kSum: {
      ValueRange range = {key.constant, key.constant};
      for (const auto& [coefficient, term] : std::span(key.terms, key.count)) {
        range = add_ranges(range, scale_range(term.range(), coefficient));
      }
      return range;
    }
    case IndexKind::kProduct: {
      ValueRange range = {1, 1};
      for (Index factor : operands) range = multiply_ranges(range, factor.range());
      return range;
    }
    case IndexKind::kFloorDiv:
      return floor_div_range(operands[0].range(), operands[1].range());
    case IndexKind::kMod:
      return mod_range(operands[0].range(), operands[1].range());
    case IndexKind::kMin: {
      ValueRange range = operands[0].range();
      for (Index operand : operands) range = min_range(range, operand.range());
      return range;
    }
    case IndexKind::kMax: {
      ValueRange range = operands[0].range();
      for (Index operand : operands) range = max_range(range, operand.range());
      return range;
    }
  }
  return kUnbounded;
}

void inherit(IndexNode& node, Index child) {
  const IndexNode& from = *child.node();
  node.symbolic |= from.symbolic;
  node.divides |= from.divides;
  node.symbols |= from.symbols;
  node.tree_size = static_cast<uint32_t>(
      std::min<uint64_t>(UINT32_MAX, uint64_t{node.tree_size} + from.tree_size));
  if (node.kind == IndexKind::kProduct) {
    node.floor_div_factor |= from.floor_div_factor;
    node.mod_factor |= from.mod_factor;
  }
}

// Fills in everything that follows from kind and operands.
void derive(IndexNode& node) {
  node.range = range_of(node);
  node.floor_div_factor = node.kind == IndexKind::kFloorDiv;
  node.mod_factor = node.kind == IndexKind::kMod;
  node.divides = node.floor_div_factor || node.mod_factor;
  if (node.kind == IndexKind::kSum) {
    for (const Term& term : std::span(node.terms, node.count)) inherit(node, term.second);
  } else if (node.kind == IndexKind::kSymbol) {
    node.symbols = uint64_t{1} << (node.id % 64);
    node.symbolic = node.symbol->kind == SymbolKind::kSize || !node.symbol->extent.is_constant();
  } else {
    for (Index operand : std::span(node.operands, node.count)) inherit(node, operand);
  }
}

}  // namespace

void* Arena::allocate(size_t bytes) {
  bytes = (bytes + alignof(std::max_align_t) - 1) / alignof(std::max_align_t) *
          alignof(std::max_align_t);
  if (bytes > left_) {
    const size_t block = std::max(bytes, kBlockBytes);
    blocks_.emplace_back(new std::byte[block]);
    next_ = blocks_.back().get();
    left_ = block;
  }
  void* result = next_;
  next_ += bytes;
  left_ -= bytes;
  return result;
}

IndexContext::IndexContext() : impl_(std::make_unique<Impl>()) { impl_->slots.resize(1024); }
IndexContext::~IndexContext() = default;

size_t IndexContext::size() const { return impl_->nodes.size(); }

Index IndexContext::constant(int64_t value) {
  IndexNode key;
  key.kind = IndexKind::kConstant;
  key.constant = value;
  return IndexBuilder::intern(*this, key);
}

Index IndexContext::size_symbol(std::string_view name, ValueRange range) {
  return IndexBuilder::symbol(*this, {SymbolKind::kSize, 0, name, Index()}, range);
}

Index IndexContext::variable(uint32_t number, Index extent) {
  const std::string name = "d" + std::to_string(number);
  return IndexBuilder::symbol(*this, {SymbolKind::kVariable, number, name, extent}, kUnbounded);
}

Index IndexContext::indirect(uint32_t number, Index extent) {
  const std::string name = "i" + std::to_string(number);
  return IndexBuilder::symbol(*this, {SymbolKind::kIndirect, number, name, extent}, kUnbounded);
}

Index IndexBuilder::intern(IndexContext& context, IndexNode& key) {
  IndexContext::Impl& impl = *context.impl_;
  key.hash = hash_of(key);
  size_t mask = impl.slots.size() - 1;
  size_t at = key.hash & mask;
  for (; impl.slots[at].id != IndexContext::Impl::Slot::kEmpty; at = (at + 1) & mask) {
    const IndexContext::Impl::Slot& slot = impl.slots[at];
    if (slot.hash == key.hash && same(*impl.nodes[slot.id], key)) return Index(impl.nodes[slot.id]);
  }

  key.context = &context;
  key.id = static_cast<uint32_t>(impl.nodes.size());
  if (key.terms != nullptr) key.terms = impl.arena.copy(std::span(key.terms, key.count));
  if (key.operands != nullptr) key.operands = impl.arena.copy(std::span(key.operands, key.count));
  if (key.symbol != nullptr) {
    SymbolData data = *key.symbol;
    data.name = {impl.arena.copy(std::span<const char>(data.name)), data.name.size()};
    key.symbol = new (impl.arena.allocate(sizeof(SymbolData))) SymbolData(data);
  }
  derive(key);
  const IndexNode* node = new (impl.arena.allocate(sizeof(IndexNode))) IndexNode(key);
  impl.nodes.push_back(node);
  impl.slots[at] = {key.hash, key.id};

  if (impl.nodes.size() * 2 > impl.slots.size()) {
    mask = impl.slots.size() * 2 - 1;
    std::vector<IndexContext::Impl::Slot> larger(mask + 1);
    for (const IndexNode* each : impl.nodes) {
      size_t free = each->hash & mask;
      while (larger[free].id != IndexContext::Impl::Slot::kEmpty) free = (free + 1) & mask;
      larger[free] = {each->hash, each->id};
    }
    impl.slots = std::move(larger);
  }
  return Index(node);
}

IndexContext::Impl::Division& IndexBuilder::division(IndexKind kind, Index a, Index b) {
  const uint64_t hash = mix(mix(static_cast<uint64_t>(kind), a.id()), b.id());
  return a.context().impl_->divisions[hash % IndexContext::Impl::kDivisions];
}

Index IndexBuilder::recall(IndexKind kind, Index a, Index b) {
  const auto& entry = division(kind, a, b);
  if (entry.kind != kind || entry.a != a.id() || entry.b != b.id()) return Index();
  return Index(a.context().impl_->nodes[entry.result]);
}

void IndexBuilder::remember(IndexKind kind, Index a, Index b, Index result) {
  division(kind, a, b) = {a.id(), b.id(), kind, result.id()};
}

Index IndexBuilder::symbol(IndexContext& context, const SymbolData& data, ValueRange range) {
  if (data.kind != SymbolKind::kSize) {
    LITZ_CHECK(data.extent.valid(), "a loop variable needs an extent");
    const int64_t hi = data.extent.range().hi;
    range = {0, hi == ValueRange::kMax ? hi : std::max<int64_t>(hi - 1, 0)};
  }
  IndexNode key;
  key.kind = IndexKind::kSymbol;
  key.symbol = &data;
  key.range = range;
  return intern(context, key);
}

Index IndexBuilder::sum(IndexContext& context, int64_t constant, std::span<const Term> terms) {
  if (terms.empty()) return context.constant(constant);
  if (terms.size() == 1 && constant == 0 && terms[0].first == 1) return terms[0].second;
  IndexNode key;
  key.kind = IndexKind::kSum;
  key.constant = constant;
  key.count = static_cast<uint32_t>(terms.size());
  key.terms = terms.data();
  return intern(context, key);
}

Index IndexBuilder::product(IndexContext& context, std::span<const Index> factors) {
  if (factors.empty()) return context.constant(1);
  if (factors.size() == 1) return factors[0];
  IndexNode key;
  key.kind = IndexKind::kProduct;
  key.count = static_cast<uint32_t>(factors.size());
  key.operands = factors.data();
  return intern(context, key);
}

Index IndexBuilder::binary(IndexKind kind, Index a, Index b) {
  const Index operands[] = {a, b};
  IndexNode key;
  key.kind = kind;
  key.count = 2;
  key.operands = operands;
  return intern(a.context(), key);
}

Index IndexBuilder::extremum(IndexKind kind, std::span<const Index> operands) {
  IndexNode key;
  key.kind = kind;
  key.count = static_cast<uint32_t>(operands.size());
  key.operands = operands.data();
  return intern(operands[0].context(), key);
}

}  // namespace litz
