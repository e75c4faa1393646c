// Where the size symbols of a program get their values from when it is called.
//
// A symbol is bound by the first place in Program::inputs whose value is c * symbol + d: a
// dimension of a tensor, a stride of a tensor, or an int argument; dimensions and ints are
// preferred to strides. Every other dimension, stride and int of the inputs becomes a check, so
// that a program never runs on memory of another shape than it was compiled for. Code generation
// and the interpreter both follow this recipe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ir/program.h"
#include "litz/artifact.h"

namespace litz {

// One number that a call's inputs hold.
struct InputNumber {
  enum class Kind : uint8_t { kSize, kStride, kInt };
  Kind kind = Kind::kInt;
  uint32_t input = 0;      // position in Program::inputs
  uint32_t dimension = 0;  // kSize, kStride
};

// symbol = (number - offset) / factor. Where that leaves a remainder the check that comes with
// every source fails.
struct SymbolSource {
  Index symbol;
  InputNumber number;
  int64_t factor = 1;
  int64_t offset = 0;
};

// number == expected, for all values of the symbols bound above. A stride is checked only where its
// dimension has two elements or more and the tensor is not empty: others are never walked.
struct InputCheck {
  InputNumber number;
  Index expected;
};

struct SymbolBinding {
  std::vector<SymbolSource> sources;  // in order of the symbols' ids
  std::vector<InputCheck> checks;     // sources that are a bare symbol need none
};

// Throws InternalError naming the symbols that no input determines.
SymbolBinding bind_symbols(const Program& program);

// "size 0 of input x", for messages.
std::string describe(const Program& program, const InputNumber& number);

// The values of the symbols in one call, indexed as SymbolBinding::sources.
//
// Throws UserError where the inputs do not fit the program: another kind, rank or dtype, a check
// that fails, a symbol outside its range.
std::vector<int64_t> read_symbols(const Program& program, const SymbolBinding& binding,
                                  const LitzValue* inputs);

}  // namespace litz
