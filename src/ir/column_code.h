// Loop bodies as code over columns: the interpreter's inner machine.
//
// A body is compiled for one call, with all sizes known, into a list of steps. A step computes a
// column of up to kBlock values, one for each of as many iterations of the loop nest, so that the
// cost of choosing what to do is paid once a block. Operations are total functions and run on all
// lanes; loads and index checks happen only on the lanes where every enclosing kMasked condition
// holds. A load outside its buffer throws InternalError: it never reads the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/column_kernels.h"
#include "ir/expr.h"
#include "litz/artifact.h"

namespace litz {

// A buffer in one call.
struct MemoryRegion {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  // in elements
  std::string name;              // for messages
};

// Names a column in the code that is being compiled.
struct ColumnTag;
using ColumnId = Id<ColumnTag>;

class ColumnCode {
 public:
  static constexpr int64_t kBlock = 256;

  // Where the caller writes the values of loop variable `i` before run().
  int64_t* variable(size_t i);
  // Where the caller writes the values of kReduced(0), which the compiler was asked for.
  float* reduced();
  // Runs the steps on the first `count` lanes. Ends at once with the status of a check that fails
  // on an active lane.
  [[nodiscard]] LitzStatus run(int64_t count);
  // Values of a column that the compiler was told to keep.
  const void* column(ColumnId id) const;

 private:
  friend class ColumnCompiler;

  enum class StepKind : uint8_t {
    kKernel,
    kIndexSum,
    kCheckCoordinate,
    kLoad,
    kCheckIndex,
    kCheck,
    kCheckDivisor
  };
  struct Step {
    StepKind kind = StepKind::kKernel;
    ColumnKernel kernel = nullptr;  // kKernel
    ColumnLoad load = nullptr;      // kLoad
    const MemoryRegion* region = nullptr;
    // kIndexSum: the constant; kCheckCoordinate, kCheckIndex: the extent; kCheck, kCheckDivisor:
    // bytes of a value
    int64_t number = 0;
    LitzStatus status = LITZ_OK;  // kCheckIndex: of a failure
    ColumnId out;
    ColumnId predicate;  // invalid: all lanes are active
    std::vector<ColumnId> operands;
    std::vector<int64_t> factors;  // kIndexSum, one for each operand
  };
  struct alignas(64) Block {
    std::byte bytes[kBlock * 8];
  };

  void* data(ColumnId id) { return blocks_[slots_[id.value]].bytes; }
  const bool* active_lanes(const Step& step);
  void run_load(const Step& step, int64_t count);
  bool run_check_index(const Step& step, int64_t count);
  bool run_check(const Step& step, int64_t count);
  bool run_check_divisor(const Step& step, int64_t count);
  void run_check_coordinate(const Step& step, int64_t count);

  std::vector<Step> steps_;
  std::vector<uint32_t> slots_;  // of a column, its block
  std::vector<Block> blocks_;
  std::vector<ColumnId> variables_;
  ColumnId reduced_;
};

class ColumnCompiler {
 public:
  using SizeOf = std::function<int64_t(Index size_symbol)>;
  using RegionOf = std::function<const MemoryRegion&(BufferId)>;

  // `variables` are the loop variables, in the order of ColumnCode::variable. Regions must outlive
  // the code.
  ColumnCompiler(std::vector<Index> variables, SizeOf size_of, RegionOf region_of);

  // kReduced(0) is a float32 column from here on that the caller fills (ColumnCode::reduced).
  void bind_reduced();
  ColumnId compile(Expr expr);
  // An int64 column; `runtime` are the columns of i0, i1, ...
  ColumnId compile_index(Index index, std::span<const ColumnId> runtime = {});
  // Element offsets of coordinates that are checked to lie in the region.
  ColumnId compile_offsets(const MemoryRegion& region, std::span<const Index> coordinates,
                           std::span<const ColumnId> runtime, ColumnId predicate = {});
  ColumnId compile_cast(ColumnId column, DType from, DType to);

  // The columns of `kept` can be read after run().
  ColumnCode finish(std::span<const ColumnId> kept);

 private:
  using Step = ColumnCode::Step;
  using StepKind = ColumnCode::StepKind;
  struct Frame;

  ColumnId new_column();
  ColumnId emit(Step step);
  ColumnId constant(const Scalar& scalar);
  ColumnId index_constant(int64_t value);
  ColumnId find(Expr expr, ColumnId predicate) const;
  ColumnId operand_predicate(const Frame& frame, size_t operand) const;
  ColumnId both(ColumnId predicate, ColumnId condition);
  bool stays_below(Index coordinate, int64_t size) const;
  bool touches_memory(Expr expr) const { return touches_memory_.contains(expr); }
  ColumnId compile_node(const Frame& frame);
  ColumnId compile_load(Expr expr, std::span<const ColumnId> runtime, ColumnId predicate);

  SizeOf size_of_;
  RegionOf region_of_;
  ColumnCode code_;
  std::unordered_map<Index, ColumnId> variable_columns_;
  std::unordered_map<Index, ColumnId> index_columns_;  // those without runtime indices
  std::map<std::pair<DType, uint64_t>, ColumnId> constant_columns_;
  std::vector<std::pair<ColumnId, Scalar>> constants_;
  std::unordered_set<Expr> touches_memory_;
  // Columns of an expression by the predicate they were computed under, and of a predicate the one
  // that it narrows.
  std::map<std::pair<uint32_t, ColumnId>, ColumnId> columns_;
  std::map<ColumnId, ColumnId> wider_;
  std::map<std::pair<ColumnId, ColumnId>, ColumnId> conjunctions_;
};

}  // namespace litz
