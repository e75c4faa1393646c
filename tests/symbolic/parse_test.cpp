#include <gtest/gtest.h>

#include "samples.h"
#include "support/error.h"

namespace litz {
namespace {

class Parse : public testing::Test {
 protected:
  Index symbol_of(std::string_view name) {
    for (Index symbol : {s0, s1, d0, u0}) {
      if (symbol.symbol_name() == name) return symbol;
    }
    return Index();
  }
  Index parse(std::string_view text) {
    return parse_index(context, text, [&](std::string_view name) { return symbol_of(name); });
  }
  std::string error_of(std::string_view text) {
    try {
      return "no error, but " + to_string(parse(text));
    } catch (const UserError& error) {
      return error.what();
    }
  }

  IndexContext context;
  Index s0 = context.size_symbol("s0");
  Index s1 = context.size_symbol("s1");
  Index d0 = context.variable(0, s0);
  Index u0 = context.size_symbol("u0", {ValueRange::kMin, ValueRange::kMax});
};

TEST_F(Parse, PrintedForms) {
  EXPECT_EQ(to_string(d0 * 16 - s0 + 3), "16*d0 - s0 + 3");
  EXPECT_EQ(to_string(s0 * -1 - 3), "-s0 - 3");
  EXPECT_EQ(to_string(s0 * -2 + d0 * s1), "d0*s1 - 2*s0");
  EXPECT_EQ(to_string(context.constant(-7)), "-7");
  EXPECT_EQ(to_string(floor_div(d0 * s1 + 1, s0 + 1)), "floor_div(d0*s1 + 1, s0 + 1)");
  EXPECT_EQ(to_string(mod(d0, 4) * 4), "4*mod(d0, 4)");
  EXPECT_EQ(to_string(min(max(s0, u0), s1)), "min(s1, max(s0, u0))");
  EXPECT_EQ(to_string(Index()), "<null>");
}

TEST_F(Parse, TermsPrintAlikeWhateverTheOrderOfCreation) {
  IndexContext other;
  const Index b = other.size_symbol("s1");
  const Index a = other.size_symbol("s0");
  EXPECT_EQ(to_string(b * a + a + floor_div(b, 2)), to_string(s0 * s1 + floor_div(s1, 2) + s0));
}

TEST_F(Parse, OwnForms) {
  EXPECT_EQ(parse("16*d0 + s0 - 3"), d0 * 16 + s0 - 3);
  EXPECT_EQ(parse("-d0 + 3"), -d0 + 3);
  EXPECT_EQ(parse("  floor_div( d0 ,4 ) "), floor_div(d0, 4));
  EXPECT_EQ(parse("mod(d0, s0)"), d0);
  EXPECT_EQ(parse("min(s0, 4)"), min(s0, context.constant(4)));
  EXPECT_EQ(parse("max(s0, 4, s1)"), max(max(s0, s1), context.constant(4)));
  EXPECT_EQ(parse("-9223372036854775808"), context.constant(INT64_MIN));
  EXPECT_EQ(parse("9223372036854775807"), context.constant(INT64_MAX));
}

TEST_F(Parse, SympyForms) {
  EXPECT_EQ(parse("s0*s1"), s0 * s1);
  EXPECT_EQ(parse("s0**2"), s0 * s0);
  EXPECT_EQ(parse("2**3**2"), context.constant(512));
  EXPECT_EQ(parse("-s0**2"), -(s0 * s0));
  EXPECT_EQ(parse("-2**2"), context.constant(-4));
  EXPECT_EQ(parse("(s0//2)"), floor_div(s0, 2));
  EXPECT_EQ(parse("2*s0//3*s1"), floor_div(s0 * 2, 3) * s1);
  EXPECT_EQ(parse("-7//2"), context.constant(-4));
  EXPECT_EQ(parse("-7 % 4"), context.constant(1));
  EXPECT_EQ(parse("FloorDiv(s0, 2)"), floor_div(s0, 2));
  EXPECT_EQ(parse("CleanDiv(4*s0, 2)"), s0 * 2);
  EXPECT_EQ(parse("CeilDiv(s0, 2)"), floor_div(s0 + 1, 2));
  EXPECT_EQ(parse("Mod(s0, 2)"), mod(s0, 2));
  EXPECT_EQ(parse("PythonMod(u0, 3)"), mod(u0, 3));
  EXPECT_EQ(parse("ModularIndexing(s0, 1, 8)"), mod(s0, 8));
  EXPECT_EQ(parse("ModularIndexing(s0, 4, 8)"), mod(floor_div(s0, 4), 8));
  EXPECT_EQ(parse("Max(1, s0)"), max(s0, context.constant(1)));
  EXPECT_EQ(parse("Min(s0, Max(s1, 2))"), min(s0, max(s1, context.constant(2))));
  EXPECT_EQ(parse("PowByNatural(s0, 3)"), s0 * s0 * s0);
  EXPECT_EQ(parse("Identity(s0 + 1)"), s0 + 1);
  EXPECT_EQ(parse("-(s0 - 1)*(s0 + 1)"), -(s0 * s0) + 1);
}

TEST_F(Parse, RandomExpressionsRoundTrip) {
  Samples samples(17);
  const auto symbol_of = [&](std::string_view name) {
    for (Index symbol : samples.symbols) {
      if (symbol.symbol_name() == name) return symbol;
    }
    return Index();
  };
  for (int i = 0; i < 5000; ++i) {
    const Index index = samples.expression(static_cast<int>(samples.pick(0, 5))).index;
    const std::string text = to_string(index);
    ASSERT_EQ(parse_index(samples.context, text, symbol_of), index)
        << text << " reads as " << to_string(parse_index(samples.context, text, symbol_of));
  }
}

TEST_F(Parse, ErrorsNameThePosition) {
  const auto message = [](std::string_view text, std::string_view what) {
    return "cannot read the index expression \"" + std::string(text) + "\": " + std::string(what);
  };
  const std::pair<const char*, const char*> cases[] = {
      {"", "unexpected end at position 0"},
      {"s0 +", "unexpected end at position 4"},
      {"s0 + )", "unexpected ')' at position 5"},
      {"(s0", "expected ')' at position 3"},
      {"s0 s1", "unexpected 's' at position 3"},
      {"s0 / 2", "'/' does not give an integer; use '//' or floor_div at position 3"},
      {"2 + s9", "unknown name 's9' at position 4"},
      {"sin(s0)", "unknown function 'sin' at position 0"},
      {"s0 + Mod(s0)", "Mod with 1 arguments at position 5"},
      {"Min()", "unexpected ')' at position 4"},
      {"Mod(s0, 2", "expected ')' at position 9"},
      {"s0 // 0", "division by 0, which may not be positive at position 3"},
      {"Mod(s0, u0)", "division by u0, which may not be positive at position 0"},
      {"ModularIndexing(s0, 1, u0)", "division by u0, which may not be positive at position 0"},
      {"9223372036854775808", "the integer does not fit 64 bits at position 0"},
      {"s0**s1", "an exponent must be an integer between 0 and 64 at position 4"},
      {"s0**-1", "an exponent must be an integer between 0 and 64 at position 4"},
      {"PowByNatural(s0, s1)", "an exponent must be an integer between 0 and 64 at position 0"},
      {"1.5", "unexpected '.' at position 1"},
  };
  for (const auto& [text, what] : cases) EXPECT_EQ(error_of(text), message(text, what));
}

TEST_F(Parse, DeepNestingIsAnErrorNotACrash) {
  const std::string deep = std::string(100000, '(') + "s0" + std::string(100000, ')');
  EXPECT_NE(error_of(deep).find("nested too deeply"), std::string::npos);
  const std::string minuses = std::string(100000, '-') + "s0";
  EXPECT_NE(error_of(minuses).find("nested too deeply"), std::string::npos);
}

TEST_F(Parse, TooLargeResultsAreAUserError) {
  EXPECT_NE(error_of("9223372036854775807 + 1").find("does not fit 64 bits"), std::string::npos);
}

}  // namespace
}  // namespace litz
