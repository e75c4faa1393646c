#include "codegen/triton/triton_kernel.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "codegen/common/online_sums.h"
#include "codegen/triton/tile_plan.h"
#include "codegen/triton/triton_attention.h"
#include "codegen/triton/triton_body.h"
#include "codegen/triton/triton_ops.h"
#include "codegen/triton/triton_product.h"
#include "support/error.h"

namespace litz {
namespace {

std::string text(int64_t value) { return std::to_string(value); }

bool is_arg(const KernelReduction& r) {
  return r.kind == ReductionKind::kArgMax || r.kind == ReductionKind::kArgMin;
}

// Whether it has two accumulators: an arg-reduction its position, an online sum its greatest value.
bool is_pair(const KernelReduction& r) { return is_arg(r) || r.online.has_value(); }

DType accumulator_dtype(const KernelReduction& r) { return register_dtype(r.value.dtype()); }

// Whether the two may lie in the same memory.
bool may_share(const Plan& plan, BufferId a, BufferId b) {
  const Storage& x = plan.storage[a];
  const Storage& y = plan.storage[b];
  const auto owner = [&](BufferId id) {
    const Storage& s = plan.storage[id];
    return s.kind == Storage::Kind::kTaken ? BufferId(s.number) : id;
  };
  if (owner(a) == owner(b)) return true;
  if (x.kind != Storage::Kind::kWorkspace || y.kind != Storage::Kind::kWorkspace) return false;
  for (Index e : {x.offset_bytes, x.size_bytes, y.offset_bytes, y.size_bytes}) {
    if (!e.is_constant()) return true;
  }
  return x.offset_bytes.constant() < y.offset_bytes.constant() + y.size_bytes.constant() &&
         y.offset_bytes.constant() < x.offset_bytes.constant() + x.size_bytes.constant();
}

class KernelPrinter {
 public:
  // As the heuristics say where `tile` is null. `is_part`: the kernel is one of several
  // (combined_launch.h).
  KernelPrinter(const Plan& plan, const Kernel& kernel, TritonPrelude& prelude,
                const TilePlan* tile = nullptr, bool is_part = false)
      : memory_(plan),
        program_(*plan.program),
        kernel_(kernel),
        prelude_(prelude),
        analysis_(kernel),
        arguments_(program_),
        is_part_(is_part),
        plan_(tile != nullptr ? *tile : plan_tile(analysis_, program_, is_part)),
        body_(analysis_, prelude, arguments_, plan_.narrow) {
    for (size_t i = 0; i < kernel.outer.size(); ++i) outer_.push_back(i);
    for (size_t i = 0; i < kernel.inner.size(); ++i) inner_.push_back(kernel.outer.size() + i);
    // Arguments are in the order of the kernel, whatever the tile.
    visit_postorder(analysis_.all_roots(), [&](Expr e) {
      if (e.op() != ExprOp::kLoad) return;
      loaded_.push_back(e.buffer());
      arguments_.pointer(e.buffer());
    });
    for (const KernelStore& s : kernel.stores) arguments_.pointer(s.buffer);
  }

  // Rows that do not stay in registers.
  bool reads_rows_again() const {
    return !inner_.empty() && !plan_.persistent && kernel_.num_stages > 1;
  }

  TilePlan tile_of_part(const PartTile& tile) const {
    TilePlan plan = plan_;
    if (!inner_.empty() || plan.turned_loop != SIZE_MAX) return plan;
    const auto scaled = [](int value, int shift) {
      return shift >= 0 ? value << shift : std::max(1, value >> -shift);
    };
    plan.rows = scaled(plan.rows, tile.rows);
    plan.warps = scaled(plan.warps, tile.warps);
    return plan;
  }

  std::vector<TilePlan> other_tiles() { return litz::other_tiles(analysis_, plan_); }

  std::optional<CombinedPart> print_part() {
    if (plan_.splits > 1 || plan_.rows_of_program > 0) return std::nullopt;
    const Index programs = plan_.turned_loop != SIZE_MAX ? print_square()
                           : inner_.empty()              ? print_stretch()
                                                         : print_rows();
    const Index length = count(outer_);
    if (!arguments_.symbols().empty() || !programs.is_constant() || !length.is_constant())
      return std::nullopt;
    CombinedPart part;
    part.body = body_.take_text();
    part.programs = programs.constant();
    part.length = length.constant();
    part.buffers = arguments_.buffers();
    part.checks = body_.checks();
    part.threads = std::max(plan_.warps, kLeastWarps) * 32;
    // Triton joins what it knows about the arguments of all members.
    if (part.length % 16 == 0) part.identity = "of whole vectors";
    return part;
  }

  TritonKernel print() {
    TritonKernel kernel;
    kernel.tile = to_string(plan_);
    std::vector<std::string> bodies;
    if (plan_.turned_loop != SIZE_MAX) {
      kernel.functions.push_back({"", print_square(), 1, plan_.warps});
    } else if (inner_.empty()) {
      kernel.functions.push_back({"", print_stretch(), 1, plan_.warps});
    } else if (plan_.rows_of_program > 0) {
      kernel.functions.push_back({"", print_rows_and_columns(), 1, plan_.warps});
    } else {
      kernel.functions.push_back({"", print_rows(), plan_.splits, plan_.warps});
    }
    bodies.push_back(body_.take_text());
    if (plan_.rows_of_program > 0) {
      kernel.functions.push_back({"_finish", print_columns_finish(), 1, 4});
      bodies.push_back(body_.take_text());
    }
    if (plan_.splits > 1) {
      kernel.functions.push_back({"_finish", print_finish(), 1, 4});
      bodies.push_back(body_.take_text());
    }
    kernel.checks = body_.checks();
    kernel.buffers = arguments_.buffers();
    kernel.symbols = arguments_.symbols();
    kernel.partials = partials_;
    for (size_t i = 0; i < bodies.size(); ++i) {
      kernel.text += i == 0 ? "" : "\n\n";
      kernel.text += triton_header(kernel, kernel.functions[i], plan_.narrow) + bodies[i];
    }
    return kernel;
  }

