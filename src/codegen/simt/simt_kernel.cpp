#include "codegen/simt/simt_kernel.h"

#include <algorithm>

#include "codegen/common/online_sums.h"
#include "codegen/cpp/cpp_accumulators.h"
#include "codegen/cpp/cpp_body.h"
#include "codegen/cpp/cpp_text.h"
#include "codegen/simt/row_registers.h"
#include "support/error.h"

namespace litz {
namespace {

// Of each kernel of a launch of several, whose local memory adds up.
constexpr int64_t kLocalBytesOfPart = 5 * 1024;

std::string text(int64_t value) { return std::to_string(value); }

class KernelPrinter {
 public:
  KernelPrinter(const Program& program, const Kernel& kernel, const std::vector<bool>& unaligned,
                const SimtDialect& dialect, const ThreadHeuristics& heuristics, Prelude& prelude,
                bool is_part = false)
      : program_(program),
        kernel_(kernel),
        unaligned_(unaligned),
        words_(dialect.words()),
        prelude_(prelude),
        analysis_(kernel),
        arguments_(program),
        body_(analysis_, prelude, arguments_),
        is_part_(is_part),
        plan_(is_part ? plan_threads_of_part(analysis_, program, heuristics)
                      : plan_threads(analysis_, program, heuristics)),
        finish_threads_(heuristics.block),
        position_(plan_.narrow ? "i32" : "i64") {
    for (size_t i = 0; i < kernel.outer.size(); ++i) outer_.push_back(i);
    for (size_t i = 0; i < kernel.inner.size(); ++i) inner_.push_back(kernel.outer.size() + i);
    LITZ_CHECK(!kernel.attention, "an attention is a kernel for Triton");
    for (uint32_t i = 0; i < kernel.reductions.size(); ++i) {
      accumulators_.emplace_back(kernel.reductions[i], i, plan_.lanes, prelude);
      totals_.emplace_back(kernel.reductions[i], i, 1, prelude);
    }
  }

  // Rows that are long, and do not stay in registers.
  bool reads_rows_again() const {
    return plan_.group > 1 && plan_.turns == 0 && kernel_.num_stages > 1;
  }

  std::optional<CombinedPart> print_part() {
    if (plan_.splits > 1 || plan_.rows_of_block > 0 || !plan_.fault.empty()) return std::nullopt;
    CombinedPart part;
    const std::string statements = print_statements();
    part.body = facts_of_pointers() + statements;
    if (!arguments_.symbols().empty() || !units_.is_constant() || local_bytes_ > kLocalBytesOfPart)
      return std::nullopt;
    const int64_t per_block = units_of_block();
    part.programs = (units_.constant() + per_block - 1) / per_block;
    part.length =
        is_vector_of_one_loop() ? extent(plan_.vector_loop).constant() : units_.constant();
    part.buffers = arguments_.buffers();
    part.checks = arguments_.checks_values();
    part.threads = plan_.threads();
    return part;
  }

  SimtKernel print() {
    const std::string statements = print_statements();
    std::string finish;
    if (has_finish()) {
      body_.push_iteration_scope();
      if (plan_.rows_of_block > 0) {
        print_columns_finish();
      } else {
        print_finish();
      }
      body_.pop_scope("");
      finish = body_.take_text();
    }
    return assemble(statements, finish);
  }

 private:
  std::string print_statements() {
    body_.push_scope(CppBody::kNoLoop, "");
    body_.push_iteration_scope();
    if (!plan_.turned_loads.empty()) {
      print_turned();
    } else if (is_pointwise()) {
      print_pointwise();
    } else if (plan_.rows_of_block > 0) {
      print_rows_and_columns();
    } else {
      print_groups();
    }
    body_.pop_scope("");
    return body_.take_text();
  }

  bool has_finish() const { return plan_.splits > 1 || plan_.rows_of_block > 0; }

  // The block's number among those of the kernel.
  std::string block_number() const { return is_part_ ? "pid" : words_.block[0]; }

  // So many vectors, squares or groups there are.
  void set_units(Index units) {
    units_ = units;
    total_ = is_part_ ? "n" : body_.index(units);
  }

  // Vectors along the only loop, the last of which may stand out past its end.
  bool is_vector_of_one_loop() const {
    return is_pointwise() && plan_.turned_loads.empty() && plan_.lanes > 1 && outer_.size() == 1;
  }

  int64_t units_of_block() const {
    return !plan_.turned_loads.empty() ? 1 : is_pointwise() ? plan_.threads() : plan_.groups;
  }

  Index extent(size_t loop) const { return analysis_.extent(loop); }

  Index count(const std::vector<size_t>& loops) const {
    return analysis_.count(program_.indices(), loops);
  }

  static std::string loop_name(size_t loop) { return "d" + text(static_cast<int64_t>(loop)); }

  // Declares the loops' variables from the flat position `flat`, the last loop fastest, and binds
  // them. The last one counts in steps of `step`.
  void decode(const std::vector<size_t>& loops, const std::string& flat, int step) {
    std::string rest = flat;
    for (size_t i = loops.size(); i-- > 0;) {
      const bool last = i + 1 == loops.size();
      const int by = last ? step : 1;
      std::string length = body_.index(extent(loops[i]));
      if (by > 1) length = "(" + length + " / " + text(by) + ")";
      std::string value = i == 0 ? rest : rest + " % " + length;
      if (by > 1) value = "(" + value + ") * " + text(by);
      body_.out().line("const " + position_ + " " + loop_name(loops[i]) + " = (" + position_ +
                       ")(" + value + ");");
      if (i != 0) {
        const std::string next = body_.fresh("r");
        body_.out().line("const " + position_ + " " + next + " = (" + position_ + ")(" + rest +
                         " / " + length + ");");
        rest = next;
      }
    }
  }

