#include "toolchain/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "support/file.h"

namespace litz {
namespace {

using Clock = std::chrono::steady_clock;

// posix_spawn's two parameter objects, released on every path.
class SpawnSettings {
 public:
  SpawnSettings() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  // Returns 0 or an errno.
  int configure(const Command& command, int output_fd) {
    int error = posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions_, output_fd, STDOUT_FILENO);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions_, output_fd, STDERR_FILENO);
    if (!error) error = posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
    if (!error && !command.directory.empty()) {
      error = posix_spawn_file_actions_addchdir_np(&actions_, command.directory.c_str());
    }
    if (error) return error;

    // A host such as Python ignores SIGPIPE and may block signals; a compiler expects neither.
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    return posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

std::vector<char*> to_char_pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// One child, from its start to the moment its status is known.
class Child {
 public:
  explicit Child(size_t index) : index_(index), start_(Clock::now()) {}

  // False where the child could not be started; the result says why.
  bool start(const Command& command) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return not_started(command, errno);
    output_ = UniqueFd(ends[0]);
    UniqueFd write_end(ends[1]);
    // One poll covers all children, so a read may find nothing.
    ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);

    SpawnSettings settings;
    int error = settings.configure(command, write_end.get());
    if (error) return not_started(command, error);
    std::vector<char*> argv = to_char_pointers(command.argv);
    std::vector<char*> environment = to_char_pointers(command.environment);
    error = ::posix_spawn(&pid_, argv[0], settings.actions(), settings.attributes(), argv.data(),
                          environment.data());
    if (error) return not_started(command, error);
    return true;
  }

  // Takes some of the output that is there: a bounded amount, so that a child that never stops
  // writing cannot hold us. True once the stream is closed.
  bool drain() {
    char buffer[64 * 1024];
    ssize_t count = ::read(output_.get(), buffer, sizeof buffer);
    if (count > 0) {
      auto size = static_cast<size_t>(count);
      size_t kept = std::min(size, kMaxProcessLog - result_.output.size());
      result_.output.append(buffer, kept);
      dropped_ += size - kept;
      return false;
    }
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return false;
    output_.reset();
    return true;
  }

  // True once the exit status is known. Does not wait.
  bool reap() {
    int status = 0;
    pid_t reaped;
    do {
      reaped = ::waitpid(pid_, &status, WNOHANG);
    } while (reaped < 0 && errno == EINTR);
    if (reaped == 0) return false;
    if (reaped < 0) {
      result_.end = ProcessEnd::kLost;
    } else if (WIFSIGNALED(status)) {
      result_.end = ProcessEnd::kSignaled;
      result_.signal = WTERMSIG(status);
    } else {
      result_.end = ProcessEnd::kExited;
      result_.exit_code = WEXITSTATUS(status);
    }
    return true;
  }

  // Kills the group and takes the status; nobody else can keep us waiting after that.
  void kill() {
    ::kill(-pid_, SIGKILL);
    if (output_) drain();
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    result_.end = ProcessEnd::kTimedOut;
  }

  ProcessResult finish() {
    result_.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    if (dropped_ > 0) {
      result_.output += "\n[" + std::to_string(dropped_) + " more bytes of output dropped]\n";
    }
    return std::move(result_);
  }

  size_t index() const { return index_; }
  int output_fd() const { return output_.get(); }
  bool output_open() const { return static_cast<bool>(output_); }

 private:
  bool not_started(const Command& command, int error) {
    bool missing = error == ENOENT || error == EACCES || error == ENOEXEC || error == ENOTDIR;
    result_.end = missing ? ProcessEnd::kNotFound : ProcessEnd::kNotStarted;
    result_.output = "cannot start " + command.argv[0] + ": " + errno_text(error) + "\n";
    return false;
  }

  size_t index_;
  Deadline start_;
  pid_t pid_ = -1;
  UniqueFd output_;
  size_t dropped_ = 0;
  ProcessResult result_;
};

// Waits until a child has output or `until` has come. Children whose stream is closed are about to
// end, which no descriptor announces: for them the wait is short.
void wait_for_output(const std::vector<Child>& children, Deadline until) {
  std::vector<pollfd> fds;
  bool ending = false;
  for (const Child& child : children) {
    if (child.output_open()) {
      fds.push_back({child.output_fd(), POLLIN, 0});
    } else {
      ending = true;
    }
  }
  constexpr auto kEndingPause = std::chrono::microseconds(200);
  if (ending) {
    std::this_thread::sleep_for(kEndingPause);
    until = Clock::now();
  }
  auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  constexpr int64_t kLongest = 1000;
  ::poll(fds.data(), fds.size(), static_cast<int>(std::clamp<int64_t>(left, 0, kLongest)));
}

}  // namespace

Deadline deadline_after(double seconds) {
  constexpr double kFarAway = 365.0 * 24 * 3600;
  if (!(seconds > 0) || seconds > kFarAway) seconds = kFarAway;
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::vector<ProcessResult> run_processes(std::span<const Command> commands, int jobs,
                                         Deadline deadline) {
  std::vector<ProcessResult> results(commands.size());
  std::vector<Child> running;
  size_t next = 0;
  bool failed = false;
  auto take_result = [&](Child& child) {
    ProcessResult result = child.finish();
    failed |= !result.succeeded();
    results[child.index()] = std::move(result);
  };

  for (;;) {
    while (!failed && next < commands.size() &&
           running.size() < static_cast<size_t>(std::max(jobs, 1))) {
      Child child(next);
      if (child.start(commands[next])) {
        running.push_back(std::move(child));
      } else {
        take_result(child);
      }
      ++next;
    }
    if (running.empty()) return results;

    wait_for_output(running, deadline);
    bool expired = Clock::now() >= deadline;
    std::erase_if(running, [&](Child& child) {
      bool closed = !child.output_open() || child.drain();
      bool ended = closed && child.reap();
      if (!ended && expired) {
        child.kill();
        ended = true;
      }
      if (ended) take_result(child);
      return ended;
    });
  }
}

ProcessResult run_process(const Command& command, Deadline deadline) {
  return std::move(run_processes(std::span(&command, 1), 1, deadline).front());
}

std::string describe_end(const ProcessResult& result) {
  switch (result.end) {
    case ProcessEnd::kExited:
      return "exited with code " + std::to_string(result.exit_code);
    case ProcessEnd::kSignaled:
      return "was killed by signal " + std::to_string(result.signal);
    case ProcessEnd::kTimedOut:
      return "ran longer than its time limit and was killed";
    case ProcessEnd::kNotFound:
      return "was not found";
    case ProcessEnd::kNotStarted:
      return "could not be started";
    case ProcessEnd::kLost:
      return "ended, but its exit status was taken by another part of this process";
    case ProcessEnd::kSkipped:
      return "was not run";
  }
  return "";
}

}  // namespace litz
