#include "codegen/cpp/cpp_kernel.h"

#include <algorithm>

#include "codegen/cpp/cpp_accumulators.h"
#include "codegen/cpp/cpp_attention.h"
#include "codegen/cpp/cpp_body.h"
#include "codegen/cpp/cpp_function.h"
#include "codegen/cpp/cpp_product.h"
#include "codegen/cpp/cpp_window.h"
#include "codegen/cpp/kept_values.h"
#include "codegen/cpp/vector_plan.h"
#include "schedule/expr_cost.h"
#include "support/error.h"

namespace litz {
namespace {

constexpr int64_t kTileElements = 1024;   // of a vectorised outer loop with reductions
constexpr int64_t kPointwiseTile = 4096;  // of a vectorised outer loop without
constexpr int64_t kBlockElements = 4096;  // partial sums are added up after so many elements
constexpr int64_t kColumnBlock = 64;      // ... down a column: after so many
constexpr int64_t kColumnGroup = 64;      // and again after so many blocks
constexpr int64_t kLongColumn = 4096;     // worth a thread of its own
constexpr int64_t kColumnTasks = 8;
constexpr int64_t kSplitElements = 32 * 1024;  // a reduction is split among threads above this size
constexpr int64_t kSplitRows = 8;              // ... where there are no more rows than this
constexpr int kMaxChunks = 128;
constexpr int64_t kTransposeTile = 64;  // edge of the squares in which transposed reads are turned
constexpr int64_t kFewestTurned = 4;    // elements of a short row that is turned
constexpr int kUnrolledWork = 8;        // operations of a loop body that is worth unrolling
constexpr int kUnroll = 4;
constexpr int kLongWork = 24;               // ... that is too long to be printed again for the rest
constexpr int kChainWork = 60;              // ... that waits for its own results
constexpr int kChainsWork = 640;            // ... at most, of several such together
constexpr int kChainLoads = 4;              // ... at most, so that registers hold them
constexpr int kRowsTogether = 4;            // of a scan
constexpr int64_t kShortRow = 64;           // iterations of a loop that stays one without vectors
constexpr int64_t kTaskNanoseconds = 6000;  // least work worth handing to a thread

std::string text(int64_t value) { return std::to_string(value); }

class KernelPrinter {
 public:
  KernelPrinter(const Program& program, const Kernel& kernel, Prelude& prelude, int vector_bytes)
      : program_(program),
        kernel_(kernel),
        prelude_(prelude),
        analysis_(kernel),
        arguments_(program),
        body_(analysis_, prelude, arguments_),
        plan_(plan_vectors(analysis_, program, vector_bytes)),
        i64_(prelude.type(DType::kInt64, 1)) {
    prelude_.type(DType::kInt32, 1);
    prelude_.type(DType::kUInt8, 1);
    for (size_t i = 0; i < kernel.outer.size(); ++i) {
      if (!(plan_.outer && plan_.loop == i)) rows_.push_back(i);
    }
    for (size_t i = 0; i < kernel.inner.size(); ++i) {
      const size_t loop = kernel.outer.size() + i;
      if (loop != plan_.loop) inner_.push_back(loop);
    }
    for (uint32_t i = 0; i < kernel.reductions.size(); ++i) {
      accumulators_.emplace_back(kernel.reductions[i], i, plan_.lanes, prelude);
    }
    split_ = wants_split();
  }

  CppKernel print(int vector_bytes) {
    body_.push_scope(CppBody::kNoLoop, "");
    if (plan_transposes(vector_bytes)) {
      print_transposes();
    } else if (plan_.outer) {
      print_rows_and_tiles();
    } else if (split_) {
      print_chunks();
    } else if (has_short_rows()) {
      print_short_rows();
    } else {
      print_rows();
    }
    if (body_text_.empty()) body_text_ = body_.take_text();
    return assemble();
  }

 private:
  // ---- shape of the work ----

  Index extent(size_t loop) const { return analysis_.extent(loop); }

  Index count(const std::vector<size_t>& loops) const {
    return analysis_.count(program_.indices(), loops);
  }

  bool wants_split() const {
    if (plan_.outer || kernel_.inner.empty() || kernel_.num_stages != 1 || kernel_.sequential)
      return false;
    for (const KernelReduction& r : kernel_.reductions) {
      if (r.running) return false;
    }
    const Index rows = count(rows_);
    Index elements = count(inner_);
    if (plan_.loop != VectorPlan::kNone) elements = elements * extent(plan_.loop);
    return rows.is_constant() && rows.constant() <= kSplitRows && rows.constant() > 0 &&
           elements.range().lo >= kSplitElements;
  }

  int64_t tile() const {
    const bool pointwise = kernel_.reductions.empty();
    int64_t size = pointwise ? kPointwiseTile : kTileElements;
    const auto whole_vectors = [&](int64_t elements, int64_t unit) {
      return (elements + unit - 1) / unit * unit;
    };
    const Index e = extent(plan_.loop);
    if (e.is_constant()) {
      size = std::min(size, whole_vectors(e.constant(), plan_.lanes));
      // Long columns are shared out among threads even where there are few.
      const Index column = count(inner_);
      if (!pointwise && (!column.is_constant() || column.constant() >= kLongColumn))
        size =
            std::min(size, whole_vectors(e.constant() / kColumnTasks + 1, kUnroll * plan_.lanes));
    }
    return std::max<int64_t>(size, plan_.lanes);
  }