 private:
  Index constant(int64_t value) const { return program_.indices().constant(value); }

  Index count(const std::vector<size_t>& loops) const {
    return analysis_.count(program_.indices(), loops);
  }

  // Programs that work on so many rows each.
  Index programs(Index rows, int block) const { return ceil_div(rows, constant(block)); }

  IndentedBuffer& out() { return body_.out(); }

  std::string wide(const std::string& position) const {
    return plan_.narrow ? position : position + ".to(tl.int64)";
  }

  // ---- positions ----

  // Binds the loops to their variables at the flat position `flat`, the last loop fastest.
  void decode(const std::vector<size_t>& loops, const std::string& flat, TileAxes axes) {
    std::string rest = flat;
    std::vector<std::string> names(loops.size());
    for (size_t i = loops.size(); i-- > 0;) {
      if (i == 0) {
        names[i] = rest;
        break;
      }
      const std::string length = body_.index(analysis_.extent(loops[i])).text;
      names[i] = body_.define(rest + " % " + length, axes, "d").text;
      rest = body_.define(rest + " // " + length, axes, "d").text;
    }
    for (size_t i = 0; i < loops.size(); ++i) body_.bind(loops[i], {names[i], axes, ""});
  }

  // The number of the program among those of the kernel.
  std::string program_number() const { return wide(is_part_ ? "pid" : "tl.program_id(0)"); }

  // The axis of `block` of the outer loops, of which there are `total`.
  void open_outer_axis(const std::string& first, int block, Index total) {
    if (is_part_) return open_axis(kRows, "x", first, block, "n");
    open_axis(kRows, "x", first, block, total, divides(block, total));
  }

  // Declares `name`, positions from `first` on along an axis, and sets the axis up. Where nothing
  // proves that they end before `length`, `name`_mask says which do.
  void open_axis(TileAxes axis, const std::string& name, const std::string& first, int block,
                 Index length, bool divides) {
    open_axis(axis, name, first, block, divides ? "" : body_.index(length).text);
  }

  // The same with the length's text; empty: all end before it.
  void open_axis(TileAxes axis, const std::string& name, const std::string& first, int block,
                 const std::string& length) {
    out().line(name + " = " + (first.empty() ? "" : first + " + ") + "tl.arange(0, " + text(block) +
               ")" + body_.place(axis));
    std::string mask;
    if (!length.empty()) {
      mask = name + "_mask";
      out().line(mask + " = " + name + " < " + length);
    }
    body_.set_axis(axis, block, mask);
  }

  static bool divides(int block, Index length) {
    return length.is_constant() && length.constant() > 0 && length.constant() % block == 0;
  }

  // ---- no inner loops ----

  Index print_stretch() {
    const Index total = count(outer_);
    body_.set_axis(kRows, plan_.rows, "");
    open_outer_axis(program_number() + " * " + text(plan_.rows), plan_.rows, total);
    decode(outer_, "x", kRows);
    body_.bind_iteration();
    // Reductions over no loops have one element each.
    for (uint32_t stage = 0; stage < kernel_.num_stages; ++stage) {
      for (uint32_t i = 0; i < kernel_.reductions.size(); ++i) {
        const KernelReduction& r = kernel_.reductions[i];
        if (r.stage != stage) continue;
        if (is_arg(r)) {
          const TileValue position = body_.index(r.position);
          body_.define_reduced(
              i, body_.define("tl.full([], 0, tl.int64) + " + position.text, position.axes));
          continue;
        }
        const TileValue value = body_.value(r.value);
        body_.define_reduced(
            i, body_.define(combine(r) + "(" + identity_text(r) + ", " + value.text + ")",
                            value.axes, "acc"));
      }
      store_inner(stage, kRows);
    }
    store_outer(kRows);
    return programs(total, plan_.rows);
  }

  // A square of the last loop and the one along which the turned loads are contiguous.
  Index print_square() {
    const size_t last = outer_.back();
    const size_t along = plan_.turned_loop;
    std::vector<size_t> around;
    for (size_t loop : outer_) {
      if (loop != last && loop != along) around.push_back(loop);
    }
    const Index across = programs(analysis_.extent(last), plan_.columns);
    const Index down = programs(analysis_.extent(along), plan_.rows);
    body_.set_axis(kRows, plan_.rows, "");
    body_.set_axis(kColumns, plan_.columns, "");
    const std::string tiles_across = body_.index(across).text;
    const std::string tiles_down = body_.index(down).text;
    out().line("tile = " + program_number());
    if (!around.empty()) {
      out().line("rest = tile // (" + tiles_across + " * " + tiles_down + ")");
      decode(around, "rest", kNoAxes);
    }
    open_axis(kRows, "y", "tile // " + tiles_across + " % " + tiles_down + " * " + text(plan_.rows),
              plan_.rows, analysis_.extent(along), divides(plan_.rows, analysis_.extent(along)));
    open_axis(kColumns, "x", "tile % " + tiles_across + " * " + text(plan_.columns), plan_.columns,
              analysis_.extent(last), divides(plan_.columns, analysis_.extent(last)));
    body_.bind(along, {"y", kRows, ""});
    body_.bind(last, {"x", kColumns, ""});
    body_.bind_iteration();
    store_outer(kRows | kColumns);
    return count(around) * across * down;
  }

  // ---- inner loops ----

