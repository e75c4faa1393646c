#include <algorithm>

#include "codegen/common/iteration_space.h"
#include "codegen/triton/tile_plan.h"

namespace litz {
namespace {

constexpr int kMostWarps = 32;
constexpr int64_t kMostElements = 16384;  // of a tile
constexpr int64_t kLeastElements = 128;
constexpr int kMostStages = 4;

int64_t elements(const TilePlan& plan) { return int64_t{plan.rows} * std::max(plan.columns, 1); }

int scaled(int value, int shift) {
  return shift >= 0 ? value << shift : std::max(1, value >> -shift);
}

class Variants {
 public:
  explicit Variants(const TilePlan& plan) : plan_(plan) {}

  template <class Change>
  void add(const Change& change) {
    TilePlan other = plan_;
    change(other);
    other.warps = std::clamp(other.warps, 1, kMostWarps);
    if (elements(other) > kMostElements || elements(other) < kLeastElements) return;
    if (elements(other) < int64_t{32} * other.warps) return;
    const bool known =
        other == plan_ || std::find(found_.begin(), found_.end(), other) != found_.end();
    if (!known) found_.push_back(other);
  }

  std::vector<TilePlan> take() { return std::move(found_); }

 private:
  const TilePlan& plan_;
  std::vector<TilePlan> found_;
};

bool has_scans(const Kernel& kernel) {
  return std::any_of(kernel.reductions.begin(), kernel.reductions.end(),
                     [](const KernelReduction& r) { return r.running; });
}

}  // namespace

std::vector<TilePlan> other_tiles(KernelAnalysis& analysis, const TilePlan& plan) {
  Variants variants(plan);
  for (const int warps : {1, -1})
    variants.add([&](TilePlan& p) { p.warps = scaled(p.warps, warps); });
  if (plan.rows_of_program > 0) {
    for (int stages = 1; stages <= kMostStages; ++stages)
      variants.add([&](TilePlan& p) { p.stages = stages; });
    for (const int warps : {0, 1, -1}) {
      variants.add([&](TilePlan& p) {
        p.rows_of_program *= 2;
        p.warps = scaled(p.warps, warps);
      });
      variants.add([&](TilePlan& p) {
        p.rows_of_program = std::max<int64_t>(p.rows_of_program / 2 / p.rows, 1) * p.rows;
        p.warps = scaled(p.warps, warps);
      });
    }
    return variants.take();
  }
  const bool is_square = plan.turned_loop != SIZE_MAX;
  if (analysis.kernel().inner.empty()) {
    for (const int rows : {1, -1, 2}) {
      for (const int warps : {0, rows > 0 ? 1 : -1}) {
        variants.add([&](TilePlan& p) {
          p.rows = scaled(p.rows, rows);
          p.warps = scaled(p.warps, warps);
        });
      }
    }
    if (is_square) {
      for (const int columns : {1, -1})
        variants.add([&](TilePlan& p) { p.columns = scaled(p.columns, columns); });
    }
    return variants.take();
  }
  // How rows are shared out among programs stays: partial results have their place.
  const int64_t row = inner_iterations(analysis);
  if (plan.splits == 1) {
    for (const int rows : {1, -1}) {
      for (const int warps : {0, rows}) {
        variants.add([&](TilePlan& p) {
          p.rows = scaled(p.rows, rows);
          p.warps = scaled(p.warps, warps);
        });
      }
    }
    if (plan.persistent && plan.rows == 1 && !has_scans(analysis.kernel())) {
      for (const int columns : {1024, 2048, 4096}) {
        if (columns > row) continue;
        for (const int elements_of_warp : {256, 512}) {
          variants.add([&](TilePlan& p) {
            p.persistent = false;
            p.columns = columns;
            p.warps = columns / elements_of_warp;
          });
        }
      }
    }
    if (!plan.persistent) {
      for (const int columns : {1, -1}) {
        for (const int warps : {0, columns}) {
          variants.add([&](TilePlan& p) {
            p.columns = std::min(scaled(p.columns, columns), power_of_two(row));
            p.warps = scaled(p.warps, warps);
          });
        }
      }
    }
  }
  return variants.take();
}

std::string to_string(const TilePlan& plan) {
  std::string text = std::to_string(plan.rows) + (plan.rows == 1 ? " row" : " rows");
  if (plan.columns > 0) text += " by " + std::to_string(plan.columns);
  if (plan.persistent) text += " at once";
  if (plan.splits > 1) text += ", " + std::to_string(plan.splits) + " parts";
  if (plan.rows_of_program > 0)
    text += ", " + std::to_string(plan.rows_of_program) + " rows a program";
  if (plan.stages > 1) text += ", " + std::to_string(plan.stages) + " stages";
  return text + ", " + std::to_string(plan.warps) + (plan.warps == 1 ? " warp" : " warps");
}

}  // namespace litz