  void bind(const std::vector<size_t>& loops) {
    for (size_t loop : loops) body_.push_scope(loop, loop_name(loop));
  }
  void unbind(const std::vector<size_t>& loops) {
    for (size_t i = 0; i < loops.size(); ++i) body_.pop_scope("");
  }

  bool is_pointwise() const { return kernel_.inner.empty() && kernel_.reductions.empty(); }

  // ---- no inner loops: one thread, one vector ----

  void print_pointwise() {
    const int lanes = plan_.lanes;
    const size_t vector = plan_.vector_loop;
    std::vector<size_t> rows = outer_;
    Index units = count(outer_);
    const bool single = outer_.size() == 1;
    if (lanes > 1) {
      units = ceil_div(units, program_.indices().constant(lanes));
      rows.pop_back();
    }
    set_units(units);
    if (is_part_ && is_vector_of_one_loop())
      total_ = "(n + " + text(lanes - 1) + ") / " + text(lanes);
    body_.out().line("const " + position_ + " it = (" + position_ + ")" + block_number() + " * " +
                     text(plan_.threads()) + " + (" + position_ + ")" + words_.thread + ";");
    body_.out().line("if (it >= " + total_ + ") return;");
    if (lanes == 1) {
      decode(outer_, "it", 1);
      bind(outer_);
      body_.store_outer();
      unbind(outer_);
      return;
    }
    if (single) {
      body_.out().line("const " + position_ + " v = it * " + text(lanes) + ";");
    } else {
      decode(outer_, "it", lanes);
      body_.out().line("const " + position_ + " v = " + loop_name(vector) + ";");
    }
    bind(rows);
    const std::string length = is_part_ && single ? "n" : body_.index(extent(vector));
    body_.push_vector_scope(vector, "v", lanes, "");
    body_.store_outer();
    const bool whole = extent(vector).is_constant() && extent(vector).constant() % lanes == 0;
    body_.pop_scope(whole ? "" : "if (v + " + text(lanes) + " <= " + length + ")");
    if (!whole) {
      body_.push_vector_scope(vector, "v", lanes, "(i64)(" + length + " - v)");
      body_.store_outer();
      body_.pop_scope("if (v + " + text(lanes) + " > " + length + ")");
    }
    unbind(rows);
  }

  // ---- no inner loops, and loads that are turned in shared memory ----

  // A block is a square of the last loop (v) and the one along which the loads are contiguous (u).
  // Its threads load them with u as the fastest, and do everything else with v as the fastest.
  void print_turned() {
    const size_t last = outer_.back();
    const size_t along = plan_.turned_loop;
    std::vector<size_t> around;
    for (size_t loop : outer_) {
      if (loop != last && loop != along) around.push_back(loop);
    }
    const std::vector<Expr>& loads = plan_.turned_loads;
    const std::string edge = text(kTurnedEdge);
    const std::string step = text(plan_.threads() / kTurnedEdge);
    const std::string width = body_.index(extent(last));
    const std::string height = body_.index(extent(along));
    const Index across = ceil_div(extent(last), program_.indices().constant(kTurnedEdge));
    const Index down = ceil_div(extent(along), program_.indices().constant(kTurnedEdge));
    set_units(count(around) * across * down);
    IndentedBuffer& out = body_.out();
    const std::string tiles_across = body_.index(across);
    const std::string tiles_down = body_.index(down);
    out.line("const " + position_ + " tile = (" + position_ + ")" + block_number() + ";");
    out.line("const " + position_ + " left = tile % " + tiles_across + " * " + edge + ";");
    out.line("const " + position_ + " top = tile / " + tiles_across + " % " + tiles_down + " * " +
             edge + ";");
    out.line("const i32 x = (i32)" + words_.thread + " % " + edge + ";");
    decode(around, "(tile / (" + tiles_across + " * " + tiles_down + "))", 1);
    bind(around);
    std::vector<std::string> tiles;
    for (Expr load : loads) {
      const DType dtype = register_dtype(load.dtype());
      tiles.push_back(body_.fresh("square"));
      local_bytes_ += int64_t{kTurnedEdge} * (kTurnedEdge + 1) * size_of(dtype);
      body_.out().line(words_.local + (dtype == DType::kBool ? "bool" : prelude_.type(dtype, 1)) +
                       " " + tiles.back() + "[" + edge + "][" + edge + " + 1];");
    }
    // Other loads are on their way before the block waits for the squares.
    std::vector<Expr> ahead;
    for (Expr e : unconditional_loads(analysis_.outer_roots())) {
      if (e.operands().empty() && ahead.size() < kLoadsAhead &&
          std::find(loads.begin(), loads.end(), e) == loads.end())
        ahead.push_back(e);
    }
    const std::string turns = text(kTurnedEdge * kTurnedEdge / plan_.threads());
    std::vector<std::string> values;
    for (Expr load : ahead) {
      const DType dtype = register_dtype(load.dtype());
      values.push_back(body_.fresh("ahead"));
      body_.out().line((dtype == DType::kBool ? "bool" : prelude_.type(dtype, 1)) + " " +
                       values.back() + "[" + turns + "];");
    }
    const auto print_rows = [&](const std::string& u, const std::string& v, const auto& act) {
      body_.push_scope(CppBody::kNoLoop, "");
      body_.out().line("const i32 j = (i32)" + words_.thread + " / " + edge + " + t * " + step +
                       ";");
      body_.out().line("const " + position_ + " u = top + " + u + ";");
      body_.out().line("const " + position_ + " v = left + " + v + ";");
      body_.push_scope(along, "u");
      body_.push_scope(last, "v");
      act();
      body_.pop_scope("");
      body_.pop_scope("if (u < " + height + " && v < " + width + ")");
      body_.pop_scope(words_.unroll + "for (i32 t = 0; t < " + turns + "; ++t)");
    };
    print_rows("x", "j", [&] {
      for (size_t i = 0; i < loads.size(); ++i)
        body_.out().line(tiles[i] + "[j][x] = " + body_.scalar(loads[i]) + ";");
    });
    if (!ahead.empty()) {
      print_rows("j", "x", [&] {
        for (size_t i = 0; i < ahead.size(); ++i)
          body_.out().line(values[i] + "[t] = " + body_.scalar(ahead[i]) + ";");
      });
    }
    body_.out().line(words_.barrier);
    print_rows("j", "x", [&] {
      for (size_t i = 0; i < loads.size(); ++i) body_.define_scalar(loads[i], tiles[i] + "[x][j]");
      for (size_t i = 0; i < ahead.size(); ++i) body_.define_scalar(ahead[i], values[i] + "[t]");
      body_.store_outer();
    });
    unbind(around);
  }