  Index print_rows() {
    const Index total = count(outer_);
    set_tile(plan_.rows, plan_.columns);
    open_rows(total, plan_.rows);
    if (plan_.persistent) {
      open_whole_columns();
      load_rows();
    }
    print_stages();
    if (plan_.splits > 1) {
      print_partials();
    } else {
      store_outer(row_axes());
    }
    return programs(total, plan_.rows);
  }

  // What a program reads of its rows is on its way before the first stage waits for anything, which
  // made the gradient of a layer norm 4 % faster on an H200; and all that it reads, where that is
  // little. Registers bound it.
  void load_rows() {
    std::vector<Expr> loads = unconditional_loads(analysis_.row_roots());
    std::erase_if(loads, [](Expr load) { return !load.operands().empty(); });
    const auto others = std::stable_partition(
        loads.begin(), loads.end(), [&](Expr load) { return analysis_.is_of_rows(load); });
    const int64_t each = int64_t{plan_.rows} * plan_.columns / (plan_.warps * 32);
    const auto registers = [&] { return each * static_cast<int64_t>(loads.size()); };
    if (registers() > kFewRegisters) loads.erase(others, loads.end());
    if (loads.size() < 2 || registers() > kLoadedRegisters) return;
    for (const KernelStore& s : kernel_.stores) {
      if (s.inner && std::find(loaded_.begin(), loaded_.end(), s.buffer) != loaded_.end()) return;
    }
    for (Expr load : loads) body_.value(load);
  }

  void open_whole_columns() {
    const Index length = count(inner_);
    open_axis(kColumns, "r", "", plan_.columns, length, divides(plan_.columns, length));
    decode(inner_, "r", kColumns);
  }

  void print_stages() {
    reads_ = stages_of_loads(analysis_);
    for (uint32_t stage = 0; stage < kernel_.num_stages; ++stage) {
      body_.set_eviction([this, stage](Expr load) { return eviction(load, stage); });
      settle(stage);
      if (plan_.persistent) {
        print_whole(stage);
      } else {
        print_steps(stage);
      }
    }
    body_.set_eviction({});
  }

  TileAxes row_axes() const { return body_.all_axes() & kRows; }

  // One row has no axis.
  void set_tile(int rows, int columns) {
    body_.set_axis(kColumns, columns, "");
    if (rows > 1) body_.set_axis(kRows, rows, "");
  }

  // Binds the outer loops, from the position `first` on, which is the program's own where empty.
  void open_rows(Index total, int rows, std::string first = "") {
    if (first.empty()) first = program_number() + (rows > 1 ? " * " + text(rows) : "");
    if (rows > 1) {
      open_outer_axis(first, rows, total);
    } else if (!outer_.empty()) {
      out().line("x = " + first);
    }
    decode(outer_, "x", row_axes());
    body_.bind_iteration();
  }

  // What later steps read again stays in the cache until then. Letting go early of what is read
  // once was slower on an H200.
  std::string eviction(Expr load, uint32_t stage) {
    const LoopMask depends = analysis_.depends(load);
    if ((depends & analysis_.inner_mask()) == 0 || !load.operands().empty() || plan_.persistent)
      return "";
    const auto [first, last] = reads_[load];
    if (last > stage) return "evict_last";
    return first < stage && analysis_.is_of_rows(load) ? "evict_first" : "";
  }

  // What earlier stages stored is there for all threads before this stage loads it.
  void settle(uint32_t stage) {
    std::vector<BufferId> stored;
    for (const KernelStore& s : kernel_.stores) {
      if (s.inner && s.stage < stage &&
          std::find(loaded_.begin(), loaded_.end(), s.buffer) != loaded_.end())
        stored.push_back(s.buffer);
    }
    if (stored.empty()) return;
    out().line("tl.debug_barrier()");
    body_.forget_loads(stored);
  }

  bool in_stage(const KernelReduction& r, uint32_t stage) const { return r.stage == stage; }

  // The value along the whole tile, the identity where it is past the end of the columns.
  TileValue element(const KernelReduction& r) {
    const TileValue value = body_.value(r.value);
    const TileAxes axes = body_.all_axes();
    const TileValue mask = body_.mask(kColumns);
    if (mask.text.empty()) return {body_.block(value, axes, accumulator_dtype(r)), axes, ""};
    const std::string choice =
        "tl.where(" + mask.text + ", " + value.text + ", " + neutral_text(r) + ")";
    // Of the values of a stage the same one is often reduced in several ways.
    if (choice != last_choice_.first)
      last_choice_ = {choice, body_.define(choice, value.axes | kColumns)};
    TileValue masked = last_choice_.second;
    masked.text = body_.block(masked, axes, accumulator_dtype(r));
    masked.axes = axes;
    return masked;
  }

  // Positions past the end lose against all others.
  std::string positions(const KernelReduction& r) {
    const TileValue position = body_.index(r.position);
    TileValue wide_position = {position.text + ".to(tl.int64)", position.axes, ""};
    if (position.axes == kNoAxes) wide_position.text = position.text;
    const TileValue mask = body_.mask(kColumns);
    if (!mask.text.empty()) {
      wide_position.text =
          "tl.where(" + mask.text + ", " + wide_position.text + ", " + kLastPosition + ")";
      wide_position.axes |= kColumns;
    }
    return body_.block(wide_position, body_.all_axes(), DType::kInt64);
  }

  // Stores to memory that an operand of the same iteration may be in wait for all threads' loads.
  bool overwrites(const std::vector<const KernelStore*>& stores) const {
    for (const KernelStore* s : stores) {
      for (BufferId buffer : loaded_) {
        if (may_share(memory_, s->buffer, buffer)) return true;
      }
    }
    return false;
  }

