// XXH3-128 as 32 hexadecimal digits. It finds damage and tells contents apart; it is no defence
// against somebody who can write into the cache, which is what owner and mode are checked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace litz {

std::string checksum_bytes(std::string_view bytes);

struct FileChecksum {
  std::string digest;
  uint64_t bytes = 0;
};

// Reads from the descriptor's position to the end, and writes what it reads to `copy_to` unless
// that is -1. Returns 0, or the errno of what failed.
int checksum_stream(int fd, int copy_to, FileChecksum& result);

}  // namespace litz
