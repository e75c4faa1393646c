#include "cache/cache_key.h"

#include "cache/checksum.h"

namespace litz {
namespace {

constexpr size_t kLongestShownValue = 200;

// A checksum has a fixed length, which makes the value's end as plain as its length would.
std::string hash_field(std::string_view name, std::string_view value_checksum) {
  return std::to_string(name.size()) + ":" + std::string(name) + std::string(value_checksum);
}

}  // namespace

KeyBuilder& KeyBuilder::field(std::string_view name, std::string_view value) {
  std::string value_checksum = checksum_bytes(value);
  hashed_ += hash_field(name, value_checksum);
  std::string shown(value);
  if (value.size() > kLongestShownValue) {
    shown = "<" + std::to_string(value.size()) + " bytes, xxh3 " + value_checksum + ">";
  }
  fields_.push_back({std::string(name), std::move(shown)});
  return *this;
}

KeyBuilder& KeyBuilder::field(std::string_view name, int64_t value) {
  return field(name, std::string_view(std::to_string(value)));
}

CacheKey KeyBuilder::finish() const { return {checksum_bytes(hashed_), fields_}; }

}  // namespace litz