  // Nanoseconds of one element of the innermost loops, in 1/64.
  int64_t element_cost() {
    const LoopMask all = analysis_.outer_mask() | analysis_.inner_mask();
    KernelAnalysis::Work total;
    const auto add = [&](const std::vector<Expr>& roots) {
      const KernelAnalysis::Work work = analysis_.work(roots, all);
      total.operations += work.operations;
      total.bytes += work.bytes;
    };
    for (uint32_t stage = 0; stage < kernel_.num_stages; ++stage) add(analysis_.stage_roots(stage));
    if (kernel_.inner.empty()) add(analysis_.outer_roots());
    for (const KernelStore& store : kernel_.stores) {
      total.bytes += static_cast<int>(size_of(program_.buffer(store.buffer).dtype));
    }
    return std::max<int64_t>(1, total.operations * 20 / std::max(1, plan_.lanes) + total.bytes * 4);
  }

  // Text of the smallest number of items that are worth a thread, where one item has `elements`
  // elements.
  std::string grain(const std::string& elements) {
    const std::string wanted = text(kTaskNanoseconds * 64 / element_cost());
    return "1 + " + wanted + " / (" + elements + " + 1)";
  }

  // ---- rows ----

  // Declares the row loops' variables from the flat index `flat`.
  void decode_rows(const std::string& flat) {
    std::string rest = flat;
    for (size_t i = rows_.size(); i-- > 0;) {
      const size_t loop = rows_[i];
      const std::string name = "d" + text(static_cast<int64_t>(loop));
      const std::string e = body_.index(extent(loop));
      body_.out().line("const " + i64_ + " " + name + " = " + (i == 0 ? rest : rest + " % " + e) +
                       ";");
      if (i != 0) {
        const std::string next = body_.fresh("r");
        body_.out().line("const " + i64_ + " " + next + " = " + rest + " / " + e + ";");
        rest = next;
      }
    }
  }

  // Binds a loop to its usual name within the current block: a scope without text of its own.
  void bind(size_t loop) { body_.push_scope(loop, "d" + text(static_cast<int64_t>(loop))); }

  void pop_rows(const std::string& header) {
    for (size_t i = 0; i < rows_.size(); ++i) body_.pop_scope("");
    body_.pop_scope(header);
  }

  // One item is one row.
  void print_rows() {
    if (can_be_together()) print_rows_together();
    kept_ = plan_kept_values(analysis_, plan_);
    push_rows_with([&] {
      declare_kept_values();
      for (uint32_t stage = 0; stage < kernel_.num_stages; ++stage)
        print_stage(stage, "0", inner_end());
      body_.store_outer();
    });
    total_ = body_index(count(rows_));
    grain_ = grain(item_elements());
  }

  // Each element of a scan waits for the one before; those of other rows need not.
  bool can_be_together() const {
    const Index rows = count(rows_);
    return plan_.loop == VectorPlan::kNone && kernel_.num_stages == 1 && !kernel_.sequential &&
           !accumulators_.empty() && rows.is_constant() && rows.constant() >= kRowsTogether &&
           std::all_of(accumulators_.begin(), accumulators_.end(),
                       [](const Accumulator& a) { return a.reduction().running; }) &&
           std::all_of(kernel_.stores.begin(), kernel_.stores.end(),
                       [](const KernelStore& s) { return s.inner; });
  }

  // Of some rows one element after the other; the rows that are left follow one by one.
  void print_rows_together() {
    const auto of_row = [](int row) { return "_" + text(row); };
    body_.push_iteration_scope();
    for (int row = 0; row < kRowsTogether; ++row) {
      for (Accumulator& a : accumulators_) a.declare(body_.out(), of_row(row));
    }
    std::vector<std::string> headers;
    for (size_t loop : inner_) headers.push_back(open_inner_loop(loop));
    for (int row = 0; row < kRowsTogether; ++row) {
      body_.push_scope(CppBody::kNoLoop, "");
      decode_rows("(begin + " + text(row) + ")");
      for (size_t loop : rows_) bind(loop);
      print_element(0, of_row(row));
      pop_rows(std::string(CppBody::kBlock));
    }
    for (size_t i = headers.size(); i-- > 0;) body_.pop_scope(headers[i]);
    const std::string step = text(kRowsTogether);
    body_.pop_scope("for (; begin + " + step + " <= end; begin += " + step + ")");
  }

  // Without vectors an item would be one element, found by divisions; innermost loops save most of
  // these.
  bool has_short_rows() const {
    if (plan_.loop != VectorPlan::kNone || !kernel_.inner.empty() || rows_.size() < 2) return false;
    const Index last = extent(rows_.back());
    return last.is_constant() && last.constant() > 1 && last.constant() <= kShortRow;
  }

  void print_short_rows() {
    std::vector<size_t> loops = {rows_.back()};
    rows_.pop_back();
    while (rows_.size() > 1 && count(loops).is_constant() && extent(rows_.back()).is_constant() &&
           count(loops).constant() * extent(rows_.back()).constant() <= kPointwiseTile) {
      loops.insert(loops.begin(), rows_.back());
      rows_.pop_back();
    }
    push_rows_with([&] {
      std::vector<std::string> headers;
      for (size_t loop : loops) headers.push_back(open_inner_loop(loop));
      body_.store_outer();
      for (size_t i = headers.size(); i-- > 0;) body_.pop_scope(headers[i]);
    });
    total_ = body_index(count(rows_));
    grain_ = grain(body_index(count(loops)));
  }

  template <class Body>
  void push_rows_with(const Body& body) {
    body_.push_iteration_scope();
    decode_rows("it");
    for (size_t loop : rows_) bind(loop);
    body();
    pop_rows("for (" + i64_ + " it = begin; it < end; ++it)");
  }

  std::string body_index(Index index) { return body_.index(index); }

  std::string item_elements() {
    Index elements = count(inner_);
    if (plan_.loop != VectorPlan::kNone && !plan_.outer) elements = elements * extent(plan_.loop);
    return body_index(elements);
  }

