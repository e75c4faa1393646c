#include "toolchain/triton.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>

#include "support/file.h"

extern char** environ;

namespace litz {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxErrors = 2000;  // bytes of what the process said last
constexpr size_t kAnswerFields = 5;  // for each function

void put(std::string& message, const std::string& field) {
  const auto size = static_cast<uint32_t>(field.size());
  for (int shift = 0; shift < 32; shift += 8) message += static_cast<char>(size >> shift & 255);
  message += field;
}

std::string pack(const std::vector<std::string>& fields) {
  std::string message;
  const auto count = static_cast<uint32_t>(fields.size());
  for (int shift = 0; shift < 32; shift += 8) message += static_cast<char>(count >> shift & 255);
  for (const std::string& field : fields) put(message, field);
  return message;
}

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
  return text;
}

// A version without what a build adds to it.
std::string release(const std::string& version) { return version.substr(0, version.find('+')); }

int64_t number(const std::string& text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

// The process. Not copied; used under a lock.
struct TritonCompiler::State {
  explicit State(TritonOptions o) : options(std::move(o)) {}
  ~State() { stop(); }

  // ---- the process ----

  std::string spawn();
  void stop();
  std::string last_words();
  // Of a forked copy of this process the worker is not.
  bool is_ours() const { return pid > 0 && owner == ::getpid(); }

  // ---- messages ----

  enum class Talk { kDone, kEnded, kLate };
  Talk send(const std::string& message, Deadline deadline) const;
  Talk receive(std::string& data, size_t size, Deadline deadline) const;
  Talk receive_fields(std::vector<std::string>& fields, Deadline deadline) const;
  Talk wait_for(short events, Deadline deadline) const;

  // Empty once the process is ready to compile.
  std::string make_ready(Deadline deadline);

  const TritonOptions options;
  std::mutex mutex;
  pid_t pid = 0;
  pid_t owner = 0;
  UniqueFd connection;
  UniqueFd errors;
  bool ready = false;
  std::string given_up;  // why it is not asked again
};

std::string TritonCompiler::State::spawn() {
  stop();
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return std::string("no connection: ") + std::strerror(errno);
  connection = UniqueFd(ends[0]);
  const UniqueFd theirs(ends[1]);
  std::FILE* file = std::tmpfile();
  if (file != nullptr) {
    errors = UniqueFd(::fcntl(::fileno(file), F_DUPFD_CLOEXEC, 0));
    std::fclose(file);
  }

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDOUT_FILENO);
  if (errors.get() >= 0) {
    posix_spawn_file_actions_adddup2(&actions, errors.get(), STDERR_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  // -P: the folder of the program is no place for modules.
  std::array<std::string, 4> words = {options.python, "-P", "-u", options.worker};
  std::array<char*, 5> argv = {words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                               nullptr};
  const int error = ::posix_spawn(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    pid = 0;
    connection.reset();
    return options.python + " cannot be started: " + std::strerror(error);
  }
  owner = ::getpid();
  return {};
}

void TritonCompiler::State::stop() {
  connection.reset();
  if (is_ours()) {
    ::kill(-pid, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  pid = 0;
  ready = false;
  errors.reset();
}

std::string TritonCompiler::State::last_words() {
  if (errors.get() < 0) return {};
  const off_t end = ::lseek(errors.get(), 0, SEEK_END);
  if (end <= 0) return {};
  const off_t from = std::max<off_t>(0, end - static_cast<off_t>(kMaxErrors));
  std::string text(static_cast<size_t>(end - from), '\0');
  const ssize_t count = ::pread(errors.get(), text.data(), text.size(), from);
  text.resize(count < 0 ? 0 : static_cast<size_t>(count));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.empty() ? "" : "; it said: " + text;
}

TritonCompiler::State::Talk TritonCompiler::State::wait_for(short events, Deadline deadline) const {
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return Talk::kLate;
    pollfd entry = {connection.get(), events, 0};
    const int found = ::poll(&entry, 1, static_cast<int>(std::min<int64_t>(left + 1, 60000)));
    if (found > 0) return Talk::kDone;
    if (found < 0 && errno != EINTR) return Talk::kEnded;
  }
}

TritonCompiler::State::Talk TritonCompiler::State::send(const std::string& message,
                                                        Deadline deadline) const {
  size_t sent = 0;
  while (sent < message.size()) {
    const Talk waited = wait_for(POLLOUT, deadline);
    if (waited != Talk::kDone) return waited;
    const ssize_t count = ::send(connection.get(), message.data() + sent, message.size() - sent,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      sent += static_cast<size_t>(count);
    } else if (errno != EINTR && errno != EAGAIN) {
      return Talk::kEnded;
    }
  }
  return Talk::kDone;
}

TritonCompiler::State::Talk TritonCompiler::State::receive(std::string& data, size_t size,
                                                           Deadline deadline) const {
  data.resize(size);
  size_t got = 0;
  while (got < size) {
    const Talk waited = wait_for(POLLIN, deadline);
    if (waited != Talk::kDone) return waited;
    const ssize_t count = ::recv(connection.get(), data.data() + got, size - got, MSG_DONTWAIT);
    if (count > 0) {
      got += static_cast<size_t>(count);
    } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
      return Talk::kEnded;
    }
  }
  return Talk::kDone;
}

TritonCompiler::State::Talk TritonCompiler::State::receive_fields(std::vector<std::string>& fields,
                                                                  Deadline deadline) const {
  const auto receive_number = [&](uint32_t& value) {
    std::string bytes;
    const Talk talk = receive(bytes, 4, deadline);
    value = 0;
    for (size_t i = 0; i < bytes.size(); ++i)
      value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
    return talk;
  };
  uint32_t count = 0;
  Talk talk = receive_number(count);
  fields.clear();
  for (uint32_t i = 0; i < count && talk == Talk::kDone; ++i) {
    uint32_t size = 0;
    talk = receive_number(size);
    if (talk != Talk::kDone) break;
    fields.emplace_back();
    talk = receive(fields.back(), size, deadline);
  }
  return talk;
}

std::string TritonCompiler::State::make_ready(Deadline deadline) {
  if (!is_ours() || connection.get() < 0) {
    if (std::string fault = spawn(); !fault.empty()) return fault;
  }
  if (ready) return {};
  std::vector<std::string> greeting;
  const Talk talk = receive_fields(greeting, deadline);
  if (talk == Talk::kLate) return "it did not start in time";
  if (talk == Talk::kEnded || greeting.size() != 2) return "it ended at its start" + last_words();
  if (greeting[0] != "ready") return "Triton cannot be imported: " + greeting[1];
  if (release(greeting[1]) != release(options.version))
    return options.python + " imports Triton " + greeting[1] + ", not " + options.version;
  ready = true;
  return {};
}

TritonCompiler::TritonCompiler(TritonOptions options)
    : state_(std::make_shared<State>(std::move(options))) {}

void TritonCompiler::start() {
  const std::lock_guard lock(state_->mutex);
  if (state_->given_up.empty() && !state_->is_ours()) state_->spawn();
}

Result<std::vector<TritonCompiler::Image>> TritonCompiler::compile(
    const std::string& source, const std::vector<Function>& functions, const std::string& arch,
    int jobs, Deadline deadline) {
  Result<std::vector<Image>> images = compile_each(source, functions, arch, jobs, deadline);
  if (!images) return images;
  for (size_t i = 0; i < functions.size(); ++i) {
    const std::string& fault = (*images)[i].fault;
    if (!fault.empty()) return Unsupported{functions[i].name + ": " + fault};
  }
  return images;
}

Result<std::vector<TritonCompiler::Image>> TritonCompiler::compile_each(
    const std::string& source, const std::vector<Function>& functions, const std::string& arch,
    int jobs, Deadline deadline) {
  LITZ_CHECK(arch.starts_with("sm_"), "device code for the architecture '" + arch + "'");
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  if (!state.given_up.empty()) return Unsupported{state.given_up};
  const auto give_up = [&](const std::string& why) {
    state.stop();
    state.given_up = why;
    return Unsupported{why};
  };
  if (const std::string fault = state.make_ready(deadline); !fault.empty()) return give_up(fault);

  std::vector<std::string> request = {arch.substr(3), std::to_string(jobs), source};
  for (const Function& f : functions) {
    std::vector<std::string> aligned;
    for (int i : f.aligned) aligned.push_back(std::to_string(i));
    request.insert(request.end(),
                   {f.name, join(f.signature), join(aligned), std::to_string(f.warps),
                    std::to_string(f.stages), f.checks ? "1" : ""});
  }
  std::vector<std::string> answer;
  State::Talk talk = state.send(pack(request), deadline);
  if (talk == State::Talk::kDone) talk = state.receive_fields(answer, deadline);
  if (talk == State::Talk::kLate) return give_up("it did not answer in time");
  if (talk == State::Talk::kEnded || answer.size() != functions.size() * kAnswerFields) {
    std::string fault = "its process ended" + state.last_words();
    state.stop();
    return Unsupported{std::move(fault)};
  }
  std::vector<Image> images;
  for (size_t i = 0; i < functions.size(); ++i) {
    std::string* fields = &answer[i * kAnswerFields];
    if (fields[0].empty() && fields[4].empty()) fields[4] = "there is no code";
    images.push_back({std::move(fields[0]), number(fields[1]), static_cast<int>(number(fields[2])),
                      static_cast<int>(number(fields[3])), std::move(fields[4])});
  }
  return images;
}

}  // namespace litz
