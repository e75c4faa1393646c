#include "ir/column_code.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ir/check_status.h"
#include "ir/scalar_cell.h"
#include "support/error.h"

namespace litz {

// ---- running ----

int64_t* ColumnCode::variable(size_t i) { return static_cast<int64_t*>(data(variables_[i])); }

float* ColumnCode::reduced() { return static_cast<float*>(data(reduced_)); }

const void* ColumnCode::column(ColumnId id) const { return blocks_[slots_[id.value]].bytes; }

const bool* ColumnCode::active_lanes(const Step& step) {
  return step.predicate.valid() ? static_cast<const bool*>(data(step.predicate)) : nullptr;
}

void ColumnCode::run_check_coordinate(const Step& step, int64_t count) {
  const auto* values = static_cast<const int64_t*>(data(step.operands[0]));
  const bool* active = active_lanes(step);
  for (int64_t i = 0; i < count; ++i) {
    if (active != nullptr && !active[i]) continue;
    LITZ_CHECK(values[i] >= 0 && values[i] < step.number,
               "coordinate " + std::to_string(values[i]) + " of buffer " + step.region->name +
                   " is outside its size " + std::to_string(step.number));
  }
}

void ColumnCode::run_load(const Step& step, int64_t count) {
  const auto* offsets = static_cast<const int64_t*>(data(step.operands[0]));
  const bool* active = active_lanes(step);
  auto* out = static_cast<std::byte*>(data(step.out));
  if (active == nullptr) {
    step.load(out, step.region->data, offsets, count);
    return;
  }
  const int64_t bytes = column_value_bytes(step.region->dtype);
  std::memset(out, 0, static_cast<size_t>(count * bytes));
  for (int64_t i = 0; i < count; ++i) {
    if (active[i]) step.load(out + i * bytes, step.region->data, offsets + i, 1);
  }
}

bool ColumnCode::run_check_index(const Step& step, int64_t count) {
  const auto* values = static_cast<const int64_t*>(data(step.operands[0]));
  const bool* active = active_lanes(step);
  auto* out = static_cast<int64_t*>(data(step.out));
  for (int64_t i = 0; i < count; ++i) {
    const bool valid = values[i] >= 0 && values[i] < step.number;
    if (!valid && (active == nullptr || active[i])) return false;
    out[i] = valid ? values[i] : 0;
  }
  return true;
}

bool ColumnCode::run_check(const Step& step, int64_t count) {
  const auto* holds = static_cast<const bool*>(data(step.operands[1]));
  const bool* active = active_lanes(step);
  for (int64_t i = 0; i < count; ++i) {
    if (!holds[i] && (active == nullptr || active[i])) return false;
  }
  std::memcpy(data(step.out), data(step.operands[0]), static_cast<size_t>(count * step.number));
  return true;
}

bool ColumnCode::run_check_divisor(const Step& step, int64_t count) {
  constexpr std::byte kZero[8] = {};
  const auto bytes = static_cast<size_t>(step.number);
  const auto* values = static_cast<const std::byte*>(data(step.operands[0]));
  const bool* active = active_lanes(step);
  for (int64_t i = 0; i < count; ++i) {
    const bool valid = std::memcmp(values + i * step.number, kZero, bytes) != 0;
    if (!valid && (active == nullptr || active[i])) return false;
  }
  std::memcpy(data(step.out), values, static_cast<size_t>(count) * bytes);
  return true;
}

LitzStatus ColumnCode::run(int64_t count) {
  for (const Step& step : steps_) {
    switch (step.kind) {
      case StepKind::kKernel: {
        const void* operands[3];
        for (size_t i = 0; i < step.operands.size(); ++i) operands[i] = data(step.operands[i]);
        step.kernel(data(step.out), operands, count);
        break;
      }
      case StepKind::kIndexSum: {
        // Unsigned: lanes where no condition holds may have any values.
        auto* out = static_cast<uint64_t*>(data(step.out));
        std::fill_n(out, count, static_cast<uint64_t>(step.number));
        for (size_t term = 0; term < step.operands.size(); ++term) {
          const auto* values = static_cast<const uint64_t*>(data(step.operands[term]));
          const auto factor = static_cast<uint64_t>(step.factors[term]);
          for (int64_t i = 0; i < count; ++i) out[i] += factor * values[i];
        }
        break;
      }
      case StepKind::kCheckCoordinate:
        run_check_coordinate(step, count);
        break;
      case StepKind::kLoad:
        run_load(step, count);
        break;
      case StepKind::kCheckIndex:
        if (!run_check_index(step, count)) return step.status;
        break;
      case StepKind::kCheck:
        if (!run_check(step, count)) return LITZ_VALUE_OUT_OF_RANGE;
        break;
      case StepKind::kCheckDivisor:
        if (!run_check_divisor(step, count)) return LITZ_DIVISION_BY_ZERO;
        break;
    }
  }
  return LITZ_OK;
}

// ---- compiling ----

// An expression on the way to its column. kMasked visits its condition before its value.
struct ColumnCompiler::Frame {
  Expr expr;
  ColumnId predicate;
  ColumnId inner;  // kMasked: predicate of the value
  size_t next = 0;