  // The innermost loop's extent.
  std::string inner_end() {
    if (plan_.loop != VectorPlan::kNone && !plan_.outer) return body_index(extent(plan_.loop));
    return "1";
  }

  // Whether every stretch of a loop is a number of whole vectors. Stretches begin at multiples of
  // the lanes: tiles, blocks and chunks are made so.
  bool whole_vectors(size_t loop) const {
    const Index e = extent(loop);
    return e.is_constant() && e.constant() % plan_.lanes == 0;
  }

  // The vector loop from v to `end`, its body printed once for whole vectors and once for the rest.
  // A long body is printed once for both, which halves the time to compile it. `length` is that of
  // the loop, or below 0; `roots` are what the body computes.
  template <class Body>
  void print_vectors(const std::string& end, int64_t length, const std::vector<Expr>& roots,
                     const Body& body) {
    const std::string step = text(plan_.lanes);
    const bool has_whole = length < 0 || length >= plan_.lanes;
    const bool has_rest = length < 0 ? !whole_vectors(plan_.loop) : length % plan_.lanes != 0;
    const auto print = [&](const std::string& valid, const std::string& header) {
      body_.push_vector_scope(plan_.loop, "v", plan_.lanes, valid);
      body();
      body_.pop_scope(header);
    };
    if (has_whole && has_rest &&
        analysis_.work(roots, LoopMask{1} << plan_.loop).operations >= kLongWork) {
      const std::string valid = body_.fresh("valid");
      body_.push_scope(CppBody::kNoLoop, "");
      body_.out().line("const " + i64_ + " " + valid + " = " + end + " - v < " + step + " ? " +
                       end + " - v : " + step + ";");
      print(valid, "");
      body_.pop_scope("for (; v < " + end + "; v += " + step + ")");
      return;
    }
    if (has_whole) print("", "for (; v + " + step + " <= " + end + "; v += " + step + ")");
    if (has_rest) print("(" + end + " - v)", "if (v < " + end + ")");
  }

  // ---- stages where the vector loop is an inner loop, or there is none ----

  bool in_stage(const Accumulator& a, uint32_t stage) const { return a.reduction().stage == stage; }

  bool stage_has_reductions(uint32_t stage) const {
    return std::any_of(accumulators_.begin(), accumulators_.end(),
                       [&](const Accumulator& a) { return in_stage(a, stage); });
  }

  bool stage_is_empty(uint32_t stage) const {
    return !stage_has_reductions(stage) &&
           std::none_of(kernel_.stores.begin(), kernel_.stores.end(),
                        [&](const KernelStore& s) { return s.inner && s.stage == stage; });
  }

  // The inner loops of one stage, the vector loop from `from` to `to`; afterwards kReduced of its
  // reductions are scalars.
  void print_stage(uint32_t stage, const std::string& from, const std::string& to) {
    if (stage_is_empty(stage)) return;
    for (Accumulator& a : accumulators_) {
      if (in_stage(a, stage)) a.declare(body_.out(), "");
    }
    std::vector<std::string> headers;
    for (size_t loop : inner_) headers.push_back(open_inner_loop(loop));
    if (plan_.loop == VectorPlan::kNone) {
      print_element(stage, "");
    } else {
      print_vector_loop(stage, from, to);
    }
    for (size_t i = headers.size(); i-- > 0;) body_.pop_scope(headers[i]);
    for (Accumulator& a : accumulators_) {
      if (!in_stage(a, stage)) continue;
      if (a.reduction().running) continue;
      body_.define_reduced(a.number(), a.finish(body_), false);
    }
  }

  void declare_kept_values() {
    for (size_t i = 0; i < kept_.size(); ++i) {
      body_.out().line("alignas(64) " + prelude_.type(register_dtype(kept_[i].value.dtype()), 1) +
                       " kept" + text(static_cast<int64_t>(i)) + "[" + text(kept_[i].elements) +
                       "];");
    }
  }

  // Stores the values that this stage is the first to compute, and loads those of earlier ones.
  void print_kept_values(uint32_t stage) {
    for (size_t i = 0; i < kept_.size(); ++i) {
      const auto& [value, first, elements] = kept_[i];
      if (first > stage) continue;
      const DType dtype = register_dtype(value.dtype());
      const std::string at = "kept" + text(static_cast<int64_t>(i)) + " + " +
                             body_.index(analysis_.variable(plan_.loop));
      if (first == stage) {
        const std::string computed = body_.vector(value);
        body_.out().line(prelude_.store(dtype, plan_.lanes) + "(" + at + ", " + computed + ");");
      } else {
        body_.define_vector(value, prelude_.load(dtype, plan_.lanes) + "(" + at + ")");
      }
    }
  }

  // Element statements of a stage in the current scope; `suffix` names the accumulators.
  void print_element(uint32_t stage, const std::string& suffix) {
    print_kept_values(stage);
    for (Accumulator& a : accumulators_) {
      if (!in_stage(a, stage)) continue;
      a.accumulate(body_, suffix);
      if (a.reduction().running)
        body_.define_reduced(a.number(), a.name(suffix), body_.lanes() > 1);
    }
    body_.store_inner(stage);
  }

  bool has_inner_stores(uint32_t stage) const {
    return std::any_of(kernel_.stores.begin(), kernel_.stores.end(),
                       [&](const KernelStore& s) { return s.inner && s.stage == stage; });
  }