  // ---- groups ----

  void print_groups() {
    set_units(count(outer_));
    const std::string group = text(plan_.group);
    const std::string groups = text(plan_.groups);
    IndentedBuffer& out = body_.out();
    std::string which = "0";
    if (plan_.groups > 1) which = words_.thread + (plan_.columns ? " % " + groups : " / " + group);
    out.line(position_ + " it = (" + position_ + ")" + block_number() + " * " + groups + " + (" +
             position_ + ")(" + which + ");");
    out.line("const i32 member = (i32)" +
             (plan_.group == 1 ? std::string("0")
              : plan_.columns  ? "(" + words_.thread + " / " + groups + ")"
                               : "(" + words_.thread + " % " + group + ")") +
             ";");
    if (barriers()) {
      // All threads of a block meet at its barriers, those past the end too.
      out.line("const bool live = it < " + total_ + ";");
      out.line("if (!live) it = 0;");
    } else {
      out.line("if (it >= " + total_ + ") return;");
    }
    for (const Accumulator& total : totals_) {
      if (barriers() && !total.reduction().running) declare_shared(total);
    }
    decode(outer_, "it", 1);
    bind(outer_);
    if (plan_.turns > 0) load_row();
    for (uint32_t stage = 0; stage < kernel_.num_stages; ++stage) print_stage(stage);
    std::string leader;
    if (plan_.group > 1) leader = "member == 0";
    if (barriers()) leader = "live" + (leader.empty() ? "" : " && " + leader);
    body_.push_scope(CppBody::kNoLoop, "");
    if (plan_.splits > 1) {
      print_partials();
    } else {
      body_.store_outer();
    }
    body_.pop_scope(leader.empty() ? std::string(CppBody::kBlock) : "if (" + leader + ")");
    unbind(outer_);
  }

  // ---- rows that several groups share ----

  int64_t rows() const { return count(outer_).constant(); }

  // The arrays of partial results, eight bytes apart at most: element [split * rows + row], or
  // [block * columns + column] where columns are summed up on the way.
  void declare_partials() {
    const bool of_columns = plan_.rows_of_block > 0;
    const int64_t elements = of_columns ? sum_blocks() * columns() : plan_.splits * rows();
    int64_t offset = 0;
    for (const Accumulator& total : totals_) {
      if (total.reduction().over_outer != of_columns) continue;
      for (const auto& [type, name] : total.total_variables("_p")) {
        body_.out().line(words_.global + type + "* const " + name + " = (" + words_.global + type +
                         "*)(scratch + " + text(offset) + ");");
        offset += (elements * 8 + 255) / 256 * 256;
      }
    }
    scratch_bytes_ = offset;
  }

  void print_partials() {
    declare_partials();
    for (const Accumulator& total : totals_) {
      const auto mine = total.total_variables("_t");
      const auto parts = total.total_variables("_p");
      for (size_t i = 0; i < mine.size(); ++i)
        body_.out().line(parts[i].second + "[(i64)" + words_.block[1] + " * " + text(rows()) +
                         " + it] = " + mine[i].second + ";");
    }
  }

  // A thread for each row adds up few parts, a block many.
  bool has_few_parts() const { return plan_.splits <= kFewParts; }

  void print_finish() {
    const ThreadPlan first = plan_;
    const bool alone = has_few_parts();
    plan_.columns = false;
    plan_.group = alone ? 1 : finish_threads_;
    plan_.groups = 1;
    IndentedBuffer& out = body_.out();
    out.line(
        "const " + position_ + " it = (" + position_ + ")" + words_.block[0] +
        (alone ? " * " + text(finish_threads_) + " + (" + position_ + ")" + words_.thread : "") +
        ";");
    if (alone) {
      out.line("if (it >= " + total_ + ") return;");
    } else {
      if (!shuffles()) out.line("const i32 member = (i32)" + words_.thread + ";");
      for (const Accumulator& total : totals_) declare_shared(total);
    }
    declare_partials();
    std::vector<Accumulator*> totals;
    for (Accumulator& total : totals_) {
      total.declare(body_.out(), "_t");
      totals.push_back(&total);
    }
    body_.push_scope(CppBody::kNoLoop, "");
    for (Accumulator& total : totals_) {
      const auto other = total.total_variables("_o");
      const auto parts = total.total_variables("_p");
      for (size_t i = 0; i < other.size(); ++i)
        body_.out().line("const " + other[i].first + " " + other[i].second + " = " +
                         parts[i].second + "[(i64)part * " + text(rows()) + " + it];");
      total.merge(body_, "_t", "_o");
    }
    body_.pop_scope("for (i32 part = " + (alone ? "0" : "(i32)" + words_.thread) + "; part < " +
                    text(first.splits) + "; part += " + text(plan_.group) + ")");
    if (!alone) combine_rows(totals);
    settle_online_sums(0, true);
    decode(outer_, "it", 1);
    bind(outer_);
    for (Accumulator& total : totals_)
      body_.define_reduced(total.number(), total.total_name("_t"), false);
    body_.push_scope(CppBody::kNoLoop, "");
    body_.store_outer();
    body_.pop_scope(alone ? std::string(CppBody::kBlock) : "if (" + words_.thread + " == 0)");
    unbind(outer_);
    plan_ = first;
  }

