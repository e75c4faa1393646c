// Where the prelude finds its fragments. A fragment is the definition of one function for one
// native value type (a scalar or a vector that fits a register) with these tokens:
//   @N own name   @V value type   @S its scalar type   @I @U integer types of the same width
//   @M mask type  @n lanes        @b bits of a lane    @Z @X integer scalars of the same width
//   @A            type for wrapping arithmetic: @U, but u32 for narrow scalars
//   @K(c) @J(c)   the constant c in every lane of a @V, of a @U
//   @F            suffix of a float literal of this type
//   @T{dtype}     value type of another dtype with the same lanes
//   @{name}       another function for the same type, @{name:dtype} for another dtype, @{name:lane}
//                 its scalar version; `self` is this fragment's name. Makes it a dependency.
// Integer types of a scalar are scalars, its mask is bool, so most fragments serve both.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "codegen/cpp/cpp_text.h"
#include "codegen/cpp/prelude.h"

namespace litz::prelude {

struct Shape {
  DType dtype;
  int lanes;
  int bytes() const { return static_cast<int>(size_of(dtype)) * lanes; }
  bool scalar() const { return lanes == 1; }
};

struct Fragment {
  std::string_view name;
  std::string_view text;
};

// The text of the entry of that name, as below.
inline std::string find(std::span<const Fragment> table, std::string_view name) {
  for (const Fragment& fragment : table) {
    if (fragment.name == name) return std::string(fragment.text);
  }
  return {};
}

// A fragment with TO as the name of the dtype.
inline std::string replace_to(std::string_view text, DType to) {
  return replace_all(std::string(text), "TO", to_string(to));
}

// Each returns an empty string for a name it does not know.
std::string basic_fragment(const PreludeTarget& target, std::string_view name, Shape shape);
std::string memory_fragment(const PreludeTarget& target, std::string_view name, Shape shape);
std::string integer_fragment(std::string_view name, Shape shape);
std::string float32_fragment(const PreludeTarget& target, std::string_view name, int lanes);
std::string float64_fragment(const PreludeTarget& target, std::string_view name);
// `name` is to_<dtype>, or a half float's bits to float32 (from_f16, from_bf16: from u16) or back
// (bits_f16, bits_bf16: to u16). Both values must be native.
std::string convert_fragment(const PreludeTarget& target, std::string_view name, Shape from,
                             DType to);
// Per lane, through libm or a scalar routine; float32 and float64.
std::string library_fragment(std::string_view name, Shape shape);

// The functions that give random words (prelude_random.cpp); all but the first need others.
std::string_view philox_words_text();               // a block as a struct of four words
std::string_view philox_scalar_text(DType result);  // needs the words
// Of a device's pack: needs the words. Empty where the pack is made of halves.
std::string_view philox_pack_text(DType result, int lanes);
std::string philox_blocks_text(int bytes);                // blocks that fill a register
std::string philox_vector_text(DType result, int lanes);  // needs the blocks
inline std::string philox_name(DType result) {
  return result == DType::kInt32 ? "philox32" : "philox64";
}

// Arguments of the function.
int operands_of(std::string_view name);

// The definitions of f32, i64 and so on.
std::string_view scalar_types();

// "a, a + 1, ..., a + n - 1"
std::string index_list(int first, int count);

}  // namespace litz::prelude
