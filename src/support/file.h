// Small files and descriptors: whole-file reads and writes that report failures as text, because
// what callers do with a full disk is to carry on without the file.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace litz {

// Owns a file descriptor; -1 stands for none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

// The text of an errno value, safe to call from any thread.
std::string errno_text(int error);

// Writes all of `bytes`. Returns 0 or the errno of the write that failed.
int write_all(int fd, std::string_view bytes);

// Creates `path`, which must not exist, with these contents. Returns 0 or an errno; after a failure
// the file may exist in part.
int write_new_file(const std::string& path, std::string_view bytes, mode_t mode);

// The whole content, or nothing where the file cannot be read.
std::optional<std::string> read_file(const std::string& path);
std::optional<std::string> read_all(int fd);

}  // namespace litz
