#include "toolchain/compiler_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "toolchain/process.h"

namespace litz {
namespace {

constexpr double kVersionSeconds = 10;

std::string_view base_name(std::string_view path) {
  size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

bool is_zig(std::string_view path) { return base_name(path).starts_with("zig"); }

// "g++ (Debian 12.2.0-14) 12.2.0" and "Debian clang version 14.0.6" are what first lines look like;
// g++ begins with the name it was called by, and is known by the next lines.
std::optional<CompilerIdentity> read_version_text(std::string_view text) {
  std::string_view line = first_line(text);
  if (line.find("clang") != std::string_view::npos) {
    return CompilerIdentity{CompilerIdentity::Family::kClang, std::string(line)};
  }
  size_t space = line.find(' ');
  bool is_gcc = text.find("see the source for copying conditions") != std::string_view::npos;
  if (!is_gcc || space == std::string_view::npos) return std::nullopt;
  return CompilerIdentity{CompilerIdentity::Family::kGcc, std::string(line.substr(space + 1))};
}

Result<CompilerIdentity> ask_version(const std::string& path,
                                     const std::vector<std::string>& environment) {
  bool zig = is_zig(path);
  Command command{{path, zig ? "version" : "--version"}, environment, ""};
  ProcessResult answer = run_process(command, deadline_after(kVersionSeconds));
  if (!answer.succeeded()) {
    return Unsupported{path + " " + describe_end(answer) + " when asked for its version"};
  }
  if (zig) {
    return CompilerIdentity{CompilerIdentity::Family::kZig, std::string(first_line(answer.output))};
  }
  if (auto identity = read_version_text(answer.output)) return *identity;
  return Unsupported{path + " is neither g++ nor clang++"};
}

}  // namespace

std::string CompilerIdentity::text() const {
  switch (family) {
    case Family::kGcc:
      return "gcc " + version;
    case Family::kClang:
      return version;
    case Family::kZig:
      return "zig " + version;
  }
  return version;
}

Result<CompilerIdentity> CompilerVersions::identify(const std::string& path,
                                                    const std::vector<std::string>& environment) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return Unsupported{path + " does not exist"};
  FileStamp stamp{path, info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec, info.st_size};
  {
    std::lock_guard lock(mutex_);
    auto found = known_.find(stamp);
    if (found != known_.end()) return found->second;
  }
  Result<CompilerIdentity> identity = ask_version(path, environment);
  if (identity) {
    std::lock_guard lock(mutex_);
    known_.emplace(stamp, *identity);
  }
  return identity;
}

bool is_executable_file(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

std::string find_program(const std::string& name, const std::string& search_path) {
  if (name.find('/') != std::string::npos) return is_executable_file(name) ? name : "";
  size_t begin = 0;
  while (begin <= search_path.size()) {
    size_t end = std::min(search_path.find(':', begin), search_path.size());
    // An empty or relative folder depends on where we happen to stand; such a program is not taken.
    if (search_path[begin] == '/') {
      std::string path = search_path.substr(begin, end - begin) + "/" + name;
      if (is_executable_file(path)) return path;
    }
    begin = end + 1;
  }
  return "";
}

}  // namespace litz
