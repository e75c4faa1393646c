// "Did you mean": words that somebody may have meant by another one.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace litz {

// The least number of characters inserted, removed, replaced or exchanged with their neighbour
// (each at most once) that makes one word of the other.
size_t edit_distance(std::string_view a, std::string_view b);

// The known words that differ from the word in no more than a third of its characters, nearest
// first; at most three.
std::vector<std::string_view> near_words(std::string_view word,
                                         std::span<const std::string_view> known);

}  // namespace litz