  // ---- rows whose columns are summed up, too ----

  int64_t sum_blocks() const { return (rows() + plan_.rows_of_block - 1) / plan_.rows_of_block; }

  int64_t columns() const { return count(inner_).constant(); }

  void print_rows_and_columns() {
    set_units(program_.indices().constant(sum_blocks()));
    IndentedBuffer& out = body_.out();
    const std::string stretch = text(plan_.rows_of_block);
    const std::string all = text(rows());
    out.line("const i32 member = (i32)" + words_.thread + ";");
    for (const Accumulator& total : totals_) {
      if (barriers() && !total.reduction().over_outer) declare_shared(total);
    }
    for (Accumulator& a : accumulators_) {
      if (a.reduction().over_outer) a.declare_turns(out, plan_.turns);
    }
    out.line("const " + position_ + " first = (" + position_ + ")" + words_.block[0] + " * " +
             stretch + ";");
    out.line("const " + position_ + " last = first + " + stretch + " < " + all + " ? first + " +
             stretch + " : " + all + ";");
    body_.push_scope(CppBody::kNoLoop, "");
    decode(outer_, "it", 1);
    bind(outer_);
    if (takes_whole_turns()) load_row();
    for (uint32_t stage = 0; stage < kernel_.num_stages; ++stage) print_stage(stage);
    body_.push_scope(CppBody::kNoLoop, "");
    body_.store_outer();
    body_.pop_scope("if (member == 0)");
    unbind(outer_);
    body_.pop_scope("for (" + position_ + " it = first; it < last; ++it)");
    declare_partials();
    open_turn();
    const std::string at = "(i64)" + words_.block[0] + " * " + text(columns()) + " + v";
    if (!takes_whole_turns()) body_.out().line("if (v >= " + text(columns()) + ") continue;");
    for (Accumulator& a : accumulators_) {
      if (!a.reduction().over_outer) continue;
      const auto [type, array] = totals_[a.number()].total_variables("_p")[0];
      for (int lane = 0; lane < plan_.lanes; ++lane)
        body_.out().line(array + "[" + at + " + " + text(lane) + "] = ((const " + type + "*)&" +
                         a.name("[t]") + ")[" + text(lane) + "];");
    }
    close_turn();
  }

  // Some threads for each column.
  void print_columns_finish() {
    const ThreadPlan first = plan_;
    const int64_t blocks = sum_blocks();
    plan_.columns = true;
    plan_.groups = kFinishColumns;
    plan_.group = finish_threads_ / kFinishColumns;
    IndentedBuffer& out = body_.out();
    const std::string length = text(columns());
    const std::string width = text(kFinishColumns);
    out.line(position_ + " it = (" + position_ + ")" + words_.block[0] + " * " + width + " + (" +
             position_ + ")" + words_.thread + " % " + width + ";");
    out.line("const i32 member = (i32)" + words_.thread + " / " + width + ";");
    out.line("const bool live = it < " + length + ";");
    out.line("if (!live) it = 0;");
    std::vector<Accumulator*> totals;
    for (Accumulator& total : totals_) {
      if (!total.reduction().over_outer) continue;
      totals.push_back(&total);
      declare_shared(total);
      total.declare(out, "_t");
    }
    declare_partials();
    body_.push_scope(CppBody::kNoLoop, "");
    for (Accumulator* total : totals) {
      const auto [type, mine] = total->total_variables("_o")[0];
      const std::string array = total->total_variables("_p")[0].second;
      body_.out().line("const " + type + " " + mine + " = " + array + "[(i64)part * " + length +
                       " + it];");
      total->merge(body_, "_t", "_o");
    }
    body_.pop_scope(replace_all(words_.unroll_some, "COUNT", "8") +
                    "for (i32 part = member; part < " + text(blocks) +
                    "; part += " + text(plan_.group) + ")");
    combine_in_local_memory(totals, kFinishColumns);
    decode(inner_, "it", 1);
    bind(inner_);
    for (Accumulator* total : totals)
      body_.define_reduced(total->number(), total->total_name("_t"), false);
    body_.push_scope(CppBody::kNoLoop, "");
    body_.store_after_outer();
    body_.pop_scope("if (live && member == 0)");
    unbind(inner_);
    plan_ = first;
  }

  // Whether groups meet at barriers of their block rather than within a warp.
  bool barriers() const {
    return plan_.group > 1 && (plan_.columns || !shuffles() || plan_.group > words_.warp);
  }
  bool shuffles() const { return !words_.shuffle.empty(); }

  // One row after the other, whose warps meet in one half of local memory and then in the other:
  // who is at the barrier of a row has read what the row before left.
  bool alternates() const { return plan_.rows_of_block > 0 && !plan_.columns && shuffles(); }

  bool in_stage(const Accumulator& a, uint32_t stage) const {
    return a.reduction().stage == stage && !a.reduction().over_outer;
  }

