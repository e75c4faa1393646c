// Integer index expressions.
//
// An Index is an immutable, interned value over the integers (mathematical integers; evaluation in
// int64 is exact because sizes and offsets of real tensors fit). Two Index of one context are equal
// as canonical forms exactly when they are the same node, so comparison and hashing are by
// identity.
//
// Kinds and canonical form:
//   Constant  an int64
//   Symbol    a named unknown with a range: sizes ("s0"), loop variables ("d0"), values loaded at
//             run time ("i0")
//   Sum       c0 + c1*t1 + ... + cn*tn: integer coefficients, no term a Sum or a Constant, terms in
//             id order, n >= 1, and not a bare term (n == 1, c0 == 0, c1 == 1)
//   Product   t1*...*tn, n >= 2, factors in id order, none a Constant, Product or Sum (products
//             distribute over sums)
//   FloorDiv  floor(a / b), b > 0
//   Mod       a - b*floor(a / b), b > 0, result in [0, b)
//   Min, Max  of two or more, flattened, in id order
// The rules of simplification and their proofs are in docs/math/index-algebra.md.
//
// A loop variable d with extent e takes the values 0 <= d < e; the extent may itself be an Index.
// Division and modulo need a divisor that is provably positive: sizes are assumed to be at least 1
// where they divide (an empty tensor runs no loop). Another divisor is an InternalError.
//
// Arithmetic whose coefficients do not fit int64 throws a UserError.
//
// The context owns all nodes; it is used from one thread and must outlive every Index made from it.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace litz {

class IndexContext;
struct IndexNode;

enum class IndexKind : uint8_t { kConstant, kSymbol, kSum, kProduct, kFloorDiv, kMod, kMin, kMax };

// What a symbol stands for.
enum class SymbolKind : uint8_t {
  kSize,      // unknown until the graph is called: a tensor size or an int argument
  kVariable,  // a loop variable, 0 <= v < extent
  kIndirect,  // a value loaded from memory at run time; `number` says which operand of the load
};

// Closed interval of int64; the extreme values stand for "unbounded".
struct ValueRange {
  static constexpr int64_t kMin = INT64_MIN;
  static constexpr int64_t kMax = INT64_MAX;
  int64_t lo = kMin;
  int64_t hi = kMax;
  friend bool operator==(const ValueRange&, const ValueRange&) = default;
};

class Index {
 public:
  Index() = default;  // null; only assignment and valid() are allowed
  explicit Index(const IndexNode* node) : node_(node) {}

  bool valid() const { return node_ != nullptr; }
  const IndexNode* node() const { return node_; }
  IndexKind kind() const;
  uint32_t id() const;  // dense, unique within the context, in order of creation
  IndexContext& context() const;

  bool is_constant() const { return kind() == IndexKind::kConstant; }
  bool is_constant(int64_t value) const;
  std::optional<int64_t> as_constant() const;
  int64_t constant() const;  // requires is_constant()
  bool is_symbol() const { return kind() == IndexKind::kSymbol; }

  // Symbol access; requires is_symbol().
  SymbolKind symbol_kind() const;
  std::string_view symbol_name() const;
  uint32_t symbol_number() const;
  Index extent() const;  // of a kVariable; for kIndirect the size of the dimension that it indexes

  // Sum access; any other kind reads as a sum of one term (or of none, for a constant).
  int64_t sum_constant() const;
  std::span<const std::pair<int64_t, Index>> terms() const;  // requires kind() == kSum
  // Product, Min, Max: all; FloorDiv, Mod: {a, b}; else empty.
  std::span<const Index> operands() const;

  ValueRange range() const;  // cached on the node
  bool depends_on(Index symbol) const;

  friend bool operator==(Index a, Index b) { return a.node_ == b.node_; }

 private:
  const IndexNode* node_ = nullptr;
};

struct IndexLess {  // order of creation: stable for a given construction order
  bool operator()(Index a, Index b) const { return a.id() < b.id(); }
};

