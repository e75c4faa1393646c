// Prints expressions as statements of a Triton function, each once.
//
// A function works on a tile of iterations with up to two axes. Each loop of the kernel is bound to
// a value that varies along one axis, or to a scalar; every other value varies along the axes that
// its operands do and is broadcast where it meets others. An axis may stand out past the end: what
// lies there is computed and never loaded, stored or checked.
//
// Statements go to the innermost scope in which they can be computed: the function, or a loop in
// it. Under a condition (kMasked) values are kept apart, and loads and checks have it in their
// mask.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/common/kernel_analysis.h"
#include "codegen/cpp/cpp_body.h"
#include "codegen/triton/triton_prelude.h"
#include "support/indented_buffer.h"

namespace litz {

// A set of axes: kRows and kColumns, in the order of a block's dimensions.
using TileAxes = unsigned;
inline constexpr TileAxes kNoAxes = 0;
inline constexpr TileAxes kRows = 1;
inline constexpr TileAxes kColumns = 2;

struct TileAxis {
  int block = 0;     // elements, a power of two; 0: there is no such axis
  std::string mask;  // the name of which are not past the end; empty: all
};

struct TileValue {
  std::string text;
  TileAxes axes = kNoAxes;
  std::string literal;
};

class TritonBody {
 public:
  TritonBody(KernelAnalysis& analysis, TritonPrelude& prelude, KernelArguments& arguments,
             bool narrow)
      : analysis_(analysis), prelude_(prelude), arguments_(arguments), narrow_(narrow) {
    scopes_.reserve(64);  // references to scopes stay valid while inner ones open
    scopes_.emplace_back();
  }

  // ---- the tile ----
  void set_axis(TileAxes axis, int block, std::string mask);
  TileAxes all_axes() const;
  // "[8, 1]": of a block along these axes.
  std::string shape(TileAxes axes) const;
  // The dimension of an axis in a block along all axes.
  int dimension(TileAxes axis) const;
  // "[:, None]": makes what varies along one axis a block of the tile; empty where that is one.
  std::string place(TileAxes axis) const;
  // The conjunction of the masks of these axes and the conditions here; empty: all hold.
  TileValue mask(TileAxes axes) const;

  // ---- scopes ----
  // The loops bound from here on in this scope. A loop of one iteration is bound by no name.
  void bind(size_t loop, TileValue value);
  void bind_iteration() { scopes_.back().bound |= kIterationBit; }
  void open_loop();
  // Appends `header:` and the loop's statements.
  void close_loop(const std::string& header);
  IndentedBuffer& out() { return scopes_.back().text; }
  std::string take_text();

  // ---- values ----
  TileValue value(Expr e) { return emit(e); }
  // The value along at least these axes.
  std::string block(const TileValue& value, TileAxes axes, DType dtype) const;
  TileValue define(const std::string& expression, TileAxes axes, std::string_view stem = "t");
  void define_reduced(uint32_t number, TileValue value);
  TileValue index(Index index);
  std::string fresh(std::string_view stem);

  // The kernel's stores in the inner loops of a stage, or those outside; for each element along
  // `axes`. All values are computed before the first store. `barrier`: other threads may still load
  // what the stores overwrite.
  void store(const std::vector<const KernelStore*>& stores, TileAxes axes, bool barrier);
  // What was loaded from these buffers is loaded again.
  void forget_loads(const std::vector<BufferId>& buffers);
  bool checks() const { return checks_; }
  // Says for a load what the cache should do with what it reads: "evict_last", or nothing.
  // Functions may err by more than float32 rounds, where all that is stored is half floats.
  void set_near_functions(bool near) { near_functions_ = near; }
  using Eviction = std::function<std::string(Expr load)>;
  void set_eviction(Eviction eviction) { eviction_ = std::move(eviction); }

 private:
  struct Scope {
    IndentedBuffer text = IndentedBuffer(2);
    LoopMask bound = 0;
    bool conditional = false;
    TileValue condition;
    std::unordered_map<Expr, TileValue> values;
  };

  size_t scope_for(LoopMask depends) const;
  const TileValue* find(Expr e) const;
  TileValue emit(Expr root);
  TileValue compute(Expr e, size_t scope);
  TileValue masked(Expr e, size_t scope);
  TileValue load(Expr e, size_t scope);
  TileValue define_in(size_t scope, const std::string& expression, TileAxes axes);
  void assert_holds(size_t scope, const TileValue& holds);
  TileValue mask_in(size_t scope, TileAxes axes) const;
  TileValue offset(Index offset, std::span<const Expr> runtime);
  // "p0 + offset" for a block along these axes at least.
  std::string address(BufferId buffer, const TileValue& offset, TileAxes axes);
  TileValue index_sum(Index e);

  KernelAnalysis& analysis_;
  TritonPrelude& prelude_;
  KernelArguments& arguments_;
  bool narrow_;
  std::array<TileAxis, 2> axes_;
  std::vector<Scope> scopes_;
  std::unordered_map<Index, TileValue> names_;
  LoopMask set_aside_ = 0;
  bool checks_ = false;
  bool near_functions_ = false;
  Eviction eviction_;
  uint32_t next_ = 0;
};

}  // namespace litz