  void print_stage(uint32_t stage) {
    for (Accumulator& a : accumulators_) {
      if (in_stage(a, stage)) a.declare(body_.out(), "");
    }
    if (plan_.group == 1) {
      print_nested_loops(stage);
    } else if (plan_.turns > 0) {
      print_turns(stage);
    } else if (inner_.size() == 1 && plan_.vector_loop != SIZE_MAX) {
      print_strided_loop(stage);
    } else {
      print_flat_loop(stage);
    }
    for (size_t i = 0; i < accumulators_.size(); ++i) {
      Accumulator& a = accumulators_[i];
      if (!in_stage(a, stage) || a.reduction().running) continue;
      const std::string result = a.finish(body_);
      if (plan_.group == 1) {
        body_.define_reduced(a.number(), result, false);
        continue;
      }
      totals_[i].begin_total(body_.out(), "_t", result);
    }
    if (plan_.group > 1) {
      combine_group(stage);
      for (Accumulator& total : totals_) {
        if (in_stage(total, stage) && !total.reduction().running)
          body_.define_reduced(total.number(), total.total_name("_t"), false);
      }
    }
    if (plan_.splits == 1) settle_online_sums(stage, plan_.group > 1);
  }

  // Online sums are told of infinities when all their parts are together.
  void settle_online_sums(uint32_t stage, bool of_groups) {
    const auto result = [&](uint32_t i) {
      return of_groups ? totals_[i].total_name("_t") : accumulators_[i].result_name();
    };
    for (Accumulator& total : totals_) {
      const KernelReduction& r = total.reduction();
      if (r.online && r.stage == stage)
        total.settle(body_.out(), result(total.number()), result(r.online->greatest));
    }
  }

  // In order, as running reductions need it.
  void print_nested_loops(uint32_t stage) {
    std::vector<std::string> headers;
    for (size_t loop : inner_) {
      const std::string name = loop_name(loop);
      headers.push_back("for (" + position_ + " " + name + " = 0; " + name + " < " +
                        body_.index(extent(loop)) + "; ++" + name + ")");
      body_.push_scope(loop, name);
    }
    print_element(stage);
    for (size_t i = headers.size(); i-- > 0;) body_.pop_scope(headers[i]);
  }

  // ---- rows that stay in registers ----

  void declare_kept(const std::string& name, Expr e) {
    const std::string type = prelude_.type(register_dtype(e.dtype()), plan_.lanes);
    body_.out().line(type + " " + name + "[" + text(plan_.turns) + "];");
  }

  // Reads what stages need of the row.
  void load_row() {
    row_ = plan_row_registers(analysis_, plan_);
    for (size_t i = 0; i < row_.loads.size(); ++i) declare_kept(load_name(i), row_.loads[i]);
    for (size_t i = 0; i < row_.values.size(); ++i)
      declare_kept(value_name(i), row_.values[i].value);
    if (row_.loads.empty()) return;
    open_turn();
    open_vector(plan_.vector_loop, "v", "");
    for (size_t i = 0; i < row_.loads.size(); ++i)
      body_.out().line(load_name(i) + "[t] = " + body_.value(row_.loads[i]) + ";");
    body_.pop_scope("");
    close_turn();
    if (plan_.rows_of_block > 0) prefetch_next_row();
  }

  // Rows of half floats are so short that waiting for them shows.
  void prefetch_next_row() {
    std::vector<Expr> loads = row_.loads;
    std::erase_if(
        loads, [&](Expr load) { return size_of(load.dtype()) > 2 || !analysis_.is_of_rows(load); });
    if (loads.empty() || words_.prefetch.empty()) return;
    body_.push_scope(CppBody::kNoLoop, "");
    decode(outer_, "(it + 1)", 1);  // the names of this row's are hidden
    open_turn();
    open_vector(plan_.vector_loop, "v", "");
    for (Expr load : loads)
      body_.out().line(replace_all(words_.prefetch, "POINTER", body_.address_of(load)));
    body_.pop_scope("");
    close_turn();
    body_.pop_scope("if (it + 1 < last)");
  }

  static std::string load_name(size_t i) { return "kept" + text(static_cast<int64_t>(i)); }
  static std::string value_name(size_t i) { return "made" + text(static_cast<int64_t>(i)); }

  void open_turn() {
    body_.push_scope(CppBody::kNoLoop, "");
    body_.out().line("const " + position_ + " v = (member + t * " + text(plan_.group) + ") * " +
                     text(plan_.lanes) + ";");
  }

  // Only unrolled loops leave the arrays in registers.
  void close_turn() {
    body_.pop_scope(words_.unroll + "for (i32 t = 0; t < " + text(plan_.turns) + "; ++t)");
  }

  // Every thread takes all turns, of the only inner loop.
  bool takes_whole_turns() const {
    return plan_.rows_of_block == 0 ||
           (inner_.size() == 1 && columns() % (int64_t{plan_.group} * plan_.lanes) == 0);
  }

  // Turns in all inner loops as one, the last of which may stand out past the end.
  void print_flat_turns(uint32_t stage) {
    open_turn();
    body_.push_scope(CppBody::kNoLoop, "");
    const std::string lanes = text(plan_.lanes);
    decode(inner_, plan_.lanes > 1 ? "(v / " + lanes + ")" : "v", plan_.lanes);
    const std::vector<size_t> around(inner_.begin(), inner_.end() - 1);
    bind(around);
    open_vector(inner_.back(), loop_name(inner_.back()), "");
    print_element(stage);
    body_.pop_scope("");
    unbind(around);
    body_.pop_scope("if (v < " + text(columns()) + ")");
    close_turn();
  }