  void store_inner(uint32_t stage, TileAxes axes) {
    std::vector<const KernelStore*> stores;
    for (const KernelStore& s : kernel_.stores) {
      if (s.inner && s.stage == stage) stores.push_back(&s);
    }
    body_.store(stores, axes, overwrites(stores));
  }

  void store_outer(TileAxes axes) {
    std::vector<const KernelStore*> stores;
    for (const KernelStore& s : kernel_.stores) {
      if (!s.inner && !s.after_outer) stores.push_back(&s);
    }
    body_.store(stores, axes, overwrites(stores));
  }

  // ---- combining ----

  std::string combine(const KernelReduction& r) {
    if (r.online) return prelude_.use("merge_exp");
    const DType dtype = accumulator_dtype(r);
    const bool is_bool = dtype == DType::kBool;
    switch (r.kind) {
      case ReductionKind::kSum:
        return prelude_.use(is_bool ? "bit_or" : "add");
      case ReductionKind::kProd:
        return prelude_.use(is_bool ? "bit_and" : "mul");
      case ReductionKind::kMax:
        return triton_extreme(prelude_, true, dtype);
      case ReductionKind::kMin:
        return triton_extreme(prelude_, false, dtype);
      case ReductionKind::kAny:
        return prelude_.use("bit_or");
      case ReductionKind::kAll:
        return prelude_.use("bit_and");
      case ReductionKind::kArgMax:
        return prelude_.use("argmax");
      case ReductionKind::kArgMin:
        return prelude_.use("argmin");
    }
    LITZ_CHECK(false, "a kind of reduction that does not exist");
  }

  // What a value past the end counts as.
  static std::string neutral_text(const KernelReduction& r) {
    return identity_text(r.online ? ReductionKind::kMax : r.kind, r);
  }
  // What the accumulator starts as.
  static std::string identity_text(const KernelReduction& r) { return identity_text(r.kind, r); }

  static std::string identity_text(ReductionKind kind, const KernelReduction& r) {
    if (kind == ReductionKind::kArgMax) kind = ReductionKind::kMax;
    if (kind == ReductionKind::kArgMin) kind = ReductionKind::kMin;
    const DType dtype = accumulator_dtype(r);
    if (dtype == DType::kBool) {
      const bool one = kind == ReductionKind::kAll || kind == ReductionKind::kMin ||
                       kind == ReductionKind::kProd;
      return triton_constant(true, one ? 1 : 0, 0, dtype);
    }
    const Scalar s = identity(kind, r.value.dtype());
    return triton_constant(!is_floating(dtype), s.integer, s.real, dtype);
  }

  static std::string accumulator(uint32_t i) { return "acc" + text(i); }
  // The second one of a pair.
  std::string companion(uint32_t i) const {
    return (kernel_.reductions[i].online ? "top" : "pos") + text(i);
  }
  // Of a pair the second accumulator's dtype and what it starts as.
  static DType companion_dtype(const KernelReduction& r) {
    return r.online ? accumulator_dtype(r) : DType::kInt64;
  }
  static std::string companion_start(const KernelReduction& r) {
    if (!r.online) return kLastPosition;
    const DType dtype = accumulator_dtype(r);
    return triton_constant(false, 0, lowest_finite(dtype), dtype);
  }

  // From accumulators along the whole tile the result of each row.
  void finish(uint32_t i, const std::string& values, const std::string& where) {
    const KernelReduction& r = kernel_.reductions[i];
    const std::string dimension = text(body_.dimension(kColumns));
    const std::string place = body_.place(kRows);
    const std::string function = combine(r);
    if (!is_pair(r)) {
      out().line(accumulator(i) + " = " + reduced(values, function));
      body_.define_reduced(i, {accumulator(i), row_axes(), ""});
      return;
    }
    out().line(accumulator(i) + ", " + companion(i) + " = tl.reduce((" + values + ", " + where +
               "), " + dimension + ", " + function + ")");
    if (!place.empty()) {
      out().line(accumulator(i) + " = " + accumulator(i) + place);
      out().line(companion(i) + " = " + companion(i) + place);
    }
    body_.define_reduced(i, {is_arg(r) ? companion(i) : accumulator(i), row_axes(), ""});
  }

  // Online sums are told of infinities when all their parts are together.
  void settle_online_sums(uint32_t stage) {
    for (uint32_t i = 0; i < kernel_.reductions.size(); ++i) {
      const KernelReduction& r = kernel_.reductions[i];
      if (!r.online || !in_stage(r, stage)) continue;
      const std::string mine = accumulator(i);
      const std::string greatest = accumulator(r.online->greatest);
      const std::string zero = "(" + greatest + " - " + greatest + ")";
      out().line(mine + " = " +
                 (r.online->of_finite
                      ? "tl.where((" + zero + " != 0) & (" + greatest + " == " + greatest +
                            "), libdevice.exp(" + greatest + "), " + mine + ")"
                      : mine + " + " + zero));
    }
  }

  // ---- stages ----

  void print_whole(uint32_t stage) {
    for (uint32_t i = 0; i < kernel_.reductions.size(); ++i) {
      const KernelReduction& r = kernel_.reductions[i];
      if (!in_stage(r, stage)) continue;
      if (r.over_outer) {
        accumulate_columns(i);
        continue;
      }
      const TileValue value = element(r);
      if (r.running) {
        body_.define_reduced(
            i, body_.define("tl.associative_scan(" + value.text + ", " +
                                text(body_.dimension(kColumns)) + ", " + combine(r) + ")",
                            body_.all_axes(), "acc"));
      } else {
        finish(i, value.text, is_arg(r) ? positions(r) : "");
      }
    }
    store_inner(stage, body_.all_axes());
  }