  void print_vector_loop(uint32_t stage, const std::string& from, const std::string& to) {
    const Index e = extent(plan_.loop);
    const bool reduces = stage_has_reductions(stage);
    const bool blocks = reduces && (!e.is_constant() || e.constant() > kBlockElements);
    // Partial results of one block are added to the row's: float sums stay accurate.
    const bool nested = reduces && (blocks || !inner_.empty());
    std::string begin = from;
    std::string end = to;
    if (nested) {
      body_.push_scope(CppBody::kNoLoop, "");
      begin = "b";
      end = "e";
      if (blocks) {
        body_.out().line("const " + i64_ + " e = b + " + text(kBlockElements) + " < " + to +
                         " ? b + " + text(kBlockElements) + " : " + to + ";");
      } else {
        begin = from;
        end = to;
      }
    }
    const int unroll =
        reduces && !has_inner_stores(stage) &&
                analysis_.work(analysis_.stage_roots(stage), analysis_.inner_mask()).operations <=
                    kUnrolledWork &&
                (!e.is_constant() || e.constant() >= 4 * kUnroll * plan_.lanes)
            ? kUnroll
            : 1;
    const std::string stem = nested ? "_b" : "";
    if (nested) {
      for (Accumulator& a : accumulators_) {
        if (in_stage(a, stage)) a.declare(body_.out(), stem);
      }
    }
    for (int u = 1; u < unroll; ++u) {
      for (Accumulator& a : accumulators_) {
        if (in_stage(a, stage)) a.declare(body_.out(), stem + "_" + text(u));
      }
    }
    body_.push_scope(CppBody::kNoLoop, "");
    body_.out().line(i64_ + " v = " + begin + ";");
    const bool known = !blocks && begin == "0" && e.is_constant();
    const int64_t length = known ? e.constant() : -1;
    if (unroll > 1) {
      body_.push_scope(CppBody::kNoLoop, "");
      for (int u = 0; u < unroll; ++u) {
        const std::string name = u == 0 ? "v" : "(v + " + text(u * plan_.lanes) + ")";
        body_.push_vector_scope(plan_.loop, name, plan_.lanes, "");
        print_element(stage, u == 0 ? stem : stem + "_" + text(u));
        body_.pop_scope("");
      }
      const std::string all = text(unroll * plan_.lanes);
      body_.pop_scope("for (; v + " + all + " <= " + end + "; v += " + all + ")");
      for (Accumulator& a : accumulators_) {
        if (!in_stage(a, stage)) continue;
        for (int u = 1; u < unroll; ++u) a.merge(body_, stem, stem + "_" + text(u));
      }
    }
    const int64_t rest = known && unroll > 1 ? length % (unroll * plan_.lanes) : length;
    if (rest != 0)
      print_vectors(end, rest, analysis_.stage_roots(stage), [&] { print_element(stage, stem); });
    body_.pop_scope(std::string(CppBody::kBlock));
    if (nested) {
      for (Accumulator& a : accumulators_) {
        if (in_stage(a, stage)) a.merge(body_, "", stem);
      }
      body_.pop_scope(blocks ? "for (" + i64_ + " b = " + from + "; b < " + to +
                                   "; b += " + text(kBlockElements) + ")"
                             : std::string(CppBody::kBlock));
    }
  }

  // ---- reductions split among threads ----

  // One item is a part of the first inner loop; every item makes partial results of all rows.
  void print_chunks() {
    const bool over_vector = inner_.empty();
    const size_t loop = over_vector ? plan_.loop : inner_[0];
    const std::string length = body_index(extent(loop));
    const std::string unit = text(over_vector ? plan_.lanes : 1);
    body_.push_scope(CppBody::kNoLoop, "");
    body_.out().line("const " + i64_ + " per = (" + length + " + chunks * " + unit +
                     " - 1) / (chunks * " + unit + ") * " + unit + ";");
    body_.out().line("const " + i64_ + " from = it * per < " + length + " ? it * per : " + length +
                     ";");
    body_.out().line("const " + i64_ + " to = from + per < " + length +
                     " ? from + per : " + length + ";");
    body_.push_iteration_scope();
    decode_rows("row");
    for (size_t r : rows_) bind(r);

    print_partial_stage(over_vector);
    for (size_t i = 0; i < rows_.size(); ++i) body_.pop_scope("");
    const std::string rows = body_index(count(rows_));
    body_.pop_scope("for (" + i64_ + " row = 0; row < " + rows + "; ++row)");
    body_.pop_scope("for (" + i64_ + " it = begin; it < end; ++it)");

    // Afterwards, in order: the rows' results and their stores.
    body_text_ = body_.take_text();
    body_.push_iteration_scope();
    decode_rows("row");
    for (size_t r : rows_) bind(r);
    for (Accumulator& a : accumulators_) {
      a.declare_scalar(body_.out(), "");
      body_.push_scope(CppBody::kNoLoop, "");
      a.merge_partial(body_, "[c * " + rows + " + row]");
      body_.pop_scope("for (" + i64_ + " c = 0; c < chunks; ++c)");
      body_.define_reduced(a.number(), a.finish_scalar(body_), false);
    }
    body_.store_outer();
    pop_rows_of_finish(rows);
    finish_text_ = body_.take_text();
    total_ = "chunks";
    grain_ = "1";
  }

  void pop_rows_of_finish(const std::string& rows) {
    for (size_t i = 0; i < rows_.size(); ++i) body_.pop_scope("");
    body_.pop_scope("for (" + i64_ + " row = 0; row < " + rows + "; ++row)");
  }

  void print_partial_stage(bool over_vector) {
    const std::string rows = body_index(count(rows_));
    for (Accumulator& a : accumulators_) a.declare(body_.out(), "");
    std::vector<std::string> headers;
    for (size_t i = 0; i < inner_.size(); ++i)
      headers.push_back(i == 0 ? open_inner_loop(inner_[i], "from", "to")
                               : open_inner_loop(inner_[i]));
    if (plan_.loop == VectorPlan::kNone) {
      print_element(0, "");
    } else {
      print_vector_loop(0, over_vector ? "from" : "0",
                        over_vector ? "to" : body_index(extent(plan_.loop)));
    }
    for (size_t i = headers.size(); i-- > 0;) body_.pop_scope(headers[i]);
    for (Accumulator& a : accumulators_) a.store_partial(body_, "[it * " + rows + " + row]");
  }

