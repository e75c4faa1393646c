// Typed ids: an index into one dense vector, which cannot be mixed up with an index into another.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace litz {

template <class Tag>
struct Id {
  static constexpr uint32_t kInvalid = 0xffffffffu;
  uint32_t value = kInvalid;

  constexpr Id() = default;
  constexpr explicit Id(uint32_t v) : value(v) {}
  constexpr bool valid() const { return value != kInvalid; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

// A vector indexed by one kind of id.
template <class IdType, class T>
class IdVector {
 public:
  IdType push_back(T item) {
    items_.push_back(std::move(item));
    return IdType(static_cast<uint32_t>(items_.size() - 1));
  }
  T& operator[](IdType id) { return items_[id.value]; }
  const T& operator[](IdType id) const { return items_[id.value]; }
  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  void resize(size_t n, T item = T()) { items_.resize(n, std::move(item)); }
  bool contains(IdType id) const { return id.value < items_.size(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::vector<T> items_;
};

}  // namespace litz

template <class Tag>
struct std::hash<litz::Id<Tag>> {
  size_t operator()(litz::Id<Tag> id) const noexcept { return std::hash<uint32_t>()(id.value); }
};