  void print_steps(uint32_t stage) {
    const Index length = count(inner_);
    bool any = false;
    for (uint32_t i = 0; i < kernel_.reductions.size(); ++i) {
      const KernelReduction& r = kernel_.reductions[i];
      if (!in_stage(r, stage)) continue;
      any = true;
      const TileAxes axes = is_of_row(i) ? row_axes() : body_.all_axes();
      out().line(accumulator(i) + " = " +
                 body_.block({identity_text(r), kNoAxes, ""}, axes, accumulator_dtype(r)));
      if (is_pair(r))
        out().line(companion(i) + " = " +
                   body_.block({companion_start(r), kNoAxes, ""}, r.online ? row_axes() : axes,
                               companion_dtype(r)));
    }
    for (uint32_t i = 0; i < kernel_.reductions.size(); ++i) {
      if (in_stage(kernel_.reductions[i], stage) && kernel_.reductions[i].deviations)
        start_deviations(i);
    }
    for (const KernelStore& s : kernel_.stores) any = any || (s.inner && s.stage == stage);
    if (!any) return;

    const std::string step = text(plan_.columns);
    std::string from = "0";
    std::string to = body_.index(length).text;
    bool whole = divides(plan_.columns, length);
    if (plan_.splits > 1) {
      const std::string stretch = text(plan_.stretch);
      out().line("first = " + wide("tl.program_id(1)") + " * " + stretch);
      from = "first";
      to = length.constant() % plan_.stretch == 0
               ? "first + " + stretch
               : "tl.minimum(first + " + stretch + ", " + to + ")";
    }
    body_.open_loop();
    last_choice_ = {};
    open_axis(kColumns, "r", "step", plan_.columns, length, whole);
    decode(inner_, "r", kColumns);
    // Online sums behind the maxima that they go by.
    for (const bool online : {false, true}) {
      for (uint32_t i = 0; i < kernel_.reductions.size(); ++i) {
        const KernelReduction& r = kernel_.reductions[i];
        if (in_stage(r, stage) && r.online.has_value() == online) accumulate(i, from);
      }
    }
    store_inner(stage, body_.all_axes());
    last_choice_ = {};
    body_.close_loop("for step in range(" + from + ", " + to + ", " + step + ")");
    for (uint32_t i = 0; i < kernel_.reductions.size(); ++i) {
      const KernelReduction& r = kernel_.reductions[i];
      if (in_stage(r, stage) && !r.running) finish_steps(i);
    }
    if (plan_.splits == 1) settle_online_sums(stage);
  }

  // The sum that deviations go along with.
  bool is_of_deviations(uint32_t i) const {
    return std::any_of(
        kernel_.reductions.begin(), kernel_.reductions.end(),
        [&](const KernelReduction& r) { return r.deviations && r.deviations->sum == i; });
  }

  // The greatest value that an online sum goes by: the sum needs it after each step.
  bool is_greatest(uint32_t i) const {
    return std::any_of(
        kernel_.reductions.begin(), kernel_.reductions.end(),
        [&](const KernelReduction& r) { return r.online && r.online->greatest == i; });
  }
  // One value for each row between two steps, not one for each element of the tile.
  bool is_of_row(uint32_t i) const { return kernel_.reductions[i].running || is_greatest(i); }

  void finish_steps(uint32_t i) {
    const KernelReduction& r = kernel_.reductions[i];
    if (is_of_deviations(i)) return;
    if (is_greatest(i)) {
      body_.define_reduced(i, {accumulator(i), row_axes(), ""});
    } else if (r.deviations) {
      finish_deviations(i);
    } else if (r.online) {
      out().line(accumulator(i) + " = " + reduced(accumulator(i), prelude_.use("add")));
      body_.define_reduced(i, {accumulator(i), row_axes(), ""});
    } else {
      finish(i, accumulator(i), companion(i));
    }
  }

  // The result for each row of values along the whole tile.
  std::string reduced(const std::string& values, const std::string& function) const {
    return "tl.reduce(" + values + ", " + text(body_.dimension(kColumns)) + ", " + function + ")" +
           body_.place(kRows);
  }

  // ---- sums of deviations, see online_sums.h ----

  static std::string low(uint32_t i) { return "low" + text(i); }
  static std::string seen(uint32_t i) { return "seen" + text(i); }

  void start_deviations(uint32_t i) {
    for (const std::string& name : {low(i), seen(i)}) {
      out().line(
          name + " = " +
          body_.block(
              {triton_constant(false, 0, 0, accumulator_dtype(kernel_.reductions[i])), kNoAxes, ""},
              body_.all_axes(), accumulator_dtype(kernel_.reductions[i])));
    }
  }

  void accumulate_deviations(uint32_t i, const std::string& from) {
    const KernelReduction& r = kernel_.reductions[i];
    const std::string x = body_.define(element(r).text, body_.all_axes()).text;
    out().line(low(i) + " = tl.where(step == " + from + ", " + x + ", " + low(i) + ")");
    std::string difference = x + " - " + low(i);
    std::string one = "1.0";
    if (const TileValue mask = body_.mask(kColumns); !mask.text.empty()) {
      difference = "tl.where(" + mask.text + ", " + difference + ", 0.0)";
      one = "tl.where(" + mask.text + ", 1.0, 0.0)";
    }
    const std::string d = body_.define(difference, body_.all_axes()).text;
    const std::string sum = accumulator(r.deviations->sum);
    out().line(sum + " = " + sum + " + " + d);
    out().line(accumulator(i) + " = " + accumulator(i) + " + " + d + " * " + d);
    out().line(seen(i) + " = " + seen(i) + " + " + one);
  }

