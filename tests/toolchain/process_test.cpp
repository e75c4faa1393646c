#include "toolchain/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "scratch.h"
#include "support/file.h"

namespace litz {
namespace {

using ProcessTest = ScratchTest;

Command shell(const std::string& script) {
  return Command{{"/bin/sh", "-c", script}, {"PATH=/usr/bin:/bin"}, ""};
}

ProcessResult run_shell(const std::string& script, double seconds = 30) {
  return run_process(shell(script), deadline_after(seconds));
}

// False also for a dead process that nobody has awaited yet.
bool is_alive(const std::string& pid) {
  std::optional<std::string> stat = read_file("/proc/" + pid + "/stat");
  return stat && stat->find(") Z") == std::string::npos;
}

TEST_F(ProcessTest, CapturesBothStreamsAndTheExitCode) {
  ProcessResult result = run_shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(result.end, ProcessEnd::kExited);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.output, "out\nerr\n");
  EXPECT_FALSE(result.succeeded());
}

TEST_F(ProcessTest, SeesOnlyTheEnvironmentGiven) {
  ::setenv("LITZ_TEST_LEAK", "1", 1);
  ProcessResult result = run_process({{"/usr/bin/env"}, {"LC_ALL=C"}, ""}, deadline_after(30));
  ::unsetenv("LITZ_TEST_LEAK");
  EXPECT_EQ(result.output, "LC_ALL=C\n");
}

TEST_F(ProcessTest, InheritsNoDescriptors) {
  UniqueFd leak(::open("/dev/null", O_RDONLY));
  ASSERT_TRUE(leak);
  EXPECT_EQ(run_shell("ls /proc/$$/fd").output, "0\n1\n2\n");
}

TEST_F(ProcessTest, SignalsAreAsAFreshProcessHasThem) {
  auto* previous = ::signal(SIGPIPE, SIG_IGN);
  ProcessResult result = run_shell("kill -PIPE $$; echo survived");
  ::signal(SIGPIPE, previous);
  EXPECT_EQ(result.end, ProcessEnd::kSignaled);
  EXPECT_EQ(result.signal, SIGPIPE);
}

TEST_F(ProcessTest, RunsInTheDirectoryGiven) {
  Command command = shell("pwd");
  command.directory = "/usr";
  EXPECT_EQ(run_process(command, deadline_after(30)).output, "/usr\n");
}

TEST_F(ProcessTest, KillsTheWholeGroupAtTheDeadline) {
  ProcessResult result = run_shell("sleep 600 & echo $! > " + path("pid") + "; wait", 0.3);
  EXPECT_EQ(result.end, ProcessEnd::kTimedOut);
  EXPECT_LT(result.seconds, 5);
  std::string pid = *read_file(path("pid"));
  pid.pop_back();
  for (int i = 0; i < 500 && is_alive(pid); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(is_alive(pid));
}

TEST_F(ProcessTest, ADeadlineHoldsForThoseWhoCloseTheirOutput) {
  ProcessResult result = run_shell("exec >&- 2>&-; exec sleep 600", 0.3);
  EXPECT_EQ(result.end, ProcessEnd::kTimedOut);
  EXPECT_LT(result.seconds, 5);
}

TEST_F(ProcessTest, ADeadlineHoldsForThoseWhoNeverStopWriting) {
  ProcessResult result = run_shell("exec yes", 0.3);
  EXPECT_EQ(result.end, ProcessEnd::kTimedOut);
  EXPECT_LT(result.seconds, 5);
  EXPECT_LT(result.output.size(), kMaxProcessLog + 100);
}

TEST_F(ProcessTest, LongOutputIsCutAndTheCutIsTold) {
  ProcessResult result = run_shell("head -c 10000000 /dev/zero | tr '\\0' x");
  EXPECT_TRUE(result.succeeded());
  EXPECT_NE(result.output.find("[9934464 more bytes of output dropped]"), std::string::npos);
  EXPECT_LT(result.output.size(), kMaxProcessLog + 100);
}

TEST_F(ProcessTest, MissingProgramsAreNotFound) {
  ProcessResult missing = run_process({{path("nothing")}, {}, ""}, deadline_after(30));
  EXPECT_EQ(missing.end, ProcessEnd::kNotFound);
  EXPECT_NE(missing.output.find("No such file"), std::string::npos);

  std::ofstream(path("plain")) << "text";
  EXPECT_EQ(run_process({{path("plain")}, {}, ""}, deadline_after(30)).end, ProcessEnd::kNotFound);
}

TEST_F(ProcessTest, AFailureToStartIsReported) {
  // One argument longer than the system takes.
  Command command = shell(std::string(4 << 20, 'x'));
  ProcessResult result = run_process(command, deadline_after(30));
  EXPECT_EQ(result.end, ProcessEnd::kNotStarted);
}

TEST_F(ProcessTest, AFailureToMakeAProcessIsReported) {
  // In a child: the limit on processes cannot be raised again, and does not bind root.
  auto try_without_processes = [] {
    rlimit none{0, 0};
    bool limited = ::setrlimit(RLIMIT_NPROC, &none) == 0;
    if (::getuid() == 0) limited &= ::setuid(65534) == 0;
    bool refused = run_shell("true").end == ProcessEnd::kNotStarted;
    ::_exit(limited && refused ? 0 : 1);
  };
  EXPECT_EXIT(try_without_processes(), ::testing::ExitedWithCode(0), "");
}

TEST_F(ProcessTest, AStatusTakenBySomebodyElseIsAFailure) {
  auto* previous = ::signal(SIGCHLD, SIG_IGN);
  ProcessResult result = run_shell("true");
  ::signal(SIGCHLD, previous);
  EXPECT_EQ(result.end, ProcessEnd::kLost);
  EXPECT_FALSE(result.succeeded());
}

TEST_F(ProcessTest, ASignalDoesNotInterruptTheWait) {
  struct sigaction action = {}, previous;
  action.sa_handler = [](int) {};
  ::sigaction(SIGALRM, &action, &previous);
  ::alarm(1);
  ProcessResult result = run_shell("sleep 1.2; echo done");
  ::alarm(0);
  ::sigaction(SIGALRM, &previous, nullptr);
  EXPECT_TRUE(result.succeeded());
  EXPECT_EQ(result.output, "done\n");
}

TEST_F(ProcessTest, RunsSideBySideUpToTheLimitAndKeepsTheOrder) {
  std::vector<Command> commands;
  for (const char* text : {"a", "b", "c", "d"}) {
    commands.push_back(shell("sleep 0.3; echo " + std::string(text)));
  }
  auto start = std::chrono::steady_clock::now();
  std::vector<ProcessResult> results = run_processes(commands, 2, deadline_after(30));
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::string order;
  for (const ProcessResult& result : results) order += result.output;
  EXPECT_EQ(order, "a\nb\nc\nd\n");
  EXPECT_GE(seconds, 0.6);
  EXPECT_LT(seconds, 1.15);
}

TEST_F(ProcessTest, NothingIsStartedAfterAFailure) {
  std::vector<Command> commands = {shell("exit 1"), shell("echo " + path("x") + " > " + path("x"))};
  std::vector<ProcessResult> results = run_processes(commands, 1, deadline_after(30));
  EXPECT_EQ(results[1].end, ProcessEnd::kSkipped);
  EXPECT_FALSE(std::filesystem::exists(path("x")));
}

}  // namespace
}  // namespace litz