  size_t operand_number() const {
    if (expr.op() != ExprOp::kMasked) return next;
    constexpr size_t kOrder[] = {0, 2, 1};
    return kOrder[next];
  }
};

ColumnCompiler::ColumnCompiler(std::vector<Index> variables, SizeOf size_of, RegionOf region_of)
    : size_of_(std::move(size_of)), region_of_(std::move(region_of)) {
  for (Index variable : variables) {
    const ColumnId column = new_column();
    code_.variables_.push_back(column);
    variable_columns_.emplace(variable, column);
  }
}

ColumnId ColumnCompiler::new_column() {
  code_.slots_.push_back(0);
  return ColumnId(static_cast<uint32_t>(code_.slots_.size() - 1));
}

ColumnId ColumnCompiler::emit(Step step) {
  if (!step.out.valid()) step.out = new_column();
  code_.steps_.push_back(std::move(step));
  return code_.steps_.back().out;
}

ColumnId ColumnCompiler::constant(const Scalar& scalar) {
  const uint64_t bits = is_floating(scalar.dtype) ? std::bit_cast<uint64_t>(scalar.real)
                                                  : static_cast<uint64_t>(scalar.integer);
  const auto [entry, added] = constant_columns_.try_emplace({scalar.dtype, bits});
  if (added) {
    entry->second = new_column();
    constants_.emplace_back(entry->second, scalar);
  }
  return entry->second;
}

ColumnId ColumnCompiler::index_constant(int64_t value) {
  return constant(Scalar::of_int(DType::kInt64, value));
}

ColumnId ColumnCompiler::compile_index(Index index, std::span<const ColumnId> runtime) {
  if (const auto found = index_columns_.find(index); found != index_columns_.end()) {
    return found->second;
  }
  const auto kernel = [&](ExprOp op) {
    ColumnId result = compile_index(index.operands()[0], runtime);
    for (Index operand : index.operands().subspan(1)) {
      Step step;
      step.kernel = find_column_kernel(op, DType::kInt64, DType::kInt64);
      step.operands = {result, compile_index(operand, runtime)};
      result = emit(std::move(step));
    }
    return result;
  };
  ColumnId column;
  switch (index.kind()) {
    case IndexKind::kConstant:
      return index_constant(index.constant());
    case IndexKind::kSymbol:
      switch (index.symbol_kind()) {
        case SymbolKind::kSize:
          return index_constant(size_of_(index));
        case SymbolKind::kVariable: {
          const auto found = variable_columns_.find(index);
          LITZ_CHECK(found != variable_columns_.end(),
                     "loop variable " + to_string(index) + " is not of this loop nest");
          return found->second;
        }
        case SymbolKind::kIndirect:
          LITZ_CHECK(index.symbol_number() < runtime.size(),
                     "no runtime index " + to_string(index));
          return runtime[index.symbol_number()];
      }
      break;
    case IndexKind::kSum: {
      Step step;
      step.kind = StepKind::kIndexSum;
      step.number = index.sum_constant();
      for (const auto& [factor, term] : index.terms()) {
        step.operands.push_back(compile_index(term, runtime));
        step.factors.push_back(factor);
      }
      column = emit(std::move(step));
      break;
    }
    case IndexKind::kProduct:
      column = kernel(ExprOp::kMul);
      break;
    case IndexKind::kFloorDiv:
      column = kernel(ExprOp::kFloorDiv);
      break;
    case IndexKind::kMod:
      column = kernel(ExprOp::kRemainder);
      break;
    case IndexKind::kMin:
      column = kernel(ExprOp::kMin);
      break;
    case IndexKind::kMax:
      column = kernel(ExprOp::kMax);
      break;
  }
  if (runtime.empty()) index_columns_.emplace(index, column);
  return column;
}

// A loop variable needs no check where its loop is no longer than the dimension.
bool ColumnCompiler::stays_below(Index coordinate, int64_t size) const {
  return coordinate.is_symbol() && coordinate.symbol_kind() == SymbolKind::kVariable &&
         evaluate(coordinate.extent(), size_of_) <= size;
}

ColumnId ColumnCompiler::compile_offsets(const MemoryRegion& region,
                                         std::span<const Index> coordinates,
                                         std::span<const ColumnId> runtime, ColumnId predicate) {
  LITZ_CHECK(coordinates.size() == region.sizes.size(),
             std::to_string(coordinates.size()) + " coordinates for buffer " + region.name);
  Step sum;
  sum.kind = StepKind::kIndexSum;
  for (size_t d = 0; d < coordinates.size(); ++d) {
    const ColumnId coordinate = compile_index(coordinates[d], runtime);
    if (!stays_below(coordinates[d], region.sizes[d])) {
      Step check;
      check.kind = StepKind::kCheckCoordinate;
      check.region = &region;
      check.number = region.sizes[d];
      check.predicate = predicate;
      check.operands = {coordinate};
      emit(std::move(check));
    }
    sum.operands.push_back(coordinate);
    sum.factors.push_back(region.strides[d]);
  }
  return emit(std::move(sum));
}

ColumnId ColumnCompiler::compile_cast(ColumnId column, DType from, DType to) {
  if (from == to) return column;
  Step step;
  step.kernel = find_column_kernel(ExprOp::kCast, from, to);
  step.operands = {column};
  return emit(std::move(step));
}

// A column computed under a wider predicate, or under none, serves as well.
ColumnId ColumnCompiler::find(Expr expr, ColumnId predicate) const {
  if (!touches_memory(expr)) predicate = ColumnId();
  while (true) {
    const auto found = columns_.find({expr.id(), predicate});
    if (found != columns_.end()) return found->second;
    if (!predicate.valid()) return ColumnId();
    predicate = wider_.at(predicate);
  }
}

ColumnId ColumnCompiler::both(ColumnId predicate, ColumnId condition) {
  const auto [entry, added] = conjunctions_.try_emplace({predicate, condition});
  if (!added) return entry->second;
  Step step;
  if (predicate.valid()) {
    step.kernel = find_column_kernel(ExprOp::kBitAnd, DType::kBool, DType::kBool);
    step.operands = {predicate, condition};
    entry->second = emit(std::move(step));
  } else {
    entry->second = condition;
  }
  wider_.try_emplace(entry->second, predicate);
  return entry->second;
}

ColumnId ColumnCompiler::operand_predicate(const Frame& frame, size_t operand) const {
  return frame.expr.op() == ExprOp::kMasked && operand == 1 ? frame.inner : frame.predicate;
}

ColumnId ColumnCompiler::compile_load(Expr expr, std::span<const ColumnId> runtime,
                                      ColumnId predicate) {
  const MemoryRegion& region = region_of_(expr.buffer());
  LITZ_CHECK(region.dtype == expr.dtype(), "load of another dtype than that of " + region.name);
  Step step;
  step.kind = StepKind::kLoad;
  step.load = find_column_load(region.dtype);
  step.region = &region;
  step.predicate = predicate;
  step.operands = {compile_offsets(region, expr.coordinates(), runtime, predicate)};
  return emit(std::move(step));
}

ColumnId ColumnCompiler::compile_node(const Frame& frame) {
  const Expr expr = frame.expr;
  std::vector<ColumnId> operands;
  for (size_t i = 0; i < expr.operands().size(); ++i) {
    operands.push_back(find(expr.operand(i), operand_predicate(frame, i)));
  }
  Step step;
  switch (expr.op()) {
    case ExprOp::kConstant:
      return constant(expr.scalar());
    case ExprOp::kIndexValue:
      return compile_index(expr.index());
    case ExprOp::kLoad:
      return compile_load(expr, operands, frame.predicate);
    case ExprOp::kReduced:
      if (code_.reduced_.valid() && expr.number() == 0) return code_.reduced_;
      throw_internal("op is of a Program", __FILE__, __LINE__, "reduced outside of a kernel");
    case ExprOp::kCheckIndex: {
      // The extent holds no loop variables, so it is a number here.
      step.kind = StepKind::kCheckIndex;
      step.number = evaluate(expr.index(), size_of_);
      step.status = status_of(expr.fault());
      step.predicate = frame.predicate;
      step.operands = operands;
      return emit(std::move(step));
    }
    case ExprOp::kCheck:
    case ExprOp::kCheckDivisor:
      step.kind = expr.op() == ExprOp::kCheck ? StepKind::kCheck : StepKind::kCheckDivisor;
      step.number = column_value_bytes(expr.dtype());
      step.predicate = frame.predicate;
      break;
    case ExprOp::kWhere:
    case ExprOp::kMasked:
      step.kernel = find_column_kernel(ExprOp::kWhere, expr.dtype(), expr.dtype());
      break;
    default:
      step.kernel = find_column_kernel(expr.op(), expr.operand(0).dtype(), expr.dtype());
      break;
  }
  step.operands = std::move(operands);
  return emit(std::move(step));
}

void ColumnCompiler::bind_reduced() { code_.reduced_ = new_column(); }

ColumnId ColumnCompiler::compile(Expr root) {
  visit_postorder({&root, 1}, [this](Expr expr) {
    bool touches = expr.op() == ExprOp::kLoad || is_check(expr.op());
    for (Expr operand : expr.operands()) touches = touches || touches_memory(operand);
    if (touches) touches_memory_.insert(expr);
  });
  std::vector<Frame> stack = {{root, {}, {}}};
  while (!stack.empty()) {
    Frame& frame = stack.back();
    if (find(frame.expr, frame.predicate).valid()) {
      stack.pop_back();
      continue;
    }
    if (frame.next < frame.expr.operands().size()) {
      const size_t number = frame.operand_number();
      if (frame.expr.op() == ExprOp::kMasked && number == 1) {
        frame.inner = both(frame.predicate, find(frame.expr.operand(0), frame.predicate));
      }
      ++frame.next;
      stack.push_back({frame.expr.operand(number), operand_predicate(frame, number), {}});
      continue;
    }
    const Frame done = frame;
    stack.pop_back();
    const ColumnId predicate = touches_memory(done.expr) ? done.predicate : ColumnId();
    columns_.emplace(std::pair(done.expr.id(), predicate), compile_node(done));
  }
  return find(root, {});
}

// Columns share blocks: a block is free again after the last step that reads it. Variables,
// constants and kept columns have blocks of their own.
ColumnCode ColumnCompiler::finish(std::span<const ColumnId> kept) {
  constexpr size_t kForever = SIZE_MAX;
  std::vector<size_t> last_use(code_.slots_.size(), 0);
  for (size_t i = 0; i < code_.steps_.size(); ++i) {
    const Step& step = code_.steps_[i];
    for (ColumnId operand : step.operands) last_use[operand.value] = i;
    if (step.predicate.valid()) last_use[step.predicate.value] = i;
  }
  for (ColumnId id : kept) last_use[id.value] = kForever;

  uint32_t num_blocks = 0;
  std::vector<uint32_t> free_blocks;
  const auto own_block = [&](ColumnId id) {
    code_.slots_[id.value] = num_blocks++;
    last_use[id.value] = kForever;
  };
  for (ColumnId id : code_.variables_) own_block(id);
  if (code_.reduced_.valid()) own_block(code_.reduced_);
  for (const auto& [id, scalar] : constants_) own_block(id);
  for (size_t i = 0; i < code_.steps_.size(); ++i) {
    const Step& step = code_.steps_[i];
    if (free_blocks.empty()) free_blocks.push_back(num_blocks++);
    code_.slots_[step.out.value] = free_blocks.back();
    free_blocks.pop_back();
    std::vector<ColumnId> read = step.operands;
    if (step.predicate.valid()) read.push_back(step.predicate);
    for (ColumnId id : read) {
      if (last_use[id.value] != i) continue;
      free_blocks.push_back(code_.slots_[id.value]);
      last_use[id.value] = kForever;  // freed: not a second time
    }
    if (last_use[step.out.value] == 0) free_blocks.push_back(code_.slots_[step.out.value]);
  }

  code_.blocks_.resize(num_blocks);
  for (const auto& [id, scalar] : constants_) {
    const ScalarCell cell = to_cell(scalar);
    const int64_t bytes = column_value_bytes(scalar.dtype);
    auto* out = static_cast<std::byte*>(code_.data(id));
    for (int64_t lane = 0; lane < ColumnCode::kBlock; ++lane) {
      std::memcpy(out + lane * bytes, cell.bytes, static_cast<size_t>(bytes));
    }
  }
  return std::move(code_);
}

}  // namespace litz
