// Finds a C++ compiler on this machine and turns generated source text into a shared library.
//
// Compilers, in order of preference: the one named by the caller; g++; clang++; the `ziglang`
// Python wheel, which is a clang that pip installs. Whatever goes wrong here (no compiler, a crash,
// a hang, a full disk) is a result with a status and a log, never an exception and never a hang.
//
// A build runs in a private directory that is gone afterwards. Units and object files have fixed
// names relative to it, so that equal input gives equal output bytes wherever it is built.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/error.h"
#include "support/target.h"
#include "toolchain/compiler_identity.h"
#include "toolchain/process.h"

namespace litz {

struct HostCompilerOptions {
  std::string compiler;     // a path, or a name to find in `search_path`; empty: the best there is
  std::string search_path;  // colon-separated folders, as in $PATH
  std::vector<std::string> zig_folders;  // places that may hold a folder `ziglang`: site-packages
};

struct SourceUnit {
  std::string name;  // file name such as "kernels0.cpp": letters, digits, '.', '_', '-'
  std::string text;
};

// Flags that affect the code have a field here or are fixed; all fields except those marked belong
// in a cache key.
struct SharedLibraryJob {
  std::vector<SourceUnit> units;
  CpuTarget target;
  int optimization_level = 2;
  bool fp_contract = false;                 // lets a*b+c become one rounding
  std::vector<std::string> compiler_flags;  // further flags, last on the command line
  // System libraries by file name, needed only where the code uses them.
  std::vector<std::string> libraries = {"libm.so.6", "libc.so.6"};

  std::string output_path;        // not in a key; replaced in one step
  std::string work_folder;        // not in a key; the private directory is made in it
  int jobs = 1;                   // not in a key; compilers at work at once
  double time_limit_seconds = 0;  // not in a key; for the whole build; 0: none
};

enum class BuildStatus : uint8_t {
  kOk,
  kNotFound,        // the compiler has gone
  kCompilerFailed,  // it rejected the source
  kLinkFailed,
  kTimeout,
  kKilled,      // a compiler or linker died from a signal: its own crash, or out of memory
  kNotStarted,  // no process could be made
  kFileError,   // the work folder or output cannot be written: full, read-only
};

const char* build_status_name(BuildStatus status);

struct UnitTiming {
  std::string name;
  double seconds = 0;
};

struct BuildResult {
  BuildStatus status = BuildStatus::kOk;
  std::string
      log;  // what compiler and linker said; on failure ends in a line that says what failed
  std::vector<UnitTiming> units;
  double link_seconds = 0;
  double total_seconds = 0;
  bool linked_by_driver = false;  // the direct link was not possible

  bool ok() const { return status == BuildStatus::kOk; }
};

class HostCompiler {
 public:
  // The reason of a failure names what was tried. A compiler that the caller named is never
  // replaced by another.
  static Result<HostCompiler> find(const HostCompilerOptions& options, CompilerVersions& versions);

  const CompilerIdentity& identity() const { return identity_; }
  const std::string& path() const { return path_; }

  // The flags that units are compiled with, without input and output.
  std::vector<std::string> compile_flags(const SharedLibraryJob& job) const;

  BuildResult build(const SharedLibraryJob& job) const;

 private:
  HostCompiler(std::string path, CompilerIdentity identity, const HostCompilerOptions& options);

  std::vector<std::string> driver() const;
  std::vector<std::string> environment(const std::string& work_dir) const;
  Command command(std::vector<std::string> argv, const std::string& work_dir) const;
  std::vector<Command> compile_commands(const SharedLibraryJob& job,
                                        const std::string& work_dir) const;
  std::optional<Command> direct_link_command(const SharedLibraryJob& job,
                                             const std::string& work_dir) const;
  Command driver_link_command(const SharedLibraryJob& job, const std::string& work_dir) const;
  bool compile(const SharedLibraryJob& job, const std::string& work_dir, Deadline deadline,
               BuildResult& result) const;
  bool link(const SharedLibraryJob& job, const std::string& work_dir, Deadline deadline,
            BuildResult& result) const;

  std::string path_;
  CompilerIdentity identity_;
  std::string search_path_;
  std::string linker_;  // a program that links directly; empty where there is none
};

}  // namespace litz
