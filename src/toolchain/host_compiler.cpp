#include "toolchain/host_compiler.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <set>
#include <string_view>

#include "support/file.h"
#include "toolchain/private_dir.h"

namespace litz {
namespace {

using Clock = std::chrono::steady_clock;
using Family = CompilerIdentity::Family;

constexpr const char* kLibraryName = "library.so";

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void append(std::vector<std::string>& to, const std::vector<std::string>& items) {
  to.insert(to.end(), items.begin(), items.end());
}

// "libm.so.6" as the drivers' -l option names it: "m".
std::string short_library_name(std::string_view file_name) {
  if (file_name.starts_with("lib")) file_name.remove_prefix(3);
  return std::string(file_name.substr(0, file_name.find(".so")));
}

std::string object_name(const SourceUnit& unit) { return unit.name + ".o"; }

void check_unit_names(const std::vector<SourceUnit>& units) {
  auto allowed = [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '_' || c == '-';
  };
  std::set<std::string_view> seen;
  for (const SourceUnit& unit : units) {
    LITZ_CHECK(!unit.name.empty() && std::isalnum(static_cast<unsigned char>(unit.name[0])) &&
                   std::all_of(unit.name.begin(), unit.name.end(), allowed),
               "source unit has the name '" + unit.name + "'");
    LITZ_CHECK(seen.insert(unit.name).second, "two source units are named " + unit.name);
  }
}

BuildStatus status_of(const ProcessResult& process, BuildStatus when_rejected) {
  switch (process.end) {
    case ProcessEnd::kExited:
      return when_rejected;
    case ProcessEnd::kSignaled:
    case ProcessEnd::kLost:
      return BuildStatus::kKilled;
    case ProcessEnd::kTimedOut:
      return BuildStatus::kTimeout;
    case ProcessEnd::kNotFound:
      return BuildStatus::kNotFound;
    case ProcessEnd::kNotStarted:
    case ProcessEnd::kSkipped:
      return BuildStatus::kNotStarted;
  }
  return when_rejected;
}

// Overrides the level. With it g++ leaves out the passes that were seen to fail, combining
// instructions for one, which dies of sign extensions under a mask of AVX-512 (g++ 12 to 14).
constexpr const char* kSafeLevel = "-Og";

void fail(BuildResult& result, BuildStatus status, const std::string& message) {
  result.status = status;
  if (!result.log.empty() && result.log.back() != '\n') result.log += '\n';
  result.log += message + "\n";
}

// Whether a compiler died of a fault of its own, in the words of g++ and clang.
bool names_compiler_fault(const std::string& log) {
  return log.find("internal compiler error") != std::string::npos ||
         log.find("PLEASE submit a bug report") != std::string::npos;
}

// Moves a file to where it is wanted, in one step seen from there. Returns 0 or an errno.
int move_file(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return 0;
  if (errno != EXDEV) return errno;
  std::optional<std::string> bytes = read_file(from);
  if (!bytes) return EIO;
  std::string beside = to + ".new-" + std::to_string(::getpid());
  int error = write_new_file(beside, *bytes, 0600);
  if (!error && ::rename(beside.c_str(), to.c_str()) != 0) error = errno;
  if (error) ::unlink(beside.c_str());
  return error;
}

}  // namespace

const char* build_status_name(BuildStatus status) {
  switch (status) {
    case BuildStatus::kOk:
      return "ok";
    case BuildStatus::kNotFound:
      return "compiler not found";
    case BuildStatus::kCompilerFailed:
      return "compiler failed";
    case BuildStatus::kLinkFailed:
      return "link failed";
    case BuildStatus::kTimeout:
      return "time limit reached";
    case BuildStatus::kKilled:
      return "compiler killed";
    case BuildStatus::kNotStarted:
      return "process not started";
    case BuildStatus::kFileError:
      return "file error";
  }
  return "";
}

Result<HostCompiler> HostCompiler::find(const HostCompilerOptions& options,
                                        CompilerVersions& versions) {
  std::vector<std::string> environment = {"LC_ALL=C", "PATH=" + options.search_path};
  if (!options.compiler.empty()) {
    std::string path = find_program(options.compiler, options.search_path);
    if (path.empty()) {
      return Unsupported{"the compiler '" + options.compiler +
                         "' is not an executable file and not in the search path"};
    }
    Result<CompilerIdentity> identity = versions.identify(path, environment);
    if (!identity) return Unsupported{identity.reason()};
    return HostCompiler(path, *identity, options);
  }

  std::vector<std::string> candidates;
  for (const char* name : {"g++", "clang++"}) {
    std::string path = find_program(name, options.search_path);
    if (!path.empty()) candidates.push_back(path);
  }
  for (const std::string& folder : options.zig_folders) {
    std::string path = folder + "/ziglang/zig";
    if (is_executable_file(path)) candidates.push_back(path);
  }
  std::string reasons;
  for (const std::string& path : candidates) {
    Result<CompilerIdentity> identity = versions.identify(path, environment);
    if (identity) return HostCompiler(path, *identity, options);
    reasons += "; " + identity.reason();
  }
  return Unsupported{
      "no C++ compiler was found: neither g++ nor clang++ in the search path, nor the Python "
      "package "
      "ziglang" +
      reasons};
}

HostCompiler::HostCompiler(std::string path, CompilerIdentity identity,
                           const HostCompilerOptions& options)
    : path_(std::move(path)), identity_(std::move(identity)), search_path_(options.search_path) {
  if (identity_.family == CompilerIdentity::Family::kZig) {
    linker_ = path_;
    return;
  }
  // The linker that stands beside the compiler belongs to it. GNU ld is the fastest for small
  // objects.
  std::string beside = path_.substr(0, path_.rfind('/'));
  for (const char* name : {"ld.bfd", "ld"}) {
    linker_ = find_program(name, beside + ":" + search_path_);
    if (!linker_.empty()) return;
  }
}

std::vector<std::string> HostCompiler::driver() const {
  if (identity_.family != Family::kZig) return {path_};
#if defined(__aarch64__)
  return {path_, "c++", "-target", "aarch64-linux-gnu"};
#else
  return {path_, "c++", "-target", "x86_64-linux-gnu"};
#endif
}

std::vector<std::string> HostCompiler::environment(const std::string& work_dir) const {
  std::vector<std::string> variables = {"LC_ALL=C", "PATH=" + search_path_, "TMPDIR=" + work_dir};
  if (identity_.family == Family::kZig) {
    variables.push_back("ZIG_GLOBAL_CACHE_DIR=" + work_dir + "/zig");
    variables.push_back("ZIG_LOCAL_CACHE_DIR=" + work_dir + "/zig");
  }
  return variables;
}

Command HostCompiler::command(std::vector<std::string> argv, const std::string& work_dir) const {
  return Command{std::move(argv), environment(work_dir), work_dir};
}

std::vector<std::string> HostCompiler::compile_flags(const SharedLibraryJob& job) const {
  std::vector<std::string> flags = {
      "-std=c++20",
      "-O" + std::to_string(job.optimization_level),
      "-fPIC",
      "-pipe",
      // Eager's arithmetic: integers wrap, memory has no types, no operation is contracted.
      "-fwrapv",
      "-fno-strict-aliasing",
      "-ffp-contract=" + std::string(job.fp_contract ? "fast" : "off"),
      // g++ 12 takes addresses that it has made relative to null itself for accesses of null, and
      // leaves out kernels that it thinks do nothing else.
      "-fno-delete-null-pointer-checks",
      // Nobody reads errno or the floating-point exception flags.
      "-fno-math-errno",
      "-fno-trapping-math",
      // Small objects, quickly loaded: nothing exported by accident, nothing to unwind.
      "-fvisibility=hidden",
      "-fno-exceptions",
      "-fno-rtti",
      "-fno-asynchronous-unwind-tables",
      "-fno-stack-protector",
      "-fcf-protection=none",
      // Equal input gives equal bytes.
      "-fno-ident",
      "-frandom-seed=litz",
      "-Wno-psabi",
  };
  // What is worth a vector is one in the source already, and g++ 12 gives wrong values where it
  // makes vectors of bools that are indices.
  if (identity_.family == Family::kGcc) flags.push_back("-fno-tree-loop-vectorize");
  bool zig = identity_.family == Family::kZig;
  if (zig) flags.push_back("-fno-sanitize=undefined");
  for (std::string flag : job.target.compiler_flags()) {
    // Zig has its own spelling of CPU names and tunes by them alone.
    if (zig && flag.starts_with("-mtune=")) continue;
    if (zig && flag == "-march=x86-64") flag = "-march=x86_64";
    flags.push_back(std::move(flag));
  }
  append(flags, job.compiler_flags);
  return flags;
}

std::vector<Command> HostCompiler::compile_commands(const SharedLibraryJob& job,
                                                    const std::string& work_dir) const {
  std::vector<std::string> common = driver();
  append(common, compile_flags(job));
  std::vector<Command> commands;
  for (const SourceUnit& unit : job.units) {
    std::vector<std::string> argv = common;
    append(argv, {"-c", "-x", "c++", unit.name, "-o", object_name(unit)});
    commands.push_back(command(std::move(argv), work_dir));
  }
  return commands;
}

std::optional<Command> HostCompiler::direct_link_command(const SharedLibraryJob& job,
                                                         const std::string& work_dir) const {
  if (linker_.empty()) return std::nullopt;
  std::vector<std::string> argv = {linker_};
  if (identity_.family == Family::kZig) argv.push_back("ld.lld");
  // Names of functions stay, for profilers and debuggers.
  append(argv, {"-shared", "-S", "-z", "defs", "-z", "noexecstack", "--build-id=none",
                "--hash-style=gnu", "--as-needed", "-o", kLibraryName});
  for (const SourceUnit& unit : job.units) argv.push_back(object_name(unit));
#if defined(__aarch64__)
  append(argv, {"-L/lib/aarch64-linux-gnu", "-L/usr/lib/aarch64-linux-gnu"});
#else
  append(argv, {"-L/lib/x86_64-linux-gnu", "-L/usr/lib/x86_64-linux-gnu"});
#endif
  append(argv, {"-L/lib64", "-L/usr/lib64"});
  for (const std::string& library : job.libraries) argv.push_back("-l:" + library);
  return command(std::move(argv), work_dir);
}

// The driver knows where this machine keeps its libraries, and adds its own support library for
// what the CPU cannot do, such as float16 conversions on the baseline target.
Command HostCompiler::driver_link_command(const SharedLibraryJob& job,
                                          const std::string& work_dir) const {
  std::vector<std::string> argv = driver();
  append(argv, {"-shared", "-nostdlib", "-Wl,-z,defs", "-Wl,-z,noexecstack", "-o", kLibraryName});
  if (identity_.family == Family::kZig) {
    argv.push_back("-s");
  } else {
    append(argv, {"-Wl,--strip-debug", "-Wl,--build-id=none", "-Wl,--as-needed"});
  }
  for (const SourceUnit& unit : job.units) argv.push_back(object_name(unit));
  for (const std::string& library : job.libraries) {
    argv.push_back("-l" + short_library_name(library));
  }
  // Zig builds its support library anew each time, which takes seconds.
  argv.push_back(identity_.family == Family::kZig ? "-rtlib=compiler-rt" : "-lgcc");
  return command(std::move(argv), work_dir);
}

bool HostCompiler::compile(const SharedLibraryJob& job, const std::string& work_dir,
                           Deadline deadline, BuildResult& result) const {
  std::vector<ProcessResult> processes =
      run_processes(compile_commands(job, work_dir), job.jobs, deadline);
  const ProcessResult* failed = nullptr;
  const SourceUnit* failed_unit = nullptr;
  for (size_t i = 0; i < processes.size(); ++i) {
    const ProcessResult& process = processes[i];
    result.units.push_back({job.units[i].name, process.seconds});
    result.log += process.output;
    if (!failed && !process.succeeded() && process.end != ProcessEnd::kSkipped) {
      failed = &process;
      failed_unit = &job.units[i];
    }
  }
  if (!failed) return true;
  const bool is_safe = !job.compiler_flags.empty() && job.compiler_flags.back() == kSafeLevel;
  if (!is_safe && names_compiler_fault(result.log)) {
    result.log += "a fault of the compiler; again with " + std::string(kSafeLevel) + "\n";
    SharedLibraryJob again = job;
    again.compiler_flags.push_back(kSafeLevel);
    return compile(again, work_dir, deadline, result);
  }
  fail(result, status_of(*failed, BuildStatus::kCompilerFailed),
       path_ + " " + describe_end(*failed) + " while compiling " + failed_unit->name);
  return false;
}

bool HostCompiler::link(const SharedLibraryJob& job, const std::string& work_dir, Deadline deadline,
                        BuildResult& result) const {
  auto start = Clock::now();
  std::string program = linker_;
  ProcessResult process;
  if (auto direct = direct_link_command(job, work_dir)) process = run_process(*direct, deadline);
  if (!process.succeeded() && process.end != ProcessEnd::kTimedOut) {
    result.linked_by_driver = true;
    result.log += process.output;
    program = path_;
    process = run_process(driver_link_command(job, work_dir), deadline);
  }
  result.log += process.output;
  result.link_seconds = seconds_since(start);
  if (process.succeeded()) return true;
  fail(result, status_of(process, BuildStatus::kLinkFailed),
       program + " " + describe_end(process) + " while linking");
  return false;
}

BuildResult HostCompiler::build(const SharedLibraryJob& job) const {
  LITZ_CHECK(!job.units.empty(), "a library needs a source unit");
  check_unit_names(job.units);
  auto start = Clock::now();
  Deadline deadline = deadline_after(job.time_limit_seconds);
  BuildResult result;

  PrivateDir work_dir(job.work_folder);
  if (work_dir.path().empty()) {
    fail(result, BuildStatus::kFileError, work_dir.error());
    return result;
  }
  for (const SourceUnit& unit : job.units) {
    if (int error = write_new_file(work_dir.path() + "/" + unit.name, unit.text, 0600)) {
      fail(result, BuildStatus::kFileError, "cannot write " + unit.name + ": " + errno_text(error));
      return result;
    }
  }
  if (compile(job, work_dir.path(), deadline, result) &&
      link(job, work_dir.path(), deadline, result)) {
    std::string library = work_dir.path() + "/" + kLibraryName;
    // Linkers make it executable for all; nobody but this user has to do with it.
    ::chmod(library.c_str(), 0700);
    if (int error = move_file(library, job.output_path)) {
      fail(result, BuildStatus::kFileError,
           "cannot write " + job.output_path + ": " + errno_text(error));
    }
  }
  result.total_seconds = seconds_since(start);
  return result;
}

}  // namespace litz