  // ---- the vector loop is an outer loop ----

  void print_rows_and_tiles() {
    const int64_t size = tile();
    const std::string length = body_index(extent(plan_.loop));
    const Index e = extent(plan_.loop);
    const bool one_tile = e.is_constant() && e.constant() <= size;
    const std::string tiles =
        one_tile ? "1" : "((" + length + " + " + text(size - 1) + ") / " + text(size) + ")";
    body_.push_iteration_scope();
    if (one_tile) {
      body_.out().line("const " + i64_ + " from = 0;");
      body_.out().line("const " + i64_ + " to = " + length + ";");
    } else {
      body_.out().line("const " + i64_ + " from = it % " + tiles + " * " + text(size) + ";");
      body_.out().line("const " + i64_ + " to = from + " + text(size) + " < " + length +
                       " ? from + " + text(size) + " : " + length + ";");
    }
    decode_rows(one_tile ? "it" : "(it / " + tiles + ")");
    for (size_t loop : rows_) bind(loop);
    for (Accumulator& a : accumulators_) a.declare_array(body_.out(), size);
    for (uint32_t stage = 0; stage < kernel_.num_stages; ++stage) print_tile_stage(stage, one_tile);
    if (std::any_of(kernel_.stores.begin(), kernel_.stores.end(),
                    [](const KernelStore& s) { return !s.inner; })) {
      body_.push_scope(CppBody::kNoLoop, "");
      body_.out().line(i64_ + " v = from;");
      print_chains();
      print_vectors("to", one_tile && e.is_constant() ? e.constant() : -1, analysis_.outer_roots(),
                    [&] { body_.store_outer(); });
      body_.pop_scope(std::string(CppBody::kBlock));
    }
    pop_rows("for (" + i64_ + " it = begin; it < end; ++it)");
    total_ = body_index(count(rows_)) + (one_tile ? "" : " * " + tiles);
    Index per_item = count(inner_);
    grain_ = grain(body_index(per_item * program_.indices().constant(size)));
  }

  // A processor looks some hundred instructions ahead. Where one vector's operations, of which each
  // waits for the last, are that many, those of several vectors take turns.
  void print_chains() {
    const std::vector<Expr> roots = analysis_.outer_roots();
    const LoopMask along = LoopMask{1} << plan_.loop;
    const int work = analysis_.work(roots, along).operations;
    int64_t loads = 0;
    visit_postorder(roots, [&](Expr e) { loads += e.op() == ExprOp::kLoad ? 1 : 0; });
    const int chains = std::min(kUnroll, kChainsWork / std::max(1, work));
    if (!kernel_.reductions.empty() || kernel_.sequential || work < kChainWork ||
        loads > kChainLoads || chains < 2)
      return;
    const std::string all = text(chains * plan_.lanes);
    body_.push_scope(CppBody::kNoLoop, "");
    std::vector<IndentedBuffer> texts;
    for (int u = 0; u < chains; ++u) {
      body_.push_vector_scope(plan_.loop, u == 0 ? "v" : "(v + " + text(u * plan_.lanes) + ")",
                              plan_.lanes, "");
      body_.store_outer();
      texts.push_back(body_.take_scope());
    }
    body_.out().append_interleaved(texts);
    body_.pop_scope("for (; v + " + all + " <= to; v += " + all + ")");
  }

  void print_tile_stage(uint32_t stage, bool one_tile) {
    if (stage_is_empty(stage)) return;
    const bool running = std::any_of(accumulators_.begin(), accumulators_.end(), [&](auto& a) {
      return in_stage(a, stage) && a.reduction().running;
    });
    if (stage_has_reductions(stage) && !running && !inner_.empty()) {
      print_columns(stage, one_tile);
    } else {
      print_tile_rows(stage, one_tile);
    }
    for (Accumulator& a : accumulators_) {
      if (in_stage(a, stage) && !a.reduction().running)
        body_.set_accumulator_array(a.number(), a.total_name(""), plan_.loop, "from");
    }
  }

  // Row by row of the inner loops: each row's vectors are combined with the arrays.
  void print_tile_rows(uint32_t stage, bool one_tile) {
    for (Accumulator& a : accumulators_) {
      if (in_stage(a, stage)) a.fill_array(body_.out());
    }
    std::vector<std::string> headers;
    for (size_t loop : inner_) headers.push_back(open_inner_loop(loop));
    print_tile_loop(one_tile, analysis_.stage_roots(stage), [&] {
      for (Accumulator& a : accumulators_) {
        if (!in_stage(a, stage)) continue;
        const std::string updated = a.accumulate_in_array(body_, "v - from");
        if (!a.reduction().running) continue;
        body_.define_reduced(a.number(), updated, true);
        body_.set_accumulator_array(a.number(), a.total_name(""), plan_.loop, "from");
      }
      body_.store_inner(stage);
    });
    for (size_t i = headers.size(); i-- > 0;) body_.pop_scope(headers[i]);
  }