  void print_turns(uint32_t stage) {
    if (!takes_whole_turns()) return print_flat_turns(stage);
    open_turn();
    open_vector(plan_.vector_loop, "v", "");
    const auto define = [&](Expr e, const std::string& name) {
      if (plan_.lanes > 1) {
        body_.define_vector(e, name + "[t]");
      } else {
        body_.define_scalar(e, name + "[t]");
      }
    };
    for (size_t i = 0; i < row_.loads.size(); ++i) define(row_.loads[i], load_name(i));
    for (size_t i = 0; i < row_.values.size(); ++i) {
      if (row_.values[i].stage < stage) define(row_.values[i].value, value_name(i));
    }
    for (size_t i = 0; i < row_.values.size(); ++i) {
      if (row_.values[i].stage == stage)
        body_.out().line(value_name(i) + "[t] = " + body_.value(row_.values[i].value) + ";");
    }
    print_element(stage);
    body_.pop_scope("");
    close_turn();
  }

  // The threads of the group take turns in the only inner loop.
  void print_strided_loop(uint32_t stage) {
    const size_t loop = inner_[0];
    std::string length = body_.index(extent(loop));
    const std::string lanes = text(plan_.lanes);
    body_.push_scope(CppBody::kNoLoop, "");
    const std::string from = open_stretch(&length, plan_.lanes);
    body_.out().line(position_ + " v = " + from + "member * " + lanes + ";");
    open_vector(loop, "v", "");
    print_element(stage);
    body_.pop_scope(unroll_some(stage) + "for (; v + " + lanes + " <= " + length +
                    "; v += " + text(static_cast<int64_t>(plan_.group) * plan_.lanes) + ")");
    const Index e = extent(loop);
    if (plan_.lanes > 1 && !(e.is_constant() && e.constant() % plan_.lanes == 0)) {
      open_vector(loop, "v", "(i64)(" + length + " - v)");
      print_element(stage);
      body_.pop_scope("if (v < " + length + ")");
    }
    body_.pop_scope(std::string(CppBody::kBlock));
  }

  // So many iterations that enough of their loads are on the way at once.
  std::string unroll_some(uint32_t stage) {
    const KernelAnalysis::Work work =
        analysis_.work(analysis_.stage_roots(stage), analysis_.inner_mask());
    const bool is_small = work.bytes * plan_.lanes <= 4 && work.operations <= kFewOperations;
    return replace_all(words_.unroll_some, "COUNT", is_small ? "8" : "4");
  }

  void open_vector(size_t loop, const std::string& name, const std::string& valid) {
    if (plan_.lanes > 1) {
      body_.push_vector_scope(loop, name, plan_.lanes, valid);
    } else {
      body_.push_scope(loop, name);
    }
  }

  // ... or in all inner loops as one.
  void print_flat_loop(uint32_t stage) {
    const int lanes = plan_.lanes;
    const Index all = floor_div(count(inner_), program_.indices().constant(lanes));
    std::string total = body_.index(all);
    body_.push_scope(CppBody::kNoLoop, "");
    const std::string from = open_stretch(&total, 1);
    body_.push_scope(CppBody::kNoLoop, "");
    decode(inner_, "u", lanes);
    std::vector<size_t> around(inner_.begin(), inner_.end() - 1);
    bind(around);
    open_vector(inner_.back(), loop_name(inner_.back()), "");
    print_element(stage);
    body_.pop_scope("");
    unbind(around);
    body_.pop_scope(unroll_some(stage) + "for (" + position_ + " u = " + from + "member; u < " +
                    total + "; u += " + text(plan_.group) + ")");
    body_.pop_scope(std::string(CppBody::kBlock));
  }

  // Where rows are split: declares this group's stretch of the iterations, a multiple of `unit`
  // long, puts its end in place of the whole length, and returns "from + ".
  std::string open_stretch(std::string* length, int unit) {
    if (plan_.splits == 1) return "";
    const std::string parts = text(int64_t{plan_.splits} * unit);
    IndentedBuffer& out = body_.out();
    out.line("const " + position_ + " stretch = (" + *length + " + " + parts + " - 1) / " + parts +
             " * " + text(unit) + ";");
    out.line("const " + position_ + " from = (" + position_ + ")" + words_.block[1] +
             " * stretch;");
    out.line("const " + position_ + " to = from + stretch < " + *length +
             " ? from + stretch : " + *length + ";");
    *length = "to";
    return "from + ";
  }

  void print_element(uint32_t stage) {
    for (Accumulator& a : accumulators_) {
      if (!in_stage(a, stage)) continue;
      a.accumulate(body_, "");
      if (a.reduction().running) body_.define_reduced(a.number(), a.name(""), false);
    }
    for (Accumulator& a : accumulators_) {
      if (a.reduction().over_outer && a.reduction().stage == stage) a.accumulate(body_, "[t]");
    }
    const bool any = std::any_of(kernel_.stores.begin(), kernel_.stores.end(),
                                 [&](const KernelStore& s) { return s.inner && s.stage == stage; });
    if (!any) return;
    body_.push_scope(CppBody::kNoLoop, "");
    body_.store_inner(stage);
    body_.pop_scope(barriers() && plan_.rows_of_block == 0 ? "if (live)" : "");
  }

  // ---- combining the accumulators of a group ----

  void declare_shared(const Accumulator& total) {
    int64_t slots = plan_.columns || !shuffles() ? plan_.threads() : words_.warp;
    if (alternates()) slots *= 2;
    for (const auto& [type, name] : total.total_variables("_s")) {
      body_.out().line(words_.local + type + " " + name + "[" + text(slots) + "];");
      local_bytes_ += slots * 8;
    }
  }

  void combine_group(uint32_t stage) {
    std::vector<Accumulator*> totals;
    for (Accumulator& total : totals_) {
      if (in_stage(total, stage) && !total.reduction().running) totals.push_back(&total);
    }
    if (totals.empty()) return;
    if (plan_.columns) {
      combine_in_local_memory(totals, plan_.groups);
    } else {
      combine_rows(totals);
    }
  }

