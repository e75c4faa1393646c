#include "codegen/cpp/cpp_text.h"

#include <gtest/gtest.h>

#include <clocale>
#include <limits>

namespace litz {
namespace {

TEST(CppText, LiteralsHaveTheirValue) {
  EXPECT_EQ(cpp_float_literal(1, true), "1.0");
  EXPECT_EQ(cpp_float_literal(0.1f, false), "0.1f");
  EXPECT_EQ(cpp_float_literal(-0.0, true), "(-0.0)");
  EXPECT_EQ(cpp_float_literal(1e300, true), "1e+300");
  EXPECT_EQ(cpp_float_literal(-std::numeric_limits<double>::infinity(), false),
            "-__builtin_inff()");
  EXPECT_EQ(cpp_float_literal(std::numeric_limits<double>::quiet_NaN(), true),
            "__builtin_nan(\"\")");
  EXPECT_EQ(cpp_integer_literal(7), "7");
  EXPECT_EQ(cpp_integer_literal(-7), "(-7)");
  EXPECT_EQ(cpp_integer_literal(int64_t{1} << 40), "1099511627776LL");
  EXPECT_EQ(cpp_integer_literal(INT64_MIN), "(-9223372036854775807LL - 1)");
}

// A program may set the user's locale, in which printf writes 0,5.
TEST(CppText, LiteralsDoNotDependOnTheLocale) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C"}) {
    if (std::setlocale(LC_ALL, name) == nullptr) continue;
    EXPECT_EQ(cpp_float_literal(0.5, true), "0.5") << name;
    EXPECT_EQ(cpp_float_literal(2.5e-3f, false), "0.0025f") << name;
  }
  std::setlocale(LC_ALL, before.c_str());
}

TEST(CppText, StringsAreEscaped) {
  EXPECT_EQ(cpp_string_literal("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(cpp_string_literal("\n1\xff??"), "\"\\0121\\377\\077\\077\"");
}

TEST(CppText, IndicesAreExpressions) {
  IndexContext context;
  const Index s = context.size_symbol("s0", {1, 1000});
  const Index d = context.variable(0, s);
  Prelude prelude{PreludeTarget{}};
  const auto name = [&](Index symbol) { return symbol == s ? "n0" : "i"; };
  EXPECT_EQ(cpp_index(context.constant(-3), prelude, name), "(-3)");
  EXPECT_EQ(cpp_index(floor_div(d, context.constant(4)), prelude, name), "(i / 4)");
  EXPECT_EQ(cpp_index(mod(d, context.constant(4)), prelude, name), "(i % 4)");
  const std::string sum = cpp_index(s * 2 - d - 5, prelude, name);
  EXPECT_TRUE(sum == "(n0 * 2 + i * (-1) - 5)" || sum == "(i * (-1) + n0 * 2 - 5)" ||
              sum == "(n0 * 2 - i - 5)")
      << sum;
  // What may be negative is rounded down by a function.
  const std::string below = cpp_index(floor_div(d - s, context.constant(4)), prelude, name);
  EXPECT_EQ(below.find('/'), std::string::npos) << below;
}

}  // namespace
}  // namespace litz