  // Column by column: a few vectors go down a block of the inner loops in registers, whose results
  // are then combined with the arrays. Float sums stay accurate, since no accumulator takes more
  // terms than a block has, or blocks a group, or groups the column.
  void print_columns(uint32_t stage, bool one_tile) {
    const ColumnBlocks blocks = plan_columns();
    const auto for_all = [&](const auto& act) {
      for (Accumulator& a : accumulators_) {
        if (in_stage(a, stage)) act(a);
      }
    };
    const std::string into = blocks.grouped ? "_g" : "";
    if (blocks.grouped)
      for_all([&](Accumulator& a) { a.declare_array(body_.out(), tile(), into); });
    if (!blocks.all_at_once) for_all([&](Accumulator& a) { a.fill_array(body_.out()); });
    std::vector<std::string> around;
    for (size_t i = 0; i < blocks.first; ++i) around.push_back(open_inner_loop(inner_[i]));
    const std::string length = body_index(extent(inner_[blocks.first]));
    const auto open_blocks = [&](const std::string& begin, const std::string& end,
                                 const std::string& from, const std::string& to, int64_t size) {
      body_.push_scope(CppBody::kNoLoop, "");
      const std::string next = begin + " + " + text(size);
      body_.out().line("const " + i64_ + " " + end + " = " + next + " < " + to + " ? " + next +
                       " : " + to + ";");
      return "for (" + i64_ + " " + begin + " = " + from + "; " + begin + " < " + to + "; " +
             begin + " += " + text(size) + ")";
    };
    std::string group_header;
    if (blocks.grouped) {
      group_header = open_blocks("g", "h", "0", length, blocks.size * kColumnGroup);
      for_all([&](Accumulator& a) { a.fill_array(body_.out(), into); });
    }
    std::string block_header;
    if (blocks.size != 0)
      block_header = open_blocks("b", "e", blocks.grouped ? "g" : "0",
                                 blocks.grouped ? "h" : length, blocks.size);
    const auto print = [&](int vectors, const std::string& valid) {
      const auto suffix = [](int u) { return "_" + text(u); };
      for (int u = 0; u < vectors; ++u) {
        for_all([&](Accumulator& a) { a.declare(body_.out(), suffix(u)); });
      }
      std::vector<std::string> headers;
      for (size_t i = blocks.first; i < inner_.size(); ++i) {
        const bool blocked = i == blocks.first && blocks.size != 0;
        headers.push_back(
            open_inner_loop(inner_[i], blocked ? "b" : "0", blocked ? "e" : std::string()));
      }
      for (int u = 0; u < vectors; ++u) {
        const std::string name = u == 0 ? "v" : "(v + " + text(u * plan_.lanes) + ")";
        body_.push_vector_scope(plan_.loop, name, plan_.lanes, valid);
        print_element(stage, suffix(u));
        body_.pop_scope("");
      }
      for (size_t i = headers.size(); i-- > 0;) body_.pop_scope(headers[i]);
      for (int u = 0; u < vectors; ++u) {
        const std::string at = "v - from" + (u == 0 ? "" : " + " + text(u * plan_.lanes));
        for_all([&](Accumulator& a) {
          if (blocks.all_at_once) {
            a.store_in_array(body_, at, suffix(u));
          } else {
            a.merge_into_array(body_, at, suffix(u), into);
          }
        });
      }
    };
    print_column_loop(one_tile, column_vectors(stage), print);
    if (blocks.size != 0) body_.pop_scope(block_header);
    if (blocks.grouped) {
      for_all([&](Accumulator& a) { a.merge_arrays(body_, into); });
      body_.pop_scope(group_header);
    }
    for (size_t i = around.size(); i-- > 0;) body_.pop_scope(around[i]);
  }

  // print(vectors, valid) prints the body for so many whole vectors, or for the valid lanes of one.
  template <class Print>
  void print_column_loop(bool one_tile, int vectors, const Print& print) {
    const Index e = extent(plan_.loop);
    const int64_t length = one_tile && e.is_constant() ? e.constant() : -1;
    body_.push_scope(CppBody::kNoLoop, "");
    body_.out().line(i64_ + " v = from;");
    const auto whole = [&](int count) {
      const std::string step = text(count * plan_.lanes);
      body_.push_scope(CppBody::kNoLoop, "");
      print(count, "");
      body_.pop_scope("for (; v + " + step + " <= to; v += " + step + ")");
    };
    int64_t rest = length;  // -1: not known
    for (int count = vectors; count > 0; count = count > 1 ? 1 : 0) {
      if (rest < 0 || rest >= count * plan_.lanes) whole(count);
      if (rest > 0) rest %= count * plan_.lanes;
    }
    if (rest < 0 ? !whole_vectors(plan_.loop) : rest != 0) {
      body_.push_scope(CppBody::kNoLoop, "");
      print(1, "(to - v)");
      body_.pop_scope("if (v < to)");
    }
    body_.pop_scope(std::string(CppBody::kBlock));
  }

  struct ColumnBlocks {
    size_t first = 0;      // inner loops from here on run inside the column
    int64_t size = 0;      // ... the first of them in blocks of so many iterations; 0: in one
    bool grouped = false;  // ... and the blocks in groups
    bool all_at_once = false;
  };

  ColumnBlocks plan_columns() const {
    ColumnBlocks plan;
    plan.first = inner_.size();
    int64_t iterations = 1;  // of the loops after the first
    while (plan.first > 0 && iterations < kColumnBlock) {
      const Index e = extent(inner_[--plan.first]);
      const int64_t block = std::max<int64_t>(1, kColumnBlock / iterations);
      if (!e.is_constant() || e.constant() > block + block / 2) {
        plan.size = block;
        plan.grouped = !e.is_constant() || e.constant() > 2 * block * kColumnGroup;
        break;
      }
      iterations *= std::max<int64_t>(1, e.constant());
    }
    plan.all_at_once = plan.first == 0 && plan.size == 0;
    return plan;
  }

  // How many vectors side by side go down a column.
  int column_vectors(uint32_t stage) {
    if (has_inner_stores(stage)) return 1;
    const std::vector<Expr> roots = analysis_.stage_roots(stage);
    if (roots.size() > 2 ||
        analysis_.work(roots, analysis_.inner_mask() | analysis_.outer_mask()).operations >
            kUnrolledWork)
      return 1;
    return kUnroll;
  }

