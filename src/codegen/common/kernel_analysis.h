// What a dialect needs to know about a kernel before it prints it: which loop variables an
// expression depends on, how memory is walked along a loop, and how much work an iteration is.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "schedule/plan.h"

namespace litz {

// Loop variables as a bit set: outer loops first, then inner ones. The highest bit stands for being
// inside an iteration of all outer loops, where the results of reductions are, even if there is no
// outer loop.
using LoopMask = uint64_t;
inline constexpr LoopMask kIterationBit = LoopMask{1} << 63;

class KernelAnalysis {
 public:
  explicit KernelAnalysis(const Kernel& kernel);

  const Kernel& kernel() const { return kernel_; }
  size_t num_loops() const { return variables_.size(); }
  Index variable(size_t loop) const { return variables_[loop]; }
  Index extent(size_t loop) const { return extents_[loop]; }
  // Iterations of these loops together.
  Index count(IndexContext& context, std::span<const size_t> loops) const;
  LoopMask outer_mask() const { return outer_mask_; }
  LoopMask inner_mask() const { return all_mask_ & ~outer_mask_; }

  // Loops that the value varies along. A finished reduction varies along all outer loops, a running
  // one along all loops, one over the outer loops along the inner ones.
  LoopMask depends(Expr e);
  LoopMask depends(Index index) const;

  // Whether each row, an iteration of the outer loops, has elements of its own of it.
  bool is_of_rows(Expr e) {
    const LoopMask loops = depends(e);
    return (loops & outer_mask()) != 0 && (loops & inner_mask()) != 0;
  }

  // How an address moves along a loop.
  enum class Walk : uint8_t { kStill, kContiguous, kStrided, kIrregular };
  Walk walk(Index offset, size_t loop) const;

  // Roots evaluated in the inner loop of a stage (reductions' values, inner stores), after the last
  // stage, and after the outer loops.
  std::vector<Expr> stage_roots(uint32_t stage) const;
  std::vector<Expr> outer_roots() const;
  std::vector<Expr> after_outer_roots() const;
  std::vector<Expr> row_roots() const;  // but those after the outer loops
  std::vector<Expr> all_roots() const;

  // Weighted operations of the expressions that vary along the loop (constants and hoisted values
  // are free), and their loads' bytes.
  struct Work {
    int operations = 0;
    int bytes = 0;
  };
  Work work(const std::vector<Expr>& roots, LoopMask along);

 private:
  template <class Select>
  std::vector<Expr> store_roots(const Select& select) const;

  const Kernel& kernel_;
  std::vector<Index> variables_;
  std::vector<Index> extents_;
  LoopMask outer_mask_ = 0;
  LoopMask all_mask_ = 0;
  std::unordered_map<Expr, LoopMask> depends_;
};

// The first and the last stage that needs a load.
using StagesOfLoads = std::unordered_map<Expr, std::pair<uint32_t, uint32_t>>;
StagesOfLoads stages_of_loads(const KernelAnalysis& analysis);

// What is computed of these expressions whatever conditions hold, each once, before its operands.
void visit_unconditional(std::vector<Expr> roots, const std::function<void(Expr)>& visit);
// ... the loads.
std::vector<Expr> unconditional_loads(std::vector<Expr> roots);

}  // namespace litz
