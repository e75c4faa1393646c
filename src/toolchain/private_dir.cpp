#include "toolchain/private_dir.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "support/file.h"

namespace litz {

PrivateDir::PrivateDir(const std::string& parent) {
  // Compilers are run with this as their working directory and see it as TMPDIR, so it is absolute.
  std::error_code failed;
  std::filesystem::path absolute = std::filesystem::absolute(parent, failed);
  if (failed) {
    error_ = failed.message();
    return;
  }
  // What goes wrong here shows in mkdtemp.
  std::filesystem::create_directories(absolute.parent_path(), failed);
  ::mkdir(absolute.c_str(), 0700);
  std::string name = (absolute / "build-XXXXXX").string();
  if (::mkdtemp(name.data())) {
    path_ = name;
  } else {
    error_ = "cannot create a directory in " + parent + ": " + errno_text(errno);
  }
}

PrivateDir::~PrivateDir() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace litz
