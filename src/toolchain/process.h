// Child processes with a deadline, a bounded log and a clean environment.
//
// A child is started without a shell, in its own process group, with stdin from /dev/null, stdout
// and stderr in one captured stream, no other descriptor of ours, default signal handling, and
// exactly the environment given. When its time is up the whole group is killed, so that what a
// compiler driver has started goes with it.
//
// A process counts as finished when its output stream is closed by everybody who holds it and the
// process itself has ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace litz {

using Deadline = std::chrono::steady_clock::time_point;

// The point `seconds` from now; far away where seconds is not positive or too large to matter.
Deadline deadline_after(double seconds);

struct Command {
  std::vector<std::string> argv;         // argv[0] is the path of the program
  std::vector<std::string> environment;  // "NAME=value"
  std::string directory;                 // working directory; empty for ours
};

enum class ProcessEnd : uint8_t {
  kExited,    // `exit_code` is set
  kSignaled,  // `signal` is set
  kTimedOut,  // killed by us
  kNotFound,  // there is no such program, or it may not be executed
  kNotStarted,
  kLost,  // somebody else in this process has taken the exit status
  kSkipped,
};

struct ProcessResult {
  ProcessEnd end = ProcessEnd::kSkipped;
  int exit_code = 0;
  int signal = 0;
  std::string output;  // the first kMaxProcessLog bytes, then a note about what was dropped
  double seconds = 0;

  bool succeeded() const { return end == ProcessEnd::kExited && exit_code == 0; }
};

inline constexpr size_t kMaxProcessLog = 64 * 1024;

// Runs the commands, at most `jobs` at a time, in order. After the first failure no further one is
// started; those running are awaited. Results are in the order of the commands.
std::vector<ProcessResult> run_processes(std::span<const Command> commands, int jobs,
                                         Deadline deadline);

ProcessResult run_process(const Command& command, Deadline deadline);

// How a process ended, in words that may follow the name of the program: "exited with code 1".
std::string describe_end(const ProcessResult& result);

}  // namespace litz
