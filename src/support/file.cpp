#include "support/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace litz {

void UniqueFd::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

std::string errno_text(int error) { return std::generic_category().message(error); }

int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

int write_new_file(const std::string& path, std::string_view bytes, mode_t mode) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!fd) return errno;
  return write_all(fd.get(), bytes);
}

std::optional<std::string> read_file(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  return read_all(fd.get());
}

std::optional<std::string> read_all(int fd) {
  std::string text;
  constexpr size_t kChunk = 64 * 1024;
  for (;;) {
    size_t filled = text.size();
    text.resize(filled + kChunk);
    ssize_t count = ::read(fd, text.data() + filled, kChunk);
    text.resize(filled + static_cast<size_t>(count > 0 ? count : 0));
    if (count == 0) return text;
    if (count < 0 && errno != EINTR) return std::nullopt;
  }
}

}  // namespace litz