  void combine_rows(const std::vector<Accumulator*>& totals) {
    if (!shuffles()) return combine_in_local_memory(totals, 1);
    combine_warp(totals, std::min(plan_.group, words_.warp));
    if (plan_.group <= words_.warp) return;
    IndentedBuffer& out = body_.out();
    const int warps = plan_.group / words_.warp;
    const std::string warp = text(words_.warp);
    const std::string half = alternates() ? "(it & 1) * " + warp + " + " : "";
    for (Accumulator* total : totals) {
      const auto registers = total->total_variables("_t");
      const auto shared = total->total_variables("_s");
      for (size_t i = 0; i < registers.size(); ++i)
        out.line("if (" + words_.thread + " % " + warp + " == 0) " + shared[i].second + "[" + half +
                 words_.thread + " / " + warp + "] = " + registers[i].second + ";");
    }
    out.line(words_.barrier);
    // Every warp adds up all of its group, so that all threads have the result.
    std::string slot = half + words_.thread + " % " + text(warps);
    if (plan_.groups > 1)
      slot = words_.thread + " / " + text(plan_.group) + " * " + text(warps) + " + " + slot;
    for (Accumulator* total : totals) {
      const auto registers = total->total_variables("_t");
      const auto shared = total->total_variables("_s");
      for (size_t i = 0; i < registers.size(); ++i)
        out.line(registers[i].second + " = " + shared[i].second + "[" + slot + "];");
    }
    combine_warp(totals, warps);
  }

  // Butterflies over `width` neighbouring threads.
  void combine_warp(const std::vector<Accumulator*>& totals, int width) {
    body_.push_scope(CppBody::kNoLoop, "");
    for (Accumulator* total : totals) {
      const auto mine = total->total_variables("_t");
      const auto other = total->total_variables("_o");
      for (size_t i = 0; i < mine.size(); ++i)
        body_.out().line(other[i].first + " " + other[i].second + " = " + words_.shuffle + "(" +
                         mine[i].second + ", o);");
      total->merge(body_, "_t", "_o");
    }
    body_.pop_scope("for (i32 o = " + text(width / 2) + "; o > 0; o /= 2)");
  }

  // Threads of a group are `apart` from each other, and so are the slots of what they share.
  void combine_in_local_memory(const std::vector<Accumulator*>& totals, int apart) {
    IndentedBuffer& out = body_.out();
    const std::string step = apart == 1 ? "o" : "o * " + text(apart);
    const std::string own = "[" + words_.thread + "]";
    const auto each = [&](const auto& act) {
      for (Accumulator* total : totals) {
        const auto registers = total->total_variables("_t");
        const auto shared = total->total_variables("_s");
        for (size_t i = 0; i < registers.size(); ++i) act(registers[i], shared[i]);
      }
    };
    // Some may still read what the row before left: each reduction has memory of its own there.
    if (plan_.rows_of_block > 0) out.line(words_.barrier);
    each([&](const auto& r, const auto& s) { out.line(s.second + own + " = " + r.second + ";"); });
    out.line(words_.barrier);
    body_.push_scope(CppBody::kNoLoop, "");
    body_.push_scope(CppBody::kNoLoop, "");
    for (Accumulator* total : totals) {
      const auto other = total->total_variables("_o");
      const auto shared = total->total_variables("_s");
      for (size_t i = 0; i < other.size(); ++i)
        body_.out().line(other[i].first + " " + other[i].second + " = " + shared[i].second + "[" +
                         words_.thread + " + " + step + "];");
      total->merge(body_, "_t", "_o");
      const auto mine = total->total_variables("_t");
      for (size_t i = 0; i < mine.size(); ++i)
        body_.out().line(shared[i].second + own + " = " + mine[i].second + ";");
    }
    body_.pop_scope("if (member < o)");
    body_.out().line(words_.barrier);
    body_.pop_scope("for (i32 o = " + text(plan_.group / 2) + "; o > 0; o /= 2)");
    const std::string first =
        apart == 1 ? words_.thread + " - member" : words_.thread + " % " + text(apart);
    each([&](const auto& r, const auto& s) {
      out.line(r.second + " = " + s.second + "[" + first + "];");
    });
  }

  // ---- the whole ----

  // The finish's, where rows and columns are constant.
  Index finish_blocks() const {
    IndexContext& indices = program_.indices();
    if (plan_.rows_of_block > 0)
      return ceil_div(indices.constant(columns()), indices.constant(kFinishColumns));
    return has_few_parts() ? ceil_div(units_, indices.constant(finish_threads_)) : units_;
  }

  // One test of an address for each access of several elements would be as much code as the rest.
  std::string facts_of_pointers() {
    std::string facts;
    if (words_.aligned.empty()) return facts;
    const std::vector<BufferId>& buffers = arguments_.buffers();
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (!unaligned_[buffers[i].value])
        facts += "    " +
                 replace_all(words_.aligned, "POINTER", "p" + text(static_cast<int64_t>(i))) + "\n";
    }
    return facts;
  }

