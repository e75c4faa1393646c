// The inside of an Index: the node, the interning tables and the raw constructors. Private to this
// room. IndexBuilder's constructors only intern: the caller has brought the operands into canonical
// form.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "symbolic/index.h"
#include "symbolic/range.h"

namespace litz {

using Term = std::pair<int64_t, Index>;  // coefficient and what it multiplies

struct SymbolData {
  SymbolKind kind;
  uint32_t number;
  std::string_view name;
  Index extent;
};

struct IndexNode {
  IndexContext* context = nullptr;
  uint32_t id = 0;
  uint32_t hash = 0;
  IndexKind kind = IndexKind::kConstant;
  bool symbolic = false;          // mentions a size, or a variable whose extent is not constant
  bool divides = false;           // has a FloorDiv or a Mod somewhere inside
  bool floor_div_factor = false;  // is a FloorDiv, or a Product with one among its factors
  bool mod_factor = false;        // is a Mod, or a Product with one among its factors
  uint32_t count = 0;             // of terms or operands
  uint32_t tree_size = 1;         // nodes of the expression written out as a tree, saturating
  int64_t constant = 0;           // value of a Constant, constant part of a Sum
  uint64_t symbols = 0;           // Bloom filter: bit (id % 64) of every symbol inside
  ValueRange range;
  const Term* terms = nullptr;      // Sum
  const Index* operands = nullptr;  // Product, FloorDiv, Mod, Min, Max
  const SymbolData* symbol = nullptr;
};

// Bump allocator for objects that need no destructor.
class Arena {
 public:
  void* allocate(size_t bytes);
  template <class T>
  T* copy(std::span<const T> items) {
    T* result = static_cast<T*>(allocate(items.size_bytes()));
    std::uninitialized_copy(items.begin(), items.end(), result);
    return result;
  }

 private:
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::byte* next_ = nullptr;
  size_t left_ = 0;
};

struct IndexContext::Impl {
  struct Slot {
    uint32_t hash = 0;
    uint32_t id = kEmpty;
    static constexpr uint32_t kEmpty = 0xffffffffu;
  };
  Arena arena;
  std::vector<const IndexNode*> nodes;  // by id
  std::vector<Slot> slots;              // open addressing, a power of two
  int proof_depth = 0;                  // proofs under way; see prove.cpp

  // Recent results of floor_div and mod: direct-mapped, by the ids of the operands.
  struct Division {
    uint32_t a = Slot::kEmpty;
    uint32_t b = Slot::kEmpty;
    IndexKind kind = IndexKind::kFloorDiv;
    uint32_t result = Slot::kEmpty;
  };
  static constexpr size_t kDivisions = 4096;
  std::vector<Division> divisions = std::vector<Division>(kDivisions);
};

struct IndexBuilder {
  static Index symbol(IndexContext& context, const SymbolData& data, ValueRange range);
  static Index sum(IndexContext& context, int64_t constant, std::span<const Term> terms);
  static Index product(IndexContext& context, std::span<const Index> factors);
  static Index binary(IndexKind kind, Index a, Index b);
  static Index extremum(IndexKind kind, std::span<const Index> operands);
  static int& proof_depth(IndexContext& context) { return context.impl_->proof_depth; }

  // The result of floor_div(a, b) or mod(a, b) where it is still remembered, else null.
  static Index recall(IndexKind kind, Index a, Index b);
  static void remember(IndexKind kind, Index a, Index b, Index result);

 private:
  friend class IndexContext;
  static Index intern(IndexContext& context, IndexNode& key);
  static IndexContext::Impl::Division& division(IndexKind kind, Index a, Index b);
};

// Any Index read as a sum: a constant part and terms (none for a Constant).
class SumView {
 public:
  explicit SumView(Index a);
  SumView(const SumView&) = delete;
  SumView& operator=(const SumView&) = delete;
  int64_t constant() const { return constant_; }
  std::span<const Term> terms() const { return terms_; }

 private:
  Term single_;
  int64_t constant_ = 0;
  std::span<const Term> terms_;
};

// The factors of a term: those of a Product, else the term itself.
inline std::span<const Index> factors_of(const Index& term) {
  return term.kind() == IndexKind::kProduct ? term.operands() : std::span<const Index>(&term, 1);
}

// int64 arithmetic that throws UserError where the result does not fit.
int64_t add_checked(int64_t a, int64_t b);
int64_t multiply_checked(int64_t a, int64_t b);

}  // namespace litz
