#include "ir/run_operation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "ir/scalar_semantics.h"
#include "support/error.h"

namespace litz {
namespace {

constexpr int64_t kBlock = ColumnCode::kBlock;

int64_t count_iterations(std::span<const int64_t> extents) {
  int64_t count = 1;
  for (int64_t extent : extents) count *= std::max<int64_t>(extent, 0);
  return count;
}

// Loop nests one inside the other, as numbers.
struct Loops {
  std::vector<Index> variables;
  std::vector<int64_t> extents;

  void add(Index variable, int64_t extent) {
    variables.push_back(variable);
    extents.push_back(extent);
  }
  void add(const LoopNest& nest, const ColumnCompiler::SizeOf& size_of) {
    for (size_t i = 0; i < nest.extents.size(); ++i) {
      add(nest.variables[i], evaluate(nest.extents[i], size_of));
    }
  }
  int64_t count() const { return count_iterations(extents); }
};

// Walks a loop nest in row-major order, a block of iterations at a time.
class Walk {
 public:
  explicit Walk(const Loops& loops)
      : extents_(loops.extents), position_(extents_.size(), 0), left_(loops.count()) {}

  // Writes the loop variables of the next iterations to the code's columns; returns how many.
  int64_t next(ColumnCode& code) {
    const int64_t count = std::min(left_, kBlock);
    left_ -= count;
    if (extents_.empty()) return count;
    const size_t inner = extents_.size() - 1;
    for (int64_t lane = 0; lane < count;) {
      // A stretch in which only the innermost variable changes.
      const int64_t stretch = std::min(count - lane, extents_[inner] - position_[inner]);
      for (size_t i = 0; i < inner; ++i)
        std::fill_n(code.variable(i) + lane, stretch, position_[i]);
      std::iota(code.variable(inner) + lane, code.variable(inner) + lane + stretch,
                position_[inner]);
      lane += stretch;
      position_[inner] += stretch;
      for (size_t i = inner; i > 0 && position_[i] == extents_[i]; --i) {
        position_[i] = 0;
        ++position_[i - 1];
      }
    }
    return count;
  }

 private:
  std::vector<int64_t> extents_;
  std::vector<int64_t> position_;
  int64_t left_;
};

ColumnCompiler make_compiler(const Loops& loops, const OperationMemory& memory) {
  return ColumnCompiler(loops.variables, memory.size_of, memory.region_of);
}

// ---- accumulating ----

// Floats accumulate as double, integers and bools as int64, which wraps to the same low bits.
DType accumulator_dtype(DType dtype) {
  return is_floating(dtype) ? DType::kFloat64 : DType::kInt64;
}

// One running value. `T` is double or int64_t.
template <class T>
class Accumulator {
 public:
  Accumulator(ReductionKind kind, T start) : kind_(kind), start_(start) { reset(); }

  void reset() {
    value_ = start_;
    position_ = 0;
    best_ = 0;
  }

  void add(T value) {
    switch (kind_) {
      case ReductionKind::kSum:
        value_ = semantics::add(value_, value);
        break;
      case ReductionKind::kProd:
        value_ = semantics::mul(value_, value);
        break;
      case ReductionKind::kMax:
        value_ = semantics::max(value_, value);
        break;
      case ReductionKind::kMin:
        value_ = semantics::min(value_, value);
        break;
      case ReductionKind::kAny:
        value_ = value_ != T(0) || value != T(0);
        break;
      case ReductionKind::kAll:
        value_ = value_ != T(0) && value != T(0);
        break;
      case ReductionKind::kArgMax:
        if (position_ == 0 || is_better(value, value_, value > value_)) take(value);
        break;
      case ReductionKind::kArgMin:
        if (position_ == 0 || is_better(value, value_, value < value_)) take(value);
        break;
    }
    ++position_;
  }

  T value() const { return value_; }
  int64_t best_position() const { return best_; }

 private:
  // The first NaN is the best of all.
  static bool is_better(T value, T best, bool ordered) {
    if (best != best) return false;
    return ordered || value != value;
  }
  void take(T value) {
    value_ = value;
    best_ = position_;
  }

  ReductionKind kind_;
  T start_;
  T value_;
  int64_t position_;
  int64_t best_;
};

template <class T>
T start_value(ReductionKind kind, DType dtype) {
  if (kind == ReductionKind::kArgMax || kind == ReductionKind::kArgMin) return T(0);
  const Scalar scalar = identity(kind, dtype);
  return is_floating(dtype) ? static_cast<T>(scalar.real) : static_cast<T>(scalar.integer);
}

// Stores results that come one by one, in row-major order of `loops`.
class ResultWriter {
 public:
  ResultWriter(const Loops& loops, const OperationMemory& memory, BufferId output,
               std::span<const Index> coordinates, DType from)
      : region_(memory.region_of(output)), walk_(loops) {
    ColumnCompiler compiler = make_compiler(loops, memory);
    offsets_ = compiler.compile_offsets(region_, coordinates, {});
    code_ = compiler.finish({&offsets_, 1});
    store_ = find_column_store(region_.dtype);
    if (from != region_.dtype) cast_ = find_column_kernel(ExprOp::kCast, from, region_.dtype);
  }