  // Of the lanes of a tile, each with its first element, to the sums of each row.
  void finish_deviations(uint32_t i) {
    const std::string sum = accumulator(kernel_.reductions[i].deviations->sum);
    const std::string squares = accumulator(i);
    const std::string n = seen(i);
    const std::string by = body_.define("tl.maximum(" + n + ", 1.0)", body_.all_axes()).text;
    out().line(squares + " = " + squares + " - " + sum + " * " + sum + " / " + by);
    out().line(sum + " = " + low(i) + " * " + n + " + " + sum);
    join_deviations(i, sum, squares, n, by);
  }

  // Parts of n elements each (`by`: or 1 where there are none), with their sums and squared
  // deviations.
  void join_deviations(uint32_t i, const std::string& sums, const std::string& squares,
                       const std::string& n, const std::string& by) {
    const uint32_t sum = kernel_.reductions[i].deviations->sum;
    const std::string function = prelude_.use("add");
    const std::string mean = body_.define(sums + " / " + by, body_.all_axes()).text;
    const std::string all = body_.define(reduced(sums, function), row_axes()).text;
    const std::string count =
        body_.define("tl.maximum(" + reduced(n, function) + ", 1.0)", row_axes()).text;
    const std::string d = body_.define(mean + " - " + all + " / " + count, body_.all_axes()).text;
    out().line(accumulator(i) + " = " +
               reduced(squares + " + " + n + " * " + d + " * " + d, function));
    out().line(accumulator(sum) + " = " + all);
    body_.define_reduced(sum, {accumulator(sum), row_axes(), ""});
    body_.define_reduced(i, {accumulator(i), row_axes(), ""});
  }

  void accumulate(uint32_t i, const std::string& from) {
    const KernelReduction& r = kernel_.reductions[i];
    if (is_of_deviations(i)) return;
    if (r.deviations) return accumulate_deviations(i, from);
    const TileValue value = element(r);
    const std::string function = combine(r);
    const std::string mine = accumulator(i);
    if (r.online) {
      out().line(mine + ", " + companion(i) + " = " + prelude_.use("add_exp") + "(" + mine + ", " +
                 companion(i) + ", " + value.text + ", " + accumulator(r.online->greatest) + ")");
      return;
    }
    if (is_greatest(i)) {
      out().line(mine + " = " + function + "(" + mine + ", " + reduced(value.text, function) + ")");
      return;
    }
    if (is_arg(r)) {
      out().line(mine + ", " + companion(i) + " = " + function + "(" + mine + ", " + companion(i) +
                 ", " + value.text + ", " + positions(r) + ")");
      return;
    }
    if (!r.running) {
      out().line(mine + " = " + function + "(" + mine + ", " + value.text + ")");
      return;
    }
    const std::string dimension = text(body_.dimension(kColumns));
    const TileValue block = body_.define(value.text, value.axes);
    const TileValue scan = body_.define(function + "(" + mine + ", tl.associative_scan(" +
                                            block.text + ", " + dimension + ", " + function + "))",
                                        body_.all_axes());
    body_.define_reduced(i, scan);
    out().line(mine + " = " + function + "(" + mine + ", " + reduced(block.text, function) + ")");
  }

  // ---- rows that several programs share ----

  int64_t rows() const { return count(outer_).constant(); }

  static DType memory_of(DType dtype) { return dtype == DType::kBool ? DType::kUInt8 : dtype; }

  // Element [split * rows + row] of each array.
  void print_partials() {
    const TileAxes axes = row_axes();
    const std::string at = "tl.program_id(1) * " + text(rows()) + (outer_.empty() ? "" : " + x");
    const TileValue mask = body_.mask(axes);
    const auto put = [&](DType dtype, const std::string& value) {
      const std::string name = "s" + text(static_cast<int64_t>(partials_.size()));
      out().line("tl.store(" + name + " + " + at + ", " + value +
                 (dtype == DType::kBool ? ".to(tl.uint8)" : "") +
                 (mask.text.empty() ? "" : ", mask=" + mask.text) + ")");
      partials_.push_back({memory_of(dtype), plan_.splits * rows()});
    };
    for (uint32_t i = 0; i < kernel_.reductions.size(); ++i) {
      const KernelReduction& r = kernel_.reductions[i];
      put(accumulator_dtype(r), accumulator(i));
      if (is_pair(r)) put(companion_dtype(r), companion(i));
    }
  }

  Index print_finish() {
    const int columns = power_of_two(plan_.splits);
    const Index total = count(outer_);
    const int rows_of_tile =
        std::clamp(4096 / columns, 1, std::min(64, power_of_two(total.constant())));
    set_tile(rows_of_tile, columns);
    open_rows(total, rows_of_tile);
    open_axis(kColumns, "r", "", columns, constant(plan_.splits), columns == plan_.splits);
    const std::string at = "r * " + text(rows()) + (outer_.empty() ? "" : " + x");
    const TileValue mask = body_.mask(body_.all_axes());
    const TileValue past = body_.mask(kColumns);
    int64_t next = 0;
    const auto get = [&](DType dtype, const std::string& other) {
      std::string value = "tl.load(s" + text(next++) + " + " + at +
                          (mask.text.empty() ? "" : ", mask=" + mask.text) + ")";
      if (dtype == DType::kBool) value += " != 0";
      TileValue part = body_.define(value, body_.all_axes(), "part");
      if (!past.text.empty())
        part.text = "tl.where(" + past.text + ", " + part.text + ", " + other + ")";
      return part.text;
    };
    std::vector<std::string> parts;
    for (uint32_t i = 0; i < kernel_.reductions.size(); ++i) {
      const KernelReduction& r = kernel_.reductions[i];
      const std::string values = get(accumulator_dtype(r), identity_text(r));
      parts.push_back(values);
      if (is_of_deviations(i)) continue;
      if (r.deviations) {
        const std::string n = elements_of_part(past.text);
        join_deviations(i, body_.define(parts[r.deviations->sum], body_.all_axes()).text, values, n,
                        body_.define("tl.maximum(" + n + ", 1.0)", body_.all_axes()).text);
        continue;
      }
      const std::string where =
          is_pair(r) ? get(companion_dtype(r), companion_start(r)) : std::string();
      finish(i, values, where);
    }
    settle_online_sums(0);
    store_outer(row_axes());
    return programs(total, rows_of_tile);
  }