  SimtKernel assemble(const std::string& statements, const std::string& finish) {
    SimtKernel kernel;
    kernel.buffers = arguments_.buffers();
    kernel.symbols = arguments_.symbols();
    kernel.scratch_bytes = scratch_bytes_;
    const std::string name(kSimtKernelName);
    std::string of_host;
    std::string of_device;
    std::string addresses;
    const auto add = [&](const std::string& type, const std::string& parameter) {
      const std::string comma = addresses.empty() ? "" : ", ";
      of_host += comma + type + " " + parameter;
      of_device += comma + (type == "char*" ? words_.global : "") + type + " " + parameter;
      addresses += comma + "&" + parameter;
    };
    add("char*", "scratch");
    for (size_t i = 0; i < kernel.buffers.size(); ++i)
      add("char*", "p" + text(static_cast<int64_t>(i)));
    for (size_t i = 0; i < kernel.symbols.size(); ++i)
      add("i64", "n" + text(static_cast<int64_t>(i)));
    kernel.checks_values = arguments_.checks_values();
    kernel.fault = plan_.fault;
    kernel.tile = to_string(plan_);
    if (words_.status_in_arguments && kernel.checks_values)
      of_device += ", " + words_.global + "i32* status";
    const auto function = [&](const std::string& own, int threads, const std::string& body) {
      std::string text_ = replace_all(words_.kernel, "THREADS", text(threads));
      text_ = replace_all(text_, "NAME", own) + "(" + of_device + ") {\n";
      if (!words_.status_in_arguments && kernel.checks_values)
        text_ += "  i32 checked = 0;\n  i32* const status = &checked;\n";
      return text_ + facts_of_pointers() + body + "}\n";
    };
    kernel.device_text = function(name, plan_.threads(), statements);
    if (!finish.empty())
      kernel.device_text +=
          "\n" + function(name + std::string(kSimtFinish), finish_threads_, finish);

    const std::string per_block = text(units_of_block());
    IndentedBuffer h;
    h.open("static void " + name + "(const LitzHost* host, i32* status, " + of_host + ") {");
    h.line("const i64 total = " + total_ + ";");
    h.line("if (*status != 0 || total <= 0) return;");
    h.line("void* arguments[] = {" + addresses + "};");
    h.line("const i64 grid[3] = {(total + " + per_block + " - 1) / " + per_block + ", " +
           text(plan_.splits) + ", 1};");
    h.line("*status = host->launch(host->self, " + std::string(kSimtKernelNumber) + ", grid, " +
           text(plan_.threads()) + ", 0, arguments);");
    if (!finish.empty()) {
      h.line("const i64 finish_grid[3] = {" + body_.index(finish_blocks()) + ", 1, 1};");
      h.line("if (*status == 0) *status = host->launch(host->self, " +
             std::string(kSimtKernelNumber) + " + 1, finish_grid, " + text(finish_threads_) +
             ", 0, arguments);");
    }
    h.close();
    kernel.host_text = h.text();
    const Index blocks = ceil_div(units_, program_.indices().constant(units_of_block()));
    kernel.launches.push_back({blocks, plan_.splits, plan_.threads()});
    if (!finish.empty()) kernel.launches.push_back({finish_blocks(), 1, finish_threads_});
    return kernel;
  }

  const Program& program_;
  const Kernel& kernel_;
  const std::vector<bool>& unaligned_;
  const SimtWords& words_;
  Prelude& prelude_;
  KernelAnalysis analysis_;
  KernelArguments arguments_;
  CppBody body_;
  bool is_part_;  // one of several kernels (combined_launch.h)
  ThreadPlan plan_;
  static constexpr int kFewParts = 32;
  static constexpr int kFinishColumns = 32;
  static constexpr size_t kLoadsAhead = 4;
  static constexpr int kFewOperations = 8;
  int finish_threads_;    // of blocks that combine partial results
  std::string position_;  // the type of positions
  std::vector<size_t> outer_;
  std::vector<size_t> inner_;
  std::vector<Accumulator> accumulators_;  // of a thread: lanes wide
  std::vector<Accumulator> totals_;        // of the group: scalars
  RowRegisters row_;
  int64_t scratch_bytes_ = 0;
  int64_t local_bytes_ = 0;  // that a block shares, about
  // Groups; where there are no inner loops vectors, or squares.
  Index units_;
  std::string total_;
};

}  // namespace

std::optional<CombinedPart> print_simt_part(const Program& program, const Kernel& kernel,
                                            const std::vector<bool>& unaligned,
                                            const SimtDialect& dialect,
                                            const ThreadHeuristics& heuristics, Prelude& prelude) {
  KernelPrinter printer(program, kernel, unaligned, dialect, heuristics, prelude, true);
  std::optional<Kernel> online;
  if (printer.reads_rows_again()) online = with_online_sums(kernel, false);
  return online ? KernelPrinter(program, *online, unaligned, dialect, heuristics, prelude, true)
                      .print_part()
                : printer.print_part();
}

SimtKernel print_simt_kernel(const Program& program, const Kernel& kernel,
                             const std::vector<bool>& unaligned, const SimtDialect& dialect,
                             const ThreadHeuristics& heuristics, Prelude& prelude) {
  KernelPrinter printer(program, kernel, unaligned, dialect, heuristics, prelude);
  if (printer.reads_rows_again()) {
    if (const std::optional<Kernel> online = with_online_sums(kernel, false))
      return KernelPrinter(program, *online, unaligned, dialect, heuristics, prelude).print();
  }
  return printer.print();
}

std::vector<SimtKernel> print_simt_variants(const Program& program, const Kernel& kernel,
                                            const std::vector<bool>& unaligned,
                                            const SimtDialect& dialect,
                                            const ThreadHeuristics& heuristics,
                                            const SimtKernel& printed, Prelude& prelude) {
  KernelAnalysis analysis(kernel);
  std::vector<SimtKernel> variants;
  for (const ThreadHeuristics& other : other_heuristics(analysis, program, heuristics)) {
    SimtKernel variant = print_simt_kernel(program, kernel, unaligned, dialect, other, prelude);
    // A call passes them in this order.
    if (variant.buffers == printed.buffers && variant.symbols == printed.symbols)
      variants.push_back(std::move(variant));
  }
  return variants;
}

}  // namespace litz