  // Opens the scope of an inner loop; returns its header.
  std::string open_inner_loop(size_t loop, const std::string& from = "0", std::string to = {}) {
    if (to.empty()) to = body_index(extent(loop));
    const std::string name = "d" + text(static_cast<int64_t>(loop));
    body_.push_scope(loop, name);
    return "for (" + i64_ + " " + name + " = " + from + "; " + name + " < " + to + "; ++" + name +
           ")";
  }

  template <class Body>
  void print_tile_loop(bool one_tile, const std::vector<Expr>& roots, const Body& body) {
    const Index e = extent(plan_.loop);
    body_.push_scope(CppBody::kNoLoop, "");
    body_.out().line(i64_ + " v = from;");
    print_vectors("to", one_tile && e.is_constant() ? e.constant() : -1, roots, body);
    body_.pop_scope(std::string(CppBody::kBlock));
  }

  // ---- transposed reads ----

  // Loads that are contiguous along another outer loop than the vector loop, all the same one, so
  // that square tiles of them can be turned in registers. False where there are none, or where it
  // cannot be done.
  bool plan_transposes(int vector_bytes) {
    if (!plan_.outer || !kernel_.inner.empty() || !kernel_.reductions.empty() || kernel_.sequential)
      return false;
    size_t along = VectorPlan::kNone;
    bool possible = true;
    std::vector<Expr> loads;
    visit_postorder(analysis_.outer_roots(), [&](Expr e) {
      // Loads under a condition must not happen ahead of it.
      if (e.op() == ExprOp::kMasked) possible = false;
      if (e.op() != ExprOp::kLoad || !e.operands().empty()) return;
      if ((analysis_.depends(e) >> plan_.loop & 1) == 0) return;
      const Index offset = e.coordinates()[0];
      if (analysis_.walk(offset, plan_.loop) == KernelAnalysis::Walk::kContiguous) return;
      const int64_t bytes = size_of(register_dtype(e.dtype()));
      if (bytes < 4 || bytes * plan_.lanes != vector_bytes) return;
      for (size_t loop : rows_) {
        if (analysis_.walk(offset, loop) != KernelAnalysis::Walk::kContiguous) continue;
        if (along != VectorPlan::kNone && along != loop) possible = false;
        along = loop;
        loads.push_back(e);
        return;
      }
    });
    if (!possible || loads.empty()) return false;
    const auto long_enough = [&](size_t loop) {
      return !extent(loop).is_constant() || extent(loop).constant() >= plan_.lanes;
    };
    if (!long_enough(plan_.loop)) return false;
    size_t around = VectorPlan::kNone;
    if (!long_enough(along)) {
      around = loop_around(along, loads);
      if (around == VectorPlan::kNone && extent(along).constant() < kFewestTurned) return false;
    }
    transposed_ = std::move(loads);
    along_ = along;
    around_ = around;
    std::erase_if(rows_, [&](size_t loop) { return loop == along || loop == around; });
    return true;
  }

  // The loop whose iterations continue a short one in the memory of all these loads, such as the
  // channels of a weight around its taps.
  size_t loop_around(size_t along, const std::vector<Expr>& loads) const {
    const Index e = extent(along);
    for (size_t loop : rows_) {
      if (loop == along || !extent(loop).is_constant() ||
          extent(loop).constant() * e.constant() < plan_.lanes)
        continue;
      if (std::all_of(loads.begin(), loads.end(), [&](Expr load) {
            const auto linear = linear_in(load.coordinates()[0], analysis_.variable(loop));
            return linear && linear->stride == e;
          }))
        return loop;
    }
    return VectorPlan::kNone;
  }

  // Iterations of the loop that transposed loads are contiguous along, with the one around it.
  Index extent_along() const {
    return around_ == VectorPlan::kNone ? extent(along_) : extent(along_) * extent(around_);
  }

  // Binds them to an iteration of both; close_along() is its end.
  void open_along(const std::string& name) {
    if (around_ == VectorPlan::kNone) {
      body_.push_scope(along_, name);
      return;
    }
    const std::string e = body_index(extent(along_));
    const std::string of_both = body_.fresh("r");
    const std::string outer = body_.fresh("r");
    body_.push_scope(CppBody::kNoLoop, "");
    body_.out().line("const " + i64_ + " " + of_both + " = " + name + ";");
    body_.out().line("const " + i64_ + " " + outer + " = " + of_both + " / " + e + ";");
    body_.push_scope(around_, outer);
    body_.push_scope(along_, "(" + of_both + " - " + outer + " * " + e + ")");
  }
  void close_along(const std::string& header) {
    if (around_ == VectorPlan::kNone) {
      body_.pop_scope(header);
      return;
    }
    body_.pop_scope("");
    body_.pop_scope("");
    body_.pop_scope(header);
  }

