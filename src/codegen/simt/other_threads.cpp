#include <algorithm>
#include <utility>

#include "codegen/common/iteration_space.h"
#include "codegen/simt/thread_plan.h"

namespace litz {
namespace {

constexpr size_t kMostVariants = 14;
constexpr int kMostThreads = 1024;  // that a block may have
constexpr int64_t kNever = int64_t{1} << 60;

int scaled(int value, int shift) {
  return shift >= 0 ? value << shift : std::max(1, value >> -shift);
}

class Others {
 public:
  Others(KernelAnalysis& analysis, const Program& program, const ThreadHeuristics& heuristics)
      : analysis_(analysis),
        program_(program),
        heuristics_(heuristics),
        plan_(plan_threads(analysis, program, heuristics)) {}

  const ThreadPlan& plan() const { return plan_; }

  template <class Change>
  void add(const Change& change) {
    if (found_.size() == kMostVariants) return;
    ThreadHeuristics other = heuristics_;
    change(other);
    ThreadPlan plan = plan_threads(analysis_, program_, other);
    // Threads of a row that share a warp with others would wait for those that are through.
    const bool is_part_of_warp = !plan.columns && plan.group > 1 && plan.group < heuristics_.warp;
    if (!plan.fault.empty() || is_part_of_warp || plan.threads() % heuristics_.warp != 0 ||
        plan.threads() > kMostThreads)
      return;
    if (plan == plan_ || std::find(plans_.begin(), plans_.end(), plan) != plans_.end()) return;
    plans_.push_back(std::move(plan));
    found_.push_back(std::move(other));
  }

  // So many times the threads of a group and the groups of a block, as powers of two.
  void add_scaled(int group, int groups) {
    add([&](ThreadHeuristics& h) {
      h.choose = [group, groups](const ThreadShape&, ThreadPlan& plan) {
        if (plan.group > 1) plan.group = scaled(plan.group, group);
        plan.groups = scaled(plan.groups, groups);
      };
    });
  }

  // Rows that more or fewer groups share, or none.
  void add_splits() {
    if (plan_.splits > 1) {
      add([](ThreadHeuristics& h) { h.many_blocks *= 2; });
      add([](ThreadHeuristics& h) { h.many_blocks /= 2; });
      add([](ThreadHeuristics& h) { h.long_row = kNever; });
    } else {
      add([](ThreadHeuristics& h) { h.long_row /= 4; });
    }
  }

  std::vector<ThreadHeuristics> take() { return std::move(found_); }

 private:
  KernelAnalysis& analysis_;
  const Program& program_;
  const ThreadHeuristics& heuristics_;
  const ThreadPlan plan_;
  std::vector<ThreadPlan> plans_;
  std::vector<ThreadHeuristics> found_;
};

void set_vector(ThreadHeuristics& h, int bytes) {
  h.most_lanes = std::max(h.most_lanes * bytes / std::max(h.vector_bytes, 1), 1);
  h.vector_bytes = bytes;
}

void add_for_elements(Others& others) {
  for (const int block : {128, 512, 1024, 64})
    others.add([&](ThreadHeuristics& h) { h.block = block; });
  for (const int bytes : {8, 32, 4}) {
    for (const int block : {256, 128, 512}) {
      if (bytes == 4 && block != 256) continue;
      others.add([&](ThreadHeuristics& h) {
        h.block = block;
        set_vector(h, bytes);
      });
    }
  }
}

void add_for_column_sums(Others& others) {
  for (const int64_t elements : {8, 4, 16}) {
    for (const int64_t twice : {2, 1, 4}) {
      others.add([&](ThreadHeuristics& h) {
        h.sum_elements = elements;
        h.most_group = elements == 4 ? 2 * h.most_group : h.most_group;
        h.sum_blocks = h.sum_blocks * twice / 2;
      });
    }
  }
  others.add([](ThreadHeuristics& h) { set_vector(h, 8); });
}

void add_for_columns(Others& others) {
  for (const auto& [group, groups] :
       {std::pair(1, 0), {-1, 0}, {0, 1}, {0, -1}, {1, -1}, {-1, 1}, {-2, 0}, {2, 0}})
    others.add_scaled(group, groups);
  others.add_splits();
}

void add_for_rows(Others& others) {
  for (const auto& [group, groups] :
       {std::pair(1, 0), {-1, 0}, {0, 1}, {0, -1}, {1, -1}, {-1, 1}, {2, 0}})
    others.add_scaled(group, groups);
  // A thread for each of short rows, or a warp.
  others.add([](ThreadHeuristics& h) { h.thread_row *= 4; });
  others.add([](ThreadHeuristics& h) { h.thread_row = 1; });
  // Rows that are kept in registers, or are not.
  others.add([](ThreadHeuristics& h) { h.kept_elements *= 2; });
  others.add([](ThreadHeuristics& h) { h.kept_elements = 0; });
  others.add([](ThreadHeuristics& h) { set_vector(h, 8); });
  others.add_splits();
}

}  // namespace

std::vector<ThreadHeuristics> other_heuristics(KernelAnalysis& analysis, const Program& program,
                                               const ThreadHeuristics& heuristics) {
  const Kernel& kernel = analysis.kernel();
  Others others(analysis, program, heuristics);
  if (kernel.inner.empty()) {
    add_for_elements(others);
  } else if (others.plan().rows_of_block > 0) {
    add_for_column_sums(others);
  } else if (others.plan().columns) {
    add_for_columns(others);
  } else {
    add_for_rows(others);
  }
  return others.take();
}

std::vector<ThreadHeuristics> other_heuristics_of_parts(const ThreadHeuristics& heuristics) {
  std::vector<ThreadHeuristics> others;
  for (const int bytes : {16, 8, 32}) {
    for (const int block : {256, 128, 512}) {
      if (bytes == heuristics.vector_bytes && block == heuristics.block) continue;
      others.push_back(heuristics);
      others.back().block = block;
      set_vector(others.back(), bytes);
    }
  }
  return others;
}

std::string to_string(const ThreadPlan& plan) {
  const auto count = [](int64_t n, const std::string& what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
  };
  std::string text = count(plan.threads(), "thread");
  if (plan.group > 1 && plan.groups > 1)
    text =
        count(plan.groups, plan.columns ? "column" : "row") + " of " + count(plan.group, "thread");
  if (!plan.turned_loads.empty()) return text + ", turned";
  if (plan.lanes > 1) text += ", " + count(plan.lanes, "element") + " at once";
  if (plan.turns > 0) text += ", " + count(plan.turns, "turn");
  if (plan.splits > 1) text += ", " + count(plan.splits, "part");
  if (plan.rows_of_block > 0) text += ", " + count(plan.rows_of_block, "row") + " a block";
  return text;
}

}  // namespace litz