  // How many elements of a row each part has seen.
  std::string elements_of_part(const std::string& past) {
    const std::string stretch = text(plan_.stretch);
    std::string n = "tl.minimum(" + stretch + ", " + body_.index(count(inner_)).text + " - r * " +
                    stretch + ").to(tl.float32)";
    if (!past.empty()) n = "tl.where(" + past + ", " + n + ", 0.0)";
    return body_.define(n, kColumns).text;
  }

  // ---- rows whose columns are summed up, too ----

  int64_t column_programs() const {
    return (rows() + plan_.rows_of_program - 1) / plan_.rows_of_program;
  }

  // Calls act(number, reduction, name of its array of partial results) for those over outer loops.
  template <class Act>
  void for_each_column_sum(const Act& act) {
    int64_t next = 0;
    for (uint32_t i = 0; i < kernel_.reductions.size(); ++i) {
      const KernelReduction& r = kernel_.reductions[i];
      if (r.over_outer) act(i, r, "s" + text(next++));
    }
  }

  void start_accumulators() {
    for_each_column_sum([&](uint32_t i, const KernelReduction& r, const std::string&) {
      out().line(
          accumulator(i) + " = " +
          body_.block({identity_text(r), kNoAxes, ""}, body_.all_axes(), accumulator_dtype(r)));
    });
  }

  Index print_rows_and_columns() {
    const Index total = count(outer_);
    const Index length = count(inner_);
    set_tile(plan_.rows, plan_.columns);
    open_whole_columns();
    start_accumulators();
    const std::string stretch = text(plan_.rows_of_program);
    out().line("first = " + wide("tl.program_id(0)") + " * " + stretch);
    const bool whole = rows() % plan_.rows_of_program == 0;
    const std::string last =
        whole ? "first + " + stretch : "tl.minimum(first + " + stretch + ", " + text(rows()) + ")";
    body_.open_loop();
    last_choice_ = {};
    open_rows(total, plan_.rows, "step");
    print_stages();
    store_outer(row_axes());
    last_choice_ = {};
    body_.close_loop("for step in tl.range(first, " + last + ", " + text(plan_.rows) +
                     (plan_.stages > 1 ? ", num_stages=" + text(plan_.stages) : "") + ")");
    const TileValue mask = body_.mask(kColumns);
    for_each_column_sum([&](uint32_t i, const KernelReduction& r, const std::string& array) {
      const std::string mine = accumulator(i);
      if (plan_.rows > 1)
        out().line(mine + " = tl.reduce(" + mine + ", 0, " + combine(r) + ")[None, :]");
      out().line("tl.store(" + array + " + (" + wide("tl.program_id(0)") + " * " +
                 body_.index(length).text + " + r), " + mine +
                 (mask.text.empty() ? "" : ", mask=" + mask.text) + ")");
      partials_.push_back({accumulator_dtype(r), column_programs() * length.constant()});
    });
    return constant(column_programs());
  }

  void accumulate_columns(uint32_t i) {
    const KernelReduction& r = kernel_.reductions[i];
    const TileValue value = body_.value(r.value);
    std::string added = body_.block(value, body_.all_axes(), accumulator_dtype(r));
    if (const TileValue mask = body_.mask(kRows); plan_.rows > 1 && !mask.text.empty())
      added = "tl.where(" + mask.text + ", " + added + ", " + identity_text(r) + ")";
    out().line(accumulator(i) + " = " + combine(r) + "(" + accumulator(i) + ", " + added + ")");
  }

  // The sums of what the programs made, for a tile of columns, which are its rows.
  Index print_columns_finish() {
    const Index length = count(inner_);
    const int64_t made = column_programs();
    const int rows = std::min(kFinishColumns, power_of_two(length.constant()));
    const int columns = std::min(kFinishPrograms, power_of_two(made));
    body_.set_axis(kRows, rows, "");
    body_.set_axis(kColumns, columns, "");
    open_axis(kRows, "x", wide("tl.program_id(0)") + " * " + text(rows), rows, length,
              divides(rows, length));
    decode(inner_, "x", kRows);
    start_accumulators();
    body_.open_loop();
    open_axis(kColumns, "r", "step", columns, constant(made), made % columns == 0);
    const TileValue mask = body_.mask(body_.all_axes());
    const TileValue past = body_.mask(kColumns);
    for_each_column_sum([&](uint32_t i, const KernelReduction& r, const std::string& array) {
      std::string part = "tl.load(" + array + " + (r * " + body_.index(length).text + " + x)" +
                         (mask.text.empty() ? "" : ", mask=" + mask.text) + ")";
      if (!past.text.empty())
        part = "tl.where(" + past.text + ", " + part + ", " + identity_text(r) + ")";
      out().line(accumulator(i) + " = " + combine(r) + "(" + accumulator(i) + ", " + part + ")");
    });
    body_.close_loop("for step in range(0, " + text(made) + ", " + text(columns) + ")");
    for_each_column_sum([&](uint32_t i, const KernelReduction& r, const std::string&) {
      out().line(accumulator(i) + " = tl.reduce(" + accumulator(i) + ", 1, " + combine(r) +
                 ")[:, None]");
      body_.define_reduced(i, {accumulator(i), kRows, ""});
    });
    std::vector<const KernelStore*> stores;
    for (const KernelStore& s : kernel_.stores) {
      if (s.after_outer) stores.push_back(&s);
    }
    body_.store(stores, kRows, overwrites(stores));
    return programs(length, rows);
  }

