#include "support/near_words.h"

#include <algorithm>
#include <utility>

namespace litz {

size_t edit_distance(std::string_view a, std::string_view b) {
  // Rows of the table of distances between the beginnings of both.
  std::vector<size_t> two_before;
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) before[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], two_before[j - 2] + 1);
    }
    two_before = std::exchange(before, row);
  }
  return before[b.size()];
}

std::vector<std::string_view> near_words(std::string_view word,
                                         std::span<const std::string_view> known) {
  constexpr size_t kMost = 3;
  std::vector<std::pair<size_t, std::string_view>> near;
  for (std::string_view other : known) {
    const size_t distance = edit_distance(word, other);
    if (3 * distance <= word.size()) near.emplace_back(distance, other);
  }
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string_view> words;
  for (size_t i = 0; i < near.size() && i < kMost; ++i) words.push_back(near[i].second);
  return words;
}

}  // namespace litz
