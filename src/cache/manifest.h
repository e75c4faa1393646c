// What an entry says about itself: the key it was made for, and the size and checksum of each file.
// Kept in the entry as JSON, with a checksum of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cache/cache_key.h"

namespace litz {

inline constexpr const char* kManifestName = "manifest.json";

struct ManifestFile {
  std::string name;
  uint64_t bytes = 0;
  std::string checksum;
};

struct Manifest {
  CacheKey key;
  std::vector<ManifestFile> files;
};

std::string print_manifest(const Manifest& manifest);

// Nothing where the text is not what print_manifest made, down to the last bit that matters.
std::optional<Manifest> parse_manifest(const std::string& text);

}  // namespace litz
