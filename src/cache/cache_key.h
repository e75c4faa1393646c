// The key of a cache entry: named fields, and a digest over all of them.
//
// Two keys have one digest exactly when they have the same fields with the same values in the same
// order (but for collisions of a 128-bit hash). Names and values are hashed with their lengths, so
// no two lists of fields run into each other. The fields stay with the key, to explain a miss.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace litz {

struct KeyField {
  std::string name;
  std::string value;  // a long value is replaced by its length and checksum
  friend bool operator==(const KeyField&, const KeyField&) = default;
};

struct CacheKey {
  std::string digest;  // 32 hexadecimal digits
  std::vector<KeyField> fields;
};

class KeyBuilder {
 public:
  KeyBuilder& field(std::string_view name, std::string_view value);
  KeyBuilder& field(std::string_view name, int64_t value);
  CacheKey finish() const;

 private:
  std::string hashed_;
  std::vector<KeyField> fields_;
};

}  // namespace litz