Index operator+(Index a, Index b);
Index operator-(Index a, Index b);
Index operator*(Index a, Index b);
Index operator-(Index a);
Index operator+(Index a, int64_t b);
Index operator-(Index a, int64_t b);
Index operator*(Index a, int64_t b);
Index floor_div(Index a, Index b);
Index floor_div(Index a, int64_t b);
Index mod(Index a, Index b);
Index mod(Index a, int64_t b);
Index ceil_div(Index a, Index b);
Index min(Index a, Index b);
Index max(Index a, Index b);

class IndexContext {
 public:
  IndexContext();
  ~IndexContext();
  IndexContext(const IndexContext&) = delete;
  IndexContext& operator=(const IndexContext&) = delete;

  Index constant(int64_t value);

  // The size symbol of this name; the range of the first call holds.
  Index size_symbol(std::string_view name, ValueRange range = {0, ValueRange::kMax});

  // Loop variable number `number` of this extent, named "d<number>". The same (number, extent)
  // gives the same Index: loop variables are positional, so equal loop bodies are identical
  // expressions.
  Index variable(uint32_t number, Index extent);

  // The value of operand `number` of a load, known to be in [0, extent), named "i<number>".
  Index indirect(uint32_t number, Index extent);

  size_t size() const;  // nodes made so far

 private:
  friend struct IndexBuilder;
  friend class Index;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace litz

template <>
struct std::hash<litz::Index> {
  size_t operator()(litz::Index index) const noexcept {
    return std::hash<const void*>()(index.node());
  }
};

namespace litz {

// ---- substitution and structure

// Replaces symbols by expressions, all at once, and simplifies. The extents of variables are not
// part of an expression and stay. Reuse one Substitution for many expressions: it memoizes.
class Substitution {
 public:
  Substitution() = default;
  void set(Index symbol, Index value);
  bool empty() const { return map_.empty(); }
  Index apply(Index expression);

 private:
  std::unordered_map<Index, Index> map_;
  std::unordered_map<Index, Index> memo_;
  uint64_t symbols_ = 0;  // Bloom filter of the replaced symbols
};

Index substitute(Index expression, std::span<const std::pair<Index, Index>> replacements);

// Free symbols, each once, in order of id.
std::vector<Index> free_symbols(std::span<const Index> expressions);
std::vector<Index> free_symbols(Index expression);

// expression == stride * symbol + rest with neither depending on symbol; nullopt where it is not
// linear in it.
struct LinearIn {
  Index stride;
  Index rest;
};
std::optional<LinearIn> linear_in(Index expression, Index symbol);

// Sum of position[i] * stride[i].
Index dot(IndexContext& context, std::span<const Index> position, std::span<const Index> strides);

// Row-major strides (a dimension of constant size 0 counts as one of size 1, as in PyTorch), the
// product of all sizes, and the inverse of row-major linearisation for 0 <= linear < product.
std::vector<Index> contiguous_strides(IndexContext& context, std::span<const Index> sizes);
Index product(IndexContext& context, std::span<const Index> sizes);
std::vector<Index> delinearize(Index linear, std::span<const Index> sizes);

// ---- proofs (false means "not proven")

bool prove_nonnegative(Index a);
bool prove_less(Index a, Index b);  // a < b for all values of the symbols
bool prove_less_equal(Index a, Index b);
bool prove_divisible(Index a, Index divisor);

// a / divisor where prove_divisible holds.
std::optional<Index> exact_div(Index a, Index divisor);

// ---- evaluation and text

// Value of an expression whose symbols all have values. Throws InternalError on an unbound symbol.
int64_t evaluate(Index expression, const std::function<int64_t(Index symbol)>& value_of);

// Text such as "16*d0 + d1 + 3", "floor_div(d0, 4)", "mod(d0, s0)", "min(s0, 4)". parse_index reads
// it back (and sympy's str form: "s0*s1", "s0**2", "(s0//2)", "FloorDiv(s0, 2)", "Mod(s0, 2)",
// "ModularIndexing(s0, 1, 8)", "Max(1, s0)", "PythonMod(...)", "CleanDiv(...)", unary minus).
// symbol_of resolves names; it may return a null Index for an unknown name, which becomes a
// UserError with the position.
std::string to_string(Index expression);
Index parse_index(IndexContext& context, std::string_view text,
                  const std::function<Index(std::string_view name)>& symbol_of);

}  // namespace litz
