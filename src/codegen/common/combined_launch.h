// One launch of several kernels of a KernelSet, in any language for GPUs.
//
// A dialect prints each kernel as the body of a function whose program (a block of threads) is
// number `pid` of that kernel's own. Where the text is the same but for buffers and the length of
// the outer loops, kernels share a function. The kernel that is launched finds out by its number
// for whom it works and calls that function with the member's buffers:
//
//   if pid < 8:
//       first = 0 if pid < 4 else 4
//       n = 4096 if pid < 4 else 1000
//       q0 = p0 if pid < 4 else p1
//       body0(pid - first, n, q0)
//   else:
//       body1(pid - 8, 64, p2, p3)
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/program.h"
#include "schedule/plan.h"

namespace litz {

// A kernel as a dialect prints it to be one of several.
struct CombinedPart {
  KernelId kernel;
  std::string body;      // of a function of pid, n, p0, p1, ...
  std::string identity;  // with the body: what else tells whether a function serves two kernels
  int64_t programs = 0;
  int64_t length = 0;             // n
  std::vector<BufferId> buffers;  // p0, p1, ...
  int threads = 0;                // those of a launch are all the same
  bool checks = false;
};

struct CombinedLaunch {
  struct Body {
    std::vector<CombinedPart> members;  // of one text, in order of their programs
    int64_t programs() const;
  };
  std::vector<Body> bodies;
  std::vector<BufferId> buffers;  // of all, each once

  int64_t programs() const;
  std::vector<KernelId> kernels() const;
  // The launched function's parameter for a buffer.
  size_t parameter(BufferId buffer) const;
};

// How a dialect prints the kernels of a plan.
struct LaunchPrinter {
  // A kernel by itself.
  std::function<void(KernelId)> print_one;
  // A kernel as one of several; nothing where it needs launches of its own.
  std::function<std::optional<CombinedPart>(KernelId)> print_part;
  // Those of a launch together.
  std::function<void(const CombinedLaunch&)> print_together;
};
// Prints all kernels, those of a KernelSet in as few launches as there can be, where `combines`.
void print_launches(const Plan& plan, bool combines, const LaunchPrinter& printer);

// The same kernels, printed in another way, as one launch; nothing where they need more or get
// their buffers in another order than `launched`, which says it of the first way.
std::optional<CombinedLaunch> combine_again(
    std::span<const KernelId> kernels, const std::vector<BufferId>& launched,
    const std::function<std::optional<CombinedPart>(KernelId)>& print_part);

// A kernel that came from what all of the launch came from, for its comment and its name.
Kernel origins_of(const Plan& plan, const CombinedLaunch& launch);

// The words of a language for the statements of the launched function.
struct ChoiceWords {
  std::string branch[2];  // around a condition: "if (", ") {"
  std::string otherwise;  // "} else {"
  std::string end;        // "}"; empty: none
  int step = 1;           // of indentation, in double spaces
  std::string end_of_statement;
  std::string choice[4];  // around a condition and two values: "(", " ? ", " : ", ")"
  std::string condition, integer, pointer;  // in front of the names of variables of these types
};

// The statements, indented by `level` double spaces: calls of the function of body i, whose name is
// the prefix and i.
std::string print_choice(const CombinedLaunch& launch, const ChoiceWords& words, int level,
                         const std::string& function_prefix);

}  // namespace litz