  template <class T>
  void add(T value) {
    reinterpret_cast<T*>(values_)[pending_++] = value;
    if (pending_ == kBlock) flush();
  }

  void flush() {
    if (pending_ == 0) return;
    const int64_t count = walk_.next(code_);
    LITZ_CHECK(count == pending_, "results do not match the loops");
    LITZ_CHECK(code_.run(count) == LITZ_OK, "offsets check no index");
    const void* values = values_;
    if (cast_ != nullptr) {
      cast_(converted_, &values, count);
      values = converted_;
    }
    store_(values, region_.data, static_cast<const int64_t*>(code_.column(offsets_)), count);
    pending_ = 0;
  }

 private:
  const MemoryRegion& region_;
  Walk walk_;
  ColumnCode code_;
  ColumnId offsets_;
  ColumnStore store_;
  ColumnKernel cast_ = nullptr;
  int64_t pending_ = 0;
  alignas(64) std::byte values_[kBlock * 8];
  alignas(64) std::byte converted_[kBlock * 8];
};

// Calls consume(value) with each value of `expr`, as T, in row-major order of the loops.
template <class T, class Consume>
LitzStatus for_each_value(const Loops& loops, Expr expr, const OperationMemory& memory,
                          Consume consume) {
  ColumnCompiler compiler = make_compiler(loops, memory);
  const ColumnId value =
      compiler.compile_cast(compiler.compile(expr), expr.dtype(), accumulator_dtype(expr.dtype()));
  ColumnCode code = compiler.finish({&value, 1});
  Walk walk(loops);
  for (int64_t count = walk.next(code); count > 0; count = walk.next(code)) {
    if (const LitzStatus status = code.run(count); status != LITZ_OK) return status;
    const T* values = static_cast<const T*>(code.column(value));
    for (int64_t i = 0; i < count; ++i) consume(values[i]);
  }
  return LITZ_OK;
}

template <class T>
LitzStatus run_reduction(const Reduction& operation, const OperationMemory& memory) {
  Loops outer;
  outer.add(operation.loops, memory.size_of);
  Loops all = outer;
  all.add(operation.reduction, memory.size_of);
  const int64_t length = count_iterations(std::span(all.extents).subspan(outer.extents.size()));
  const bool wants_position =
      operation.kind == ReductionKind::kArgMax || operation.kind == ReductionKind::kArgMin;
  const DType dtype = operation.value.dtype();

  ResultWriter writer(outer, memory, operation.output, operation.loops.variables,
                      wants_position ? DType::kInt64 : accumulator_dtype(dtype));
  Accumulator<T> accumulator(operation.kind, start_value<T>(operation.kind, dtype));
  const auto finish_one = [&] {
    if (wants_position) {
      writer.add(accumulator.best_position());
    } else {
      writer.add(accumulator.value());
    }
    accumulator.reset();
  };
  LitzStatus status = LITZ_OK;
  if (length == 0) {
    for (int64_t i = outer.count(); i > 0; --i) finish_one();
  } else {
    int64_t done = 0;
    status = for_each_value<T>(all, operation.value, memory, [&](T value) {
      accumulator.add(value);
      if (++done == length) {
        finish_one();
        done = 0;
      }
    });
  }
  writer.flush();
  return status;
}

// For each position of the outer loops and each key the scaled and masked score; as many keys in a
// row as there are.
LitzStatus find_scores(const Attention& operation, const Loops& queries, const Loops& keys,
                       const OperationMemory& memory, std::vector<double>& scores) {
  Loops all = queries;
  all.add(keys.variables[0], keys.extents[0]);
  Loops products = all;
  products.add(operation.factors, memory.size_of);
  std::vector<float> product(static_cast<size_t>(all.count()), 0.0F);
  const int64_t factors = products.extents.back();
  ExprContext& exprs = operation.score.context();
  const Expr term = exprs.binary(ExprOp::kMul, exprs.cast(operation.query, DType::kFloat64),
                                 exprs.cast(operation.key, DType::kFloat64));
  double sum = 0;
  int64_t done = 0;
  LitzStatus status = for_each_value<double>(products, term, memory, [&](double value) {
    sum += value;
    if (++done % factors != 0) return;
    product[static_cast<size_t>(done / factors - 1)] = static_cast<float>(sum);
    sum = 0;
  });
  if (status != LITZ_OK) return status;

  ColumnCompiler compiler = make_compiler(all, memory);
  compiler.bind_reduced();
  const ColumnId score = compiler.compile(operation.score);
  ColumnCode code = compiler.finish({&score, 1});
  Walk walk(all);
  for (int64_t count = walk.next(code); count > 0; count = walk.next(code)) {
    std::copy_n(product.begin() + static_cast<std::ptrdiff_t>(scores.size()), count,
                code.reduced());
    status = code.run(count);
    if (status != LITZ_OK) return status;
    const auto* values = static_cast<const float*>(code.column(score));
    scores.insert(scores.end(), values, values + count);
  }
  return LITZ_OK;
}

// Scores become weights, zeros in a row that is masked as a whole. The logarithm of the sum of
// their exponentials.
double apply_softmax(std::span<double> row) {
  double greatest = -std::numeric_limits<double>::infinity();
  for (double score : row) greatest = semantics::max(greatest, score);
  if (greatest == -std::numeric_limits<double>::infinity()) {
    std::fill(row.begin(), row.end(), 0.0);
    return 0;
  }
  double sum = 0;
  for (double& score : row) {
    score = std::exp(score - greatest);
    sum += score;
  }
  for (double& score : row) score /= sum;
  return greatest + std::log(sum);
}

// Runs with the scanned loop innermost.
template <class T>
LitzStatus run_scan(const Scan& operation, const OperationMemory& memory) {
  Loops given;
  given.add(operation.loops, memory.size_of);
  Loops loops;
  for (size_t i = 0; i < given.variables.size(); ++i) {
    if (i != operation.axis) loops.add(given.variables[i], given.extents[i]);
  }
  loops.add(given.variables[operation.axis], given.extents[operation.axis]);

  const ReductionKind kind = reduction_of(operation.kind);
  const DType dtype = operation.value.dtype();
  ResultWriter writer(loops, memory, operation.output, operation.loops.variables,
                      accumulator_dtype(dtype));
  Accumulator<T> accumulator(kind, start_value<T>(kind, dtype));
  int64_t done = 0;
  const LitzStatus status = for_each_value<T>(loops, operation.value, memory, [&](T value) {
    accumulator.add(value);
    writer.add(accumulator.value());
    if (++done == loops.extents.back()) {
      accumulator.reset();
      done = 0;
    }
  });
  writer.flush();
  return status;
}

std::optional<ExprOp> combining_op(StoreMode mode) {
  switch (mode) {
    case StoreMode::kStore:
      return std::nullopt;
    case StoreMode::kAdd:
      return ExprOp::kAdd;
    case StoreMode::kMul:
      return ExprOp::kMul;
    case StoreMode::kMin:
      return ExprOp::kMin;
    case StoreMode::kMax:
      return ExprOp::kMax;
  }
  throw_internal("mode is known", __FILE__, __LINE__, "store mode");
}

}  // namespace

LitzStatus run_operation(const Pointwise& operation, const OperationMemory& memory) {
  Loops loops;
  loops.add(operation.loops, memory.size_of);
  const MemoryRegion& output = memory.region_of(operation.output);
  ColumnCompiler compiler = make_compiler(loops, memory);
  const ColumnId kept[] = {compiler.compile(operation.value),
                           compiler.compile_offsets(output, operation.loops.variables, {})};
  ColumnCode code = compiler.finish(kept);
  const ColumnStore store = find_column_store(output.dtype);
  Walk walk(loops);
  for (int64_t count = walk.next(code); count > 0; count = walk.next(code)) {
    if (const LitzStatus status = code.run(count); status != LITZ_OK) return status;
    store(code.column(kept[0]), output.data, static_cast<const int64_t*>(code.column(kept[1])),
          count);
  }
  return LITZ_OK;
}

LitzStatus run_operation(const Reduction& operation, const OperationMemory& memory) {
  return is_floating(operation.value.dtype()) ? run_reduction<double>(operation, memory)
                                              : run_reduction<int64_t>(operation, memory);
}

LitzStatus run_operation(const Attention& operation, const OperationMemory& memory) {
  Loops outer;
  outer.add(operation.loops, memory.size_of);
  Loops queries = outer;
  queries.variables.pop_back();
  queries.extents.pop_back();
  Loops keys;
  keys.add(operation.keys, memory.size_of);
  const int64_t row = keys.extents[0];
  const int64_t features = outer.extents.back();
  std::vector<double> weights;
  ResultWriter writer(outer, memory, operation.output, operation.loops.variables, DType::kFloat64);
  std::optional<ResultWriter> logarithms;
  if (operation.logsumexp.valid())
    logarithms.emplace(queries, memory, operation.logsumexp,
                       std::span(operation.loops.variables).first(queries.variables.size()),
                       DType::kFloat64);
  LitzStatus status = LITZ_OK;
  if (row == 0) {
    for (int64_t i = outer.count(); i > 0; --i) writer.add(0.0);
    writer.flush();
    for (int64_t i = logarithms ? queries.count() : 0; i > 0; --i) logarithms->add(0.0);
    if (logarithms) logarithms->flush();
    return status;
  }
  status = find_scores(operation, queries, keys, memory, weights);
  if (status != LITZ_OK) return status;
  for (auto at = weights.begin(); at != weights.end(); at += row) {
    const double logarithm = apply_softmax({at, at + row});
    if (logarithms) logarithms->add(logarithm);
  }
  if (logarithms) logarithms->flush();

  Loops all = outer;
  all.add(keys.variables[0], row);
  double sum = 0;
  int64_t done = 0;
  status = for_each_value<double>(all, operation.value, memory, [&](double value) {
    const double weight = weights[static_cast<size_t>(done / (row * features) * row + done % row)];
    // Nobody looks at what has no weight.
    if (weight != 0) sum += weight * value;
    if (++done % row != 0) return;
    writer.add(sum);
    sum = 0;
  });
  writer.flush();
  return status;
}

LitzStatus run_operation(const Scan& operation, const OperationMemory& memory) {
  return is_floating(operation.value.dtype()) ? run_scan<double>(operation, memory)
                                              : run_scan<int64_t>(operation, memory);
}

LitzStatus run_operation(const Scatter& operation, const OperationMemory& memory) {
  const MemoryRegion& output = memory.region_of(operation.output);
  if (operation.initial.valid()) {
    const Pointwise initial = {operation.output, operation.initial_loops, operation.initial};
    const LitzStatus status = run_operation(initial, memory);
    if (status != LITZ_OK) return status;
  }

  Loops loops;
  loops.add(operation.loops, memory.size_of);
  ColumnCompiler compiler = make_compiler(loops, memory);
  std::vector<ColumnId> runtime;
  for (Expr index : operation.runtime_indices) runtime.push_back(compiler.compile(index));
  const ColumnId kept[] = {compiler.compile(operation.value),
                           compiler.compile_offsets(output, operation.target, runtime)};
  ColumnCode code = compiler.finish(kept);

  const DType dtype = output.dtype;
  const int64_t bytes = column_value_bytes(dtype);
  const ColumnLoad load = find_column_load(dtype);
  const ColumnStore store = find_column_store(dtype);
  const std::optional<ExprOp> op = combining_op(operation.mode);
  const ColumnKernel combine = op ? find_column_kernel(*op, dtype, dtype) : nullptr;

  Walk walk(loops);
  for (int64_t count = walk.next(code); count > 0; count = walk.next(code)) {
    if (const LitzStatus status = code.run(count); status != LITZ_OK) return status;
    const auto* values = static_cast<const std::byte*>(code.column(kept[0]));
    const auto* offsets = static_cast<const int64_t*>(code.column(kept[1]));
    // One by one: targets may repeat. Storing a half rounds it.
    for (int64_t i = 0; i < count; ++i) {
      alignas(8) std::byte combined[8];
      const void* operands[2] = {combined, values + i * bytes};
      const void* result = operands[1];
      if (combine != nullptr) {
        load(combined, output.data, offsets + i, 1);
        combine(combined, operands, 1);
        result = combined;
      }
      store(result, output.data, offsets + i, 1);
    }
  }
  return LITZ_OK;
}

void copy_elements(const MemoryRegion& from, const MemoryRegion& to) {
  const int64_t bytes = size_of(from.dtype);
  LITZ_CHECK(from.sizes == to.sizes && bytes == size_of(to.dtype),
             "copy between different shapes: " + from.name + " and " + to.name);
  const auto* source = static_cast<const std::byte*>(from.data);
  auto* target = static_cast<std::byte*>(to.data);
  std::vector<int64_t> position(from.sizes.size(), 0);
  for (int64_t left = count_iterations(from.sizes); left > 0; --left) {
    int64_t read = 0;
    int64_t write = 0;
    for (size_t d = 0; d < position.size(); ++d) {
      read += position[d] * from.strides[d];
      write += position[d] * to.strides[d];
    }
    std::memcpy(target + write * bytes, source + read * bytes, static_cast<size_t>(bytes));
    for (size_t d = position.size(); d-- > 0;) {
      if (++position[d] < from.sizes[d]) break;
      position[d] = 0;
    }
  }
}

}  // namespace litz
