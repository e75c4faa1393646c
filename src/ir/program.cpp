#include "ir/program.h"

#include <limits>
#include <unordered_set>

#include "support/error.h"

namespace litz {
namespace {

constexpr std::string_view kReductionNames[] = {
#define LITZ_REDUCTION_NAME(name, spelling, meaning) spelling,
    LITZ_REDUCTION_KINDS(LITZ_REDUCTION_NAME)
#undef LITZ_REDUCTION_NAME
};

// Buffers in order of first mention, each once.
class BufferSet {
 public:
  void add(BufferId id) {
    if (id.valid() && seen_.insert(id).second) ids_.push_back(id);
  }
  void add_loads(std::span<const Expr> roots) {
    visit_postorder(roots, [this](Expr expr) {
      if (expr.op() == ExprOp::kLoad) add(expr.buffer());
    });
  }
  void add_argument(const ExternArgument& argument) {
    if (const auto* view = std::get_if<BufferView>(&argument.v)) add(view->buffer);
    if (const auto* list = std::get_if<ExternList>(&argument.v)) {
      for (const ExternArgument& item : *list) add_argument(item);
    }
  }
  std::vector<BufferId> take() { return std::move(ids_); }

 private:
  std::vector<BufferId> ids_;
  std::unordered_set<BufferId> seen_;
};

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace

std::string_view to_string(ReductionKind kind) {
  return kReductionNames[static_cast<size_t>(kind)];
}

DType result_dtype(ReductionKind kind, DType operand) {
  const bool position = kind == ReductionKind::kArgMax || kind == ReductionKind::kArgMin;
  return position ? DType::kInt64 : operand;
}

Scalar identity(ReductionKind kind, DType dtype) {
  const bool floating = is_floating(dtype);
  switch (kind) {
    case ReductionKind::kSum:
    case ReductionKind::kAny:
      return Scalar::of_int(dtype, 0);
    case ReductionKind::kProd:
    case ReductionKind::kAll:
      return Scalar::of_int(dtype, 1);
    case ReductionKind::kMax:
    case ReductionKind::kMin: {
      const bool lowest = kind == ReductionKind::kMax;
      if (floating) {
        const double infinity = std::numeric_limits<double>::infinity();
        return Scalar::of_double(dtype, lowest ? -infinity : infinity);
      }
      if (!is_signed(dtype)) {  // bool and uint8
        return Scalar::of_int(dtype, lowest ? 0 : dtype == DType::kBool ? 1 : 255);
      }
      const int shift = 64 - 8 * static_cast<int>(size_of(dtype));
      const int64_t smallest = std::numeric_limits<int64_t>::min() >> shift;
      return Scalar::of_int(dtype, lowest ? smallest : ~smallest);
    }
    case ReductionKind::kArgMax:
    case ReductionKind::kArgMin:
      break;
  }
  throw_internal("kind has an identity", __FILE__, __LINE__, std::string(to_string(kind)));
}

Program::Program(std::shared_ptr<IndexContext> indices)
    : exprs_(std::make_shared<ExprContext>(std::move(indices))) {}

LoopNest make_loops(IndexContext& context, std::span<const Index> extents, uint32_t first) {
  LoopNest loops;
  loops.extents.assign(extents.begin(), extents.end());
  loops.variables.reserve(extents.size());
  for (size_t i = 0; i < extents.size(); ++i) {
    loops.variables.push_back(extents[i].is_constant(1)
                                  ? context.constant(0)
                                  : context.variable(first + static_cast<uint32_t>(i), extents[i]));
  }
  return loops;
}

std::vector<BufferId> buffers_read(const Operation& operation) {
  BufferSet set;
  std::visit(Overloaded{
                 [&](const Scatter& scatter) {
                   set.add(scatter.initial);
                   set.add_loads(scatter.runtime_indices);
                   set.add_loads({&scatter.value, 1});
                 },
                 [&](const ExternKernel& kernel) {
                   for (const ExternArgument& argument : kernel.arguments) {
                     set.add_argument(argument);
                   }
                 },
                 [&](const auto& loop_operation) {
                   set.add_loads({&loop_operation.value, 1});
                 },
             },
             operation.v);
  return set.take();
}

std::vector<BufferId> buffers_written(const Operation& operation) {
  BufferSet set;
  std::visit(Overloaded{
                 [&](const ExternKernel& kernel) {
                   for (BufferId output : kernel.outputs) set.add(output);
                   for (BufferId buffer : kernel.mutated) set.add(buffer);
                 },
                 [&](const auto& loop_operation) { set.add(loop_operation.output); },
             },
             operation.v);
  return set.take();
}

}  // namespace litz