  static constexpr int64_t kLoadedRegisters = 64;  // of a thread, for what it loads ahead
  static constexpr int64_t kFewRegisters = 16;
  static constexpr int kLeastWarps = 4;  // of a launch of several kernels
  static constexpr int kFinishColumns = 32;
  static constexpr int kFinishPrograms = 128;
  static constexpr const char* kLastPosition = "9223372036854775807";

  const Plan& memory_;
  const Program& program_;
  const Kernel& kernel_;
  TritonPrelude& prelude_;
  KernelAnalysis analysis_;
  KernelArguments arguments_;
  bool is_part_;
  TilePlan plan_;
  TritonBody body_;
  std::vector<size_t> outer_;
  std::vector<size_t> inner_;
  std::vector<BufferId> loaded_;
  StagesOfLoads reads_;
  std::vector<TritonKernel::Partial> partials_;
  std::pair<std::string, TileValue> last_choice_;  // in the scope at hand
};

}  // namespace

std::string triton_header(const TritonKernel& kernel, const TritonFunction& function, bool narrow) {
  std::string parameters;
  const auto add = [&](const char* stem, size_t count) {
    for (size_t i = 0; i < count; ++i)
      parameters +=
          (parameters.empty() ? "" : ", ") + std::string(stem) + text(static_cast<int64_t>(i));
  };
  add("s", kernel.partials.size());
  add("p", kernel.buffers.size());
  add("n", kernel.symbols.size());
  std::string lines = "@triton.jit\ndef " + std::string(kTritonKernelName) + function.suffix + "(" +
                      parameters + "):\n";
  if (narrow) {
    for (size_t i = 0; i < kernel.symbols.size(); ++i) {
      const std::string name = "n" + text(static_cast<int64_t>(i));
      lines += "    " + name + " = " + name + ".to(tl.int32)\n";
    }
  }
  return lines;
}

std::string triton_refusal(const Program& program, const Kernel& kernel) {
  for (const KernelStore& s : kernel.stores) {
    if (s.mode == StoreMode::kStore) continue;
    const DType dtype = program.buffer(s.buffer).dtype;
    const bool is_word = dtype == DType::kInt32 || dtype == DType::kInt64;
    const bool is_float = dtype == DType::kFloat32 || dtype == DType::kFloat64;
    if (s.mode == StoreMode::kAdd ? !is_word && !is_float : s.mode == StoreMode::kMul || !is_word)
      return "Triton has no atomic " + std::string(to_string(s.mode)) + " of " +
             std::string(to_string(dtype));
  }
  return "";
}

namespace {

// Calls act with the printer of the kernel and the kernel that it prints: with online sums where
// rows do not stay in registers.
template <class Act>
auto print_in_few_passes(const Plan& plan, const Kernel& kernel, TritonPrelude& prelude,
                         bool is_part, const Act& act) {
  KernelPrinter printer(plan, kernel, prelude, nullptr, is_part);
  if (printer.reads_rows_again()) {
    if (const std::optional<Kernel> online = with_online_sums(kernel, true)) {
      KernelPrinter fewer(plan, *online, prelude, nullptr, is_part);
      return act(fewer, *online);
    }
  }
  return act(printer, kernel);
}

}  // namespace

std::optional<CombinedPart> print_triton_part(const Plan& plan, const Kernel& kernel,
                                              const std::vector<bool>& unaligned,
                                              TritonPrelude& prelude, const PartTile& tile) {
  if (kernel.attention || product_kernel(kernel, unaligned)) return std::nullopt;
  return print_in_few_passes(
      plan, kernel, prelude, true, [&](KernelPrinter& printer, const Kernel& printed) {
        const TilePlan plan_of_part = printer.tile_of_part(tile);
        return KernelPrinter(plan, printed, prelude, &plan_of_part, true).print_part();
      });
}

TritonKernel print_triton_kernel(const Plan& plan, const Kernel& kernel,
                                 const std::vector<bool>& unaligned, const TritonDevice& device,
                                 TritonPrelude& prelude) {
  if (kernel.attention)
    return print_triton_attention(plan, kernel, plan_attention(kernel, device), prelude);
  if (const std::optional<MatrixProduct> product = product_kernel(kernel, unaligned))
    return print_triton_product(plan, kernel, *product, plan_product(kernel, device), device,
                                prelude);
  return print_in_few_passes(plan, kernel, prelude, false,
                             [](KernelPrinter& printer, const Kernel&) { return printer.print(); });
}

std::vector<TritonKernel> print_triton_variants(const Plan& plan, const Kernel& kernel,
                                                const std::vector<bool>& unaligned,
                                                const TritonDevice& device,
                                                TritonPrelude& prelude) {
  std::vector<TritonKernel> variants;
  if (kernel.attention) {
    for (const AttentionTile& tile : other_attention_tiles(kernel, plan_attention(kernel, device)))
      variants.push_back(print_triton_attention(plan, kernel, tile, prelude));
    return variants;
  }
  if (const std::optional<MatrixProduct> product = product_kernel(kernel, unaligned)) {
    for (const ProductTile& tile : other_product_tiles(kernel, device))
      variants.push_back(print_triton_product(plan, kernel, *product, tile, device, prelude));
    return variants;
  }
  print_in_few_passes(plan, kernel, prelude, false,
                      [&](KernelPrinter& printer, const Kernel& printed) {
                        for (const TilePlan& tile : printer.other_tiles())
                          variants.push_back(KernelPrinter(plan, printed, prelude, &tile).print());
                      });
  return variants;
}

}  // namespace litz
