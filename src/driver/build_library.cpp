#include "driver/build_library.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace litz {
namespace {

// Another folder may help.
bool is_for_want_of_room(const BuildResult& built) {
  return !built.ok() && (built.status == BuildStatus::kFileError ||
                         built.log.find(std::strerror(ENOSPC)) != std::string::npos);
}

BuildResult build_in(const std::string& parent, const HostCompiler& compiler,
                     SharedLibraryJob& job) {
  BuildResult built;
  std::error_code error;
  std::filesystem::create_directories(parent, error);
  std::string folder = parent + "/litz-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    built.status = BuildStatus::kFileError;
    built.log = "cannot write to " + parent + ": " + std::strerror(errno) +
                "; TMPDIR can name another folder";
    return built;
  }
  job.work_folder = parent;
  job.output_path = folder + "/" + kLibraryName;
  built = compiler.build(job);
  if (!built.ok()) std::filesystem::remove_all(folder, error);
  return built;
}

}  // namespace

BuildResult build_library(const std::vector<std::string>& folders, const HostCompiler& compiler,
                          SharedLibraryJob& job) {
  BuildResult built;
  built.status = BuildStatus::kFileError;
  for (const std::string& folder : folders) {
    if (!folder.empty() && is_for_want_of_room(built)) built = build_in(folder, compiler, job);
  }
  return built;
}

}  // namespace litz
