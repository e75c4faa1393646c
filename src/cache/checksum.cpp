#include "cache/checksum.h"

#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "support/file.h"

namespace litz {
namespace {

std::string to_hex(XXH128_hash_t hash) {
  constexpr char kDigits[] = "0123456789abcdef";
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  std::string text;
  for (unsigned char byte : canonical.digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace

std::string checksum_bytes(std::string_view bytes) {
  return to_hex(XXH3_128bits(bytes.data(), bytes.size()));
}

int checksum_stream(int fd, int copy_to, FileChecksum& result) {
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                        XXH3_freeState);
  XXH3_128bits_reset(state.get());
  std::vector<char> buffer(256 * 1024);
  result.bytes = 0;
  for (;;) {
    ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) break;
    std::string_view chunk(buffer.data(), static_cast<size_t>(count));
    XXH3_128bits_update(state.get(), chunk.data(), chunk.size());
    result.bytes += chunk.size();
    if (copy_to < 0) continue;
    if (int error = write_all(copy_to, chunk)) return error;
  }
  result.digest = to_hex(XXH3_128bits_digest(state.get()));
  return 0;
}

}  // namespace litz
