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

constexpr std::string_view kScanNames[] = {"sum", "prod", "max", "min"};
constexpr std::string_view kStoreModeNames[] = {"store", "add", "mul", "min", "max"};

template <class Enum, size_t kCount>
std::optional<Enum> find_spelling(const std::string_view (&names)[kCount],
                                  std::string_view spelling) {
  for (size_t i = 0; i < kCount; ++i) {
    if (names[i] == spelling) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

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

std::optional<ReductionKind> parse_reduction_kind(std::string_view spelling) {
  return find_spelling<ReductionKind>(kReductionNames, spelling);
}

std::string_view to_string(ScanKind kind) { return kScanNames[static_cast<size_t>(kind)]; }
std::optional<ScanKind> parse_scan_kind(std::string_view spelling) {
  return find_spelling<ScanKind>(kScanNames, spelling);
}
ReductionKind reduction_of(ScanKind kind) {
  switch (kind) {
    case ScanKind::kSum:
      return ReductionKind::kSum;
    case ScanKind::kProd:
      return ReductionKind::kProd;
    case ScanKind::kMax:
      return ReductionKind::kMax;
    case ScanKind::kMin:
      return ReductionKind::kMin;
  }
  LITZ_CHECK(false, "unknown scan");
}

std::string_view to_string(StoreMode mode) { return kStoreModeNames[static_cast<size_t>(mode)]; }
std::optional<StoreMode> parse_store_mode(std::string_view spelling) {
  return find_spelling<StoreMode>(kStoreModeNames, spelling);
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

std::vector<Index> size_symbols(const Program& program) {
  std::vector<Index> indices;
  const auto add = [&](Index index) {
    if (index.valid()) indices.push_back(index);
  };
  const auto add_all = [&](std::span<const Index> items) {
    for (Index item : items) add(item);
  };
  const auto add_view = [&](const BufferView& view) {
    add_all(view.sizes);
    add_all(view.strides);
    add(view.offset);
  };
  std::vector<Expr> roots;
  std::vector<const ExternArgument*> arguments;

  for (const Buffer& buffer : program.buffers()) {
    add_all(buffer.sizes);
    add_all(buffer.strides);
  }
  for (const Program::Input& input : program.inputs) add(input.integer);
  for (const ProgramOutput& output : program.outputs) {
    if (const auto* view = std::get_if<BufferView>(&output.v)) add_view(*view);
    if (const auto* index = std::get_if<Index>(&output.v)) add(*index);
  }
  for (const Operation& operation : program.operations()) {
    std::visit(Overloaded{
                   [&](const ExternKernel& kernel) {
                     for (const ExternArgument& argument : kernel.arguments) {
                       arguments.push_back(&argument);
                     }
                   },
                   [&](const auto& loop_operation) {
                     add_all(loop_operation.loops.extents);
                     roots.push_back(loop_operation.value);
                   },
               },
               operation.v);
    if (const auto* reduction = std::get_if<Reduction>(&operation.v)) {
      add_all(reduction->reduction.extents);
    }
    if (const auto* attention = std::get_if<Attention>(&operation.v)) {
      add_all(attention->keys.extents);
      add_all(attention->factors.extents);
      roots.insert(roots.end(), {attention->query, attention->key, attention->score});
    }
    if (const auto* scatter = std::get_if<Scatter>(&operation.v)) {
      add_all(scatter->target);
      add_all(scatter->initial_loops.extents);
      if (scatter->initial.valid()) roots.push_back(scatter->initial);
      roots.insert(roots.end(), scatter->runtime_indices.begin(), scatter->runtime_indices.end());
    }
  }
  while (!arguments.empty()) {
    const ExternArgument& argument = *arguments.back();
    arguments.pop_back();
    if (const auto* view = std::get_if<BufferView>(&argument.v)) add_view(*view);
    if (const auto* index = std::get_if<Index>(&argument.v)) add(*index);
    if (const auto* list = std::get_if<ExternList>(&argument.v)) {
      for (const ExternArgument& item : *list) arguments.push_back(&item);
    }
  }
  add_all(collect_indices(roots));

  std::vector<Index> sizes;
  std::vector<Index> extents;
  for (Index symbol : free_symbols(indices)) {
    if (symbol.symbol_kind() == SymbolKind::kSize) {
      sizes.push_back(symbol);
    } else {
      extents.push_back(symbol.extent());
    }
  }
  sizes.insert(sizes.end(), extents.begin(), extents.end());
  std::vector<Index> all = free_symbols(sizes);
  std::erase_if(all, [](Index symbol) { return symbol.symbol_kind() != SymbolKind::kSize; });
  return all;
}

bool is_whole_buffer(const Program& program, const BufferView& view) {
  const Buffer& buffer = program.buffer(view.buffer);
  return view.dtype == buffer.dtype && view.sizes == buffer.sizes &&
         view.strides == buffer.strides && view.offset.is_constant(0);
}

std::vector<Expr> expressions(const Operation& operation) {
  return std::visit(
      Overloaded{
          [](const Scatter& scatter) {
            std::vector<Expr> all;
            if (scatter.initial.valid()) all.push_back(scatter.initial);
            all.insert(all.end(), scatter.runtime_indices.begin(), scatter.runtime_indices.end());
            all.push_back(scatter.value);
            return all;
          },
          [](const Attention& attention) {
            return std::vector<Expr>{attention.query, attention.key, attention.score,
                                     attention.value};
          },
          [](const ExternKernel&) { return std::vector<Expr>(); },
          [](const auto& loop_operation) { return std::vector<Expr>{loop_operation.value}; },
      },
      operation.v);
}

std::vector<BufferId> buffers_read(const Operation& operation) {
  BufferSet set;
  for (Expr root : expressions(operation)) set.add_loads({&root, 1});
  if (const auto* kernel = std::get_if<ExternKernel>(&operation.v)) {
    for (const ExternArgument& argument : kernel->arguments) set.add_argument(argument);
  }
  return set.take();
}

std::vector<BufferId> buffers_written(const Operation& operation) {
  BufferSet set;
  std::visit(Overloaded{
                 [&](const ExternKernel& kernel) {
                   for (BufferId output : kernel.outputs) set.add(output);
                   for (BufferId buffer : kernel.mutated) set.add(buffer);
                 },
                 [&](const Attention& attention) {
                   set.add(attention.output);
                   if (attention.logsumexp.valid()) set.add(attention.logsumexp);
                 },
                 [&](const auto& loop_operation) { set.add(loop_operation.output); },
             },
             operation.v);
  return set.take();
}

}  // namespace litz
