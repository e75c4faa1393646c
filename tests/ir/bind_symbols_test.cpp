#include "ir/bind_symbols.h"

#include <gtest/gtest.h>

#include "ir/parse_program.h"
#include "support/error.h"

namespace litz {
namespace {

std::string text_of(const Program& program, const SymbolBinding& binding) {
  std::string text;
  for (const SymbolSource& source : binding.sources) {
    text += to_string(source.symbol) + " = (" + describe(program, source.number) + " - " +
            std::to_string(source.offset) + ") / " + std::to_string(source.factor) + "\n";
  }
  for (const InputCheck& check : binding.checks) {
    text += describe(program, check.number) + " == " + to_string(check.expected) + "\n";
  }
  return text;
}

std::string binding_of(const Program& program) { return text_of(program, bind_symbols(program)); }

TEST(BindSymbols, FirstDimensionBindsTheRestIsChecked) {
  const Program program = parse_program(R"(program(s0: size[2, inf]) {
  buffer x: f32[s0, 4] input 0
  buffer y: f32[s0] input 1
  inputs (x = tensor x, y = tensor y)
  return (tensor x)
})");
  EXPECT_EQ(binding_of(program),
            "s0 = (size 0 of input x - 0) / 1\n"
            "size 1 of input x == 4\n"
            "size 0 of input y == s0\n"
            "stride 0 of input x == 4\n"
            "stride 1 of input x == 1\n"
            "stride 0 of input y == 1\n");
}

TEST(BindSymbols, IntsAndLinearSizes) {
  const Program program =
      parse_program(R"(program(s0: size[0, inf], s1: size[0, inf], s2: size[0, inf]) {
  buffer x: f32[2*s0 + 1, 1] strides [s2, 1] input 0
  inputs (x = tensor x, n = int s1, m = int s0*s1)
  return (int s0, int s1, int s2)
})");
  EXPECT_EQ(binding_of(program),
            "s0 = (size 0 of input x - 1) / 2\n"
            "s1 = (input n - 0) / 1\n"
            "s2 = (stride 0 of input x - 0) / 1\n"
            "size 0 of input x == 2*s0 + 1\n"
            "size 1 of input x == 1\n"
            "input m == s0*s1\n"
            "stride 1 of input x == 1\n");
}

TEST(BindSymbols, SymbolsWithoutASourceAreInternalErrors) {
  const Program program = parse_program(R"(program(s0: size[0, inf], s1: size[0, inf]) {
  buffer x: f32[s0*s1] input 0
  inputs (x = tensor x)
  return (int s0, int s1)
})");
  try {
    bind_symbols(program);
    FAIL() << "no error";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("no input determines the size symbols s0, s1"),
              std::string::npos);
  }
}

// Reads the symbols of one tensor [2*s0 + 1, 3] and one int s1.
class ReadSymbols : public ::testing::Test {
 protected:
  std::string read() {
    tensor_ = {nullptr, sizes_, strides_, ndim_, static_cast<LitzDType>(dtype_), nullptr};
    LitzValue inputs[2] = {};
    inputs[0].kind = kind_;
    inputs[0].u.tensor = &tensor_;
    inputs[1].kind = LITZ_INT;
    inputs[1].u.i = number_;
    try {
      std::string text;
      for (int64_t value : read_symbols(program_, bind_symbols(program_), inputs)) {
        text += std::to_string(value) + " ";
      }
      return text;
    } catch (const UserError& error) {
      return error.what();
    }
  }

  Program program_ = parse_program(R"(program(s0: size[1, 8], s1: size[0, inf]) {
  buffer x: f32[2*s0 + 1, 3] input 0
  inputs (x = tensor x, n = int s1)
  return (int s0)
})");
  LitzTensor tensor_{};
  int64_t sizes_[2] = {5, 3};
  int64_t strides_[2] = {3, 1};
  int32_t ndim_ = 2;
  DType dtype_ = DType::kFloat32;
  int32_t kind_ = LITZ_TENSOR;
  int64_t number_ = 7;
};

TEST_F(ReadSymbols, Values) { EXPECT_EQ(read(), "2 7 "); }

TEST_F(ReadSymbols, Remainder) {
  sizes_[0] = 6;
  EXPECT_EQ(read(), "size 0 of input x is 6, expected 5 (2*s0 + 1)");
}

TEST_F(ReadSymbols, OtherSize) {
  sizes_[1] = 4;
  EXPECT_EQ(read(), "size 1 of input x is 4, expected 3 (3)");
}

TEST_F(ReadSymbols, OtherStride) {
  strides_[1] = 2;
  EXPECT_EQ(read(), "stride 1 of input x is 2, expected 1 (1)");
}

TEST_F(ReadSymbols, OutOfRange) {
  sizes_[0] = 19;
  EXPECT_EQ(read(), "size 0 of input x: s0 = 9 is outside the range the program was compiled for");
}

TEST_F(ReadSymbols, OtherKindRankAndDType) {
  kind_ = LITZ_INT;
  EXPECT_EQ(read(), "input 0 (x): expected a tensor");
  kind_ = LITZ_TENSOR;
  ndim_ = 1;
  EXPECT_EQ(read(), "input 0 (x): expected 2 dimensions, got 1");
  ndim_ = 2;
  dtype_ = DType::kFloat64;
  EXPECT_EQ(read(), "input 0 (x): expected dtype float32, got number 9");
}

TEST(ReadSymbolsOfUnitDimensions, StridesMayBeAnything) {
  const Program program = parse_program(R"(program() {
  buffer x: f32[1, 3] input 0
  inputs (x = tensor x)
  return ()
})");
  const int64_t sizes[2] = {1, 3};
  const int64_t strides[2] = {99, 1};
  const LitzTensor x = {nullptr, sizes, strides, 2, static_cast<LitzDType>(DType::kFloat32),
                        nullptr};
  LitzValue input{};
  input.kind = LITZ_TENSOR;
  input.u.tensor = &x;
  EXPECT_TRUE(read_symbols(program, bind_symbols(program), &input).empty());
}

}  // namespace
}  // namespace litz
