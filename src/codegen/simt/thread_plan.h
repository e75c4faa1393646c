// How the iterations of a kernel are shared out among the threads of a GPU.
//
// A group of threads works on one iteration of the outer loops (a row): its threads take turns in
// the inner loops and combine their accumulators. Where there are no inner loops, or little to do
// in them, a group is one thread. Groups lie side by side in blocks:
//   rows      the threads of a group are neighbours, since neighbours of the inner loops are
//             neighbours in memory
//   columns   neighbouring threads belong to neighbouring groups, since it is the outer loops'
//             neighbours that are neighbours in memory
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/common/kernel_analysis.h"
#include "schedule/schedule.h"

namespace litz {

struct ThreadPlan;

// A kernel as a backend sees it (litz/backend.h); -1 for what is known at run time alone.
struct ThreadShape {
  int64_t rows = -1;
  int64_t row_length = -1;
  int stages = 0;
  int reductions = 0;
};

// What a device wants, and what it can do; the values here are those of NVIDIA's GPUs. Counts of
// threads are powers of two.
struct ThreadHeuristics {
  int warp = 32;               // threads that run in step: what a short row gets
  int block = 256;             // threads of a block with small groups
  int most_group = 512;        // of one group
  int column_width = 32;       // groups side by side of a block that walks columns ...
  int most_column_group = 32;  // ... and threads of each
  int64_t thread_row = 16;     // inner iterations that one thread does alone
  int64_t warp_row = 1024;     // ... and one warp
  int64_t turns = 4;           // vectors that each thread of a large group takes
  int vector_bytes = 16;       // of memory in one access; 0: elements are accessed one by one
  int most_lanes = 8;          // elements in one access
  int64_t much_work = 32;      // operations of an element, of which a thread takes twice as many
  int64_t kept_elements = 32;  // of a row in each thread's registers
  int64_t few_blocks = 256;    // rows are split where they make fewer blocks
  int64_t many_blocks = 1024;  // ... into about so many
  int64_t long_row = 16384;    // ... and are longer than this
  bool local_memory = true;    // for loads that are turned in it
  int64_t sum_blocks = 264;    // that sum up columns while they go through rows, about
  int64_t sum_elements = 8;    // of each sum that a thread of those has
  // Changes group and groups of a plan; may be empty.
  std::function<void(const ThreadShape& shape, ThreadPlan& plan)> choose;
};

struct ThreadPlan {
  int group = 1;     // threads of a group, a power of two
  int groups = 256;  // groups of a block; group * groups is a multiple of 32
  bool columns = false;
  int lanes = 1;                  // consecutive elements that a thread takes at once
  size_t vector_loop = SIZE_MAX;  // the loop they are of, the last outer or the last inner one
  bool narrow = false;            // all positions and offsets fit 32 bits
  // Above 0, each thread of a group takes exactly so many turns in the only inner loop, few enough
  // that what the row is read from stays in registers from stage to stage.
  int turns = 0;
  // Of a kernel without inner loops: loads that jump along the last outer loop, and the one along
  // which all of them are contiguous. Where there are any, blocks are squares of the two loops, and
  // these loads go through shared memory.
  std::vector<Expr> turned_loads;
  size_t turned_loop = SIZE_MAX;
  // Above 1, so many groups share the inner loops of one row, each a stretch of the last but the
  // vector loop; a second kernel combines what they made.
  int splits = 1;
  // Above 0, a block goes through so many rows and sums up their columns, which stay in registers:
  // `turns` vectors for each thread. A second kernel adds up what the blocks made.
  int64_t rows_of_block = 0;
  std::string fault;  // what is wrong with a backend's choice, or empty

  int threads() const { return group * groups; }
  bool operator==(const ThreadPlan&) const = default;
};

inline constexpr int kTurnedEdge = 32;  // of those squares

// Rows that may have their columns summed up so.
ColumnSumLimits simt_column_sums();

ThreadPlan plan_threads(KernelAnalysis& analysis, const Program& program,
                        const ThreadHeuristics& heuristics);

// Heuristics for CUDA devices that give the kernel other plans of the same kind, one of which may
// be faster on some device: those that differ from its own in one step of one or two numbers.
std::vector<ThreadHeuristics> other_heuristics(KernelAnalysis& analysis, const Program& program,
                                               const ThreadHeuristics& heuristics);

// The same for kernels that run at once.
std::vector<ThreadHeuristics> other_heuristics_of_parts(const ThreadHeuristics& heuristics);

// "8 rows of 32 threads, 4 elements at once".
std::string to_string(const ThreadPlan& plan);

// The same with blocks of `heuristics.block` threads, as kernels that run at once have them.
ThreadPlan plan_threads_of_part(KernelAnalysis& analysis, const Program& program,
                                ThreadHeuristics heuristics);

}  // namespace litz
