#include "graph/bind_arguments.h"

#include <gtest/gtest.h>

#include "graph/schema_registry.h"
#include "support/error.h"

namespace litz {
namespace {

Argument fit(const std::string& type, Argument argument) {
  const OpSchema schema = parse_schema("my::op(" + type + " x) -> ()");
  EXPECT_TRUE(fit_argument(schema.arguments[0], argument)) << type;
  return argument;
}

bool fits(const std::string& type, Argument argument) {
  const OpSchema schema = parse_schema("my::op(" + type + " x) -> ()");
  return fit_argument(schema.arguments[0], argument);
}

TEST(BindArguments, ConvertsToTheStoredAlternative) {
  IndexContext context;
  const Index size = context.size_symbol("s0");
  const Argument two = int64_t{2};
  EXPECT_TRUE(fit("int", true) == Argument(int64_t{1}));
  EXPECT_TRUE(fit("SymInt", context.constant(2)) == two);
  EXPECT_TRUE(fit("SymInt", size) == Argument(size));
  EXPECT_TRUE(fit("float", two) == Argument(2.0));
  EXPECT_TRUE(fit("float?", Argument()) == Argument());
  EXPECT_TRUE(fit("bool", two) == Argument(true));
  EXPECT_TRUE(fit("Scalar", true) == Argument(true));
  EXPECT_TRUE(fit("Tensor", two) == two);
  EXPECT_TRUE(fit("complex", two) == Argument(std::complex<double>(2, 0)));
  EXPECT_TRUE(fit("Device", std::string("cpu")) == Argument(DeviceArg{"cpu"}));
  EXPECT_TRUE(fit("int[2]", two) == Argument(ArgumentList{two, two}));
  EXPECT_TRUE(fit("int[1]?", two) == Argument(ArgumentList{two}));
  EXPECT_TRUE(fit("float[]", ArgumentList{two, 0.5}) == Argument(ArgumentList{2.0, 0.5}));
}

TEST(BindArguments, RefusesWhatDoesNotFit) {
  const Value value{NodeId(0), 0};
  EXPECT_FALSE(fits("int", 2.0));
  EXPECT_FALSE(fits("int", Argument()));
  EXPECT_FALSE(fits("Tensor", std::string("x")));
  EXPECT_FALSE(fits("Tensor[]", value));
  EXPECT_FALSE(fits("Tensor[]", ArgumentList{Argument()}));
  EXPECT_TRUE(fits("Tensor?[]", ArgumentList{Argument(), value}));
  EXPECT_TRUE(fits("Tensor", Argument()));
  EXPECT_FALSE(fits("str", int64_t{1}));
  EXPECT_FALSE(fits("ScalarType", int64_t{6}));
  EXPECT_FALSE(fits("Layout", LayoutArg{99}));
  EXPECT_FALSE(fits("Generator", int64_t{1}));
  EXPECT_TRUE(fits("Generator?", Argument()));
  EXPECT_FALSE(fits("int", Index()));
}

TEST(BindArguments, FillsInDefaultsInSchemaOrder) {
  SchemaRegistry registry;
  const OpSchema& schema = *registry.find("aten::add.Tensor");
  const Value x{NodeId(0), 0};
  const std::vector<Argument> bound = bind_arguments(schema, {x}, {{"other", int64_t{3}}});
  ASSERT_EQ(bound.size(), 3u);
  EXPECT_TRUE(bound[0] == Argument(x));
  EXPECT_TRUE(bound[1] == Argument(int64_t{3}));
  EXPECT_TRUE(bound[2] == Argument(int64_t{1}));
  EXPECT_THROW(bind_arguments(schema, {x}), UserError);
  EXPECT_THROW(bind_arguments(schema, {x, x, x, x}), UserError);
  EXPECT_THROW(bind_arguments(schema, {x, x}, {{"other", x}}), UserError);
  EXPECT_THROW(bind_arguments(schema, {x, x}, {{"beta", x}}), UserError);
}

TEST(Argument, ComparesFloatsByTheirBits) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(Argument(nan) == Argument(nan));
  EXPECT_FALSE(Argument(0.0) == Argument(-0.0));
  EXPECT_FALSE(Argument(1.0) == Argument(int64_t{1}));
  EXPECT_FALSE(Argument(true) == Argument(int64_t{1}));
  EXPECT_FALSE(Argument(ArgumentList{0.0}) == Argument(ArgumentList{-0.0}));
  EXPECT_FALSE(Argument(std::complex<double>(0, 0.0)) == Argument(std::complex<double>(0, -0.0)));
  EXPECT_EQ(hash(Argument(ArgumentList{nan})), hash(Argument(ArgumentList{nan})));
}

}  // namespace
}  // namespace litz
