// A new directory that only this user can enter, removed with all it holds.
#pragma once

#include <string>

namespace litz {

class PrivateDir {
 public:
  // Creates a directory below `parent`, which is created (0700) where it is missing. After a
  // failure path() is empty and error() says why.
  explicit PrivateDir(const std::string& parent);
  PrivateDir(const PrivateDir&) = delete;
  PrivateDir& operator=(const PrivateDir&) = delete;
  ~PrivateDir();

  const std::string& path() const { return path_; }
  const std::string& error() const { return error_; }

 private:
  std::string path_;
  std::string error_;
};

}  // namespace litz