  // One item is a rectangle of kTransposeTile by kTransposeTile iterations of the two loops, for
  // one iteration of the others.
  void print_transposes() {
    const std::string size = text(kTransposeTile);
    const std::string lanes = text(plan_.lanes);
    const std::string width = body_index(extent(plan_.loop));
    const std::string height = body_index(extent_along());
    const std::string across =
        "((" + width + " + " + text(kTransposeTile - 1) + ") / " + size + ")";
    const std::string down = "((" + height + " + " + text(kTransposeTile - 1) + ") / " + size + ")";
    body_.push_iteration_scope();
    body_.out().line("const " + i64_ + " from = it % " + across + " * " + size + ";");
    body_.out().line("const " + i64_ + " to = from + " + size + " < " + width + " ? from + " +
                     size + " : " + width + ";");
    body_.out().line("const " + i64_ + " top = it / " + across + " % " + down + " * " + size + ";");
    body_.out().line("const " + i64_ + " bottom = top + " + size + " < " + height + " ? top + " +
                     size + " : " + height + ";");
    decode_rows("(it / (" + across + " * " + down + "))");
    for (size_t loop : rows_) bind(loop);
    body_.out().line(i64_ + " u = top;");

    // A row that is shorter than a vector is one tile's.
    const Index both = extent_along();
    const bool is_short = both.is_constant() && both.constant() < plan_.lanes;
    body_.push_scope(CppBody::kNoLoop, "");
    body_.out().line(i64_ + " v = from;");
    body_.push_scope(CppBody::kNoLoop, "");
    print_turned_tile(is_short ? text(both.constant()) : "");
    body_.pop_scope("for (; v + " + lanes + " <= to; v += " + lanes + ")");
    if (!whole_vectors(plan_.loop)) {
      open_along("w");
      print_vector_body("(to - v)");
      close_along("for (" + i64_ + " w = u; v < to && w < " +
                  (is_short ? "bottom" : "u + " + lanes) + "; ++w)");
    }
    body_.pop_scope(is_short ? std::string(CppBody::kBlock)
                             : "for (; u + " + lanes + " <= bottom; u += " + lanes + ")");

    if (!is_short && !(both.is_constant() && both.constant() % plan_.lanes == 0)) {
      open_along("u");
      print_tile_loop(false, analysis_.outer_roots(), [&] { body_.store_outer(); });
      close_along("for (; u < bottom; ++u)");
    }
    pop_rows("for (" + i64_ + " it = begin; it < end; ++it)");
    total_ = body_index(count(rows_)) + " * " + across + " * " + down;
    grain_ = grain(text(kTransposeTile * kTransposeTile));
  }

  // `valid` is how many elements a row has, or empty if they are whole vectors.
  void print_turned_tile(const std::string& valid) {
    const std::string lanes = text(plan_.lanes);
    std::vector<std::string> tiles;
    for (Expr load : transposed_) {
      const DType dtype = register_dtype(load.dtype());
      const std::string tile = body_.fresh("tile");
      tiles.push_back(tile);
      body_.out().line(prelude_.type(dtype, plan_.lanes) + " " + tile + "[" + lanes + "];");
      open_along("u");
      body_.push_scope(plan_.loop, "(v + j)");
      const std::string loaded = body_.load_along(load, plan_.lanes, valid);
      body_.pop_scope("");
      close_along("");
      body_.out().line("for (int j = 0; j < " + lanes + "; ++j) " + tile + "[j] = " + loaded + ";");
      body_.out().line(prelude_.transpose(dtype, plan_.lanes) + "(" + tile + ");");
    }
    open_along("(u + i)");
    body_.push_vector_scope(plan_.loop, "v", plan_.lanes, "");
    for (size_t k = 0; k < tiles.size(); ++k) body_.define_vector(transposed_[k], tiles[k] + "[i]");
    body_.store_outer();
    body_.pop_scope("");
    close_along("for (int i = 0; i < " + (valid.empty() ? lanes : valid) + "; ++i)");
  }

  void print_vector_body(const std::string& valid) {
    body_.push_vector_scope(plan_.loop, "v", plan_.lanes, valid);
    body_.store_outer();
    body_.pop_scope("");
  }

  // ---- the whole function ----

  CppKernel assemble() {
    CppFunction function;
    function.total = total_;
    function.grain = grain_;
    function.body = body_text_;
    function.sequential = kernel_.sequential;
    if (split_) {
      function.members.push_back("i64 chunks");
      function.unpacks.push_back("const i64 chunks = s->chunks");
      function.starts = {"i64 chunks = host->num_threads(host->self)",
                         "if (chunks > " + text(kMaxChunks) + ") chunks = " + text(kMaxChunks),
                         "state.chunks = chunks"};
      for (Accumulator& a : accumulators_) {
        for (const std::string& member : a.partial_members()) function.members.push_back(member);
        for (const std::string& unpack : a.partial_unpacks()) function.unpacks.push_back(unpack);
        for (const auto& [declaration, assignment] :
             a.partial_arrays(text(kMaxChunks) + " * " + out_rows())) {
          function.starts.push_back(declaration);
          function.starts.push_back("state." + assignment);
        }
      }
      function.finish = finish_text_;
    }
    return print_cpp_function(arguments_, function);
  }

  std::string out_rows() const { return text(count(rows_).constant()); }

  const Program& program_;
  const Kernel& kernel_;
  Prelude& prelude_;
  KernelAnalysis analysis_;
  KernelArguments arguments_;
  CppBody body_;
  VectorPlan plan_;
  std::string i64_;
  std::vector<size_t> rows_;
  std::vector<size_t> inner_;
  std::vector<Accumulator> accumulators_;
  std::vector<KeptValue> kept_;
  std::vector<Expr> transposed_;       // loads that are turned in registers
  size_t along_ = VectorPlan::kNone;   // the loop they are contiguous along
  size_t around_ = VectorPlan::kNone;  // the loop that continues it, if it is short
  bool split_ = false;
  std::string total_;
  std::string grain_;
  std::string body_text_;
  std::string finish_text_;
};

}  // namespace

CppKernel print_cpp_kernel(const Program& program, const Kernel& kernel, Prelude& prelude,
                           const PreludeTarget& target) {
  if (kernel.attention) return print_cpp_attention(program, kernel, prelude, target);
  if (const std::optional<MatrixProduct> product = cpp_product(kernel, target))
    return print_cpp_product(program, kernel, *product, prelude, target);
  if (const std::optional<WindowSum> sum = cpp_window(kernel, target))
    return print_cpp_window(program, kernel, *sum, prelude, target);
  return KernelPrinter(program, kernel, prelude, target.vector_bytes).print(target.vector_bytes);
}

}  // namespace litz
