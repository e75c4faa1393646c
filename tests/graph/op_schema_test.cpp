#include "graph/op_schema.h"

#include <gtest/gtest.h>

#include "graph/schema_registry.h"
#include "support/error.h"

namespace litz {
namespace {

TEST(OpSchema, BuiltinTableIsSortedAndReadsBack) {
  std::string_view previous;
  for (const BuiltinSchema& row : builtin_schemas()) {
    EXPECT_LT(previous, row.full_name());
    previous = row.full_name();
    const OpSchema schema = parse_schema(row.text);
    EXPECT_EQ(to_string(schema), row.text);
    EXPECT_EQ(schema.full_name(), row.full_name());
  }
  EXPECT_GT(builtin_schemas().size(), 3000u);
}

TEST(OpSchema, ParsesTypes) {
  const OpSchema schema = parse_schema(
      "my::op.out(Tensor(a!) self, Tensor?[] indices, SymInt[2]? size=None, *, int[2] stride=1, "
      "float eps=1, Tensor(b -> *)[] rest) -> (Tensor(a!) values, Tensor[])");
  EXPECT_EQ(schema.name, "my::op");
  EXPECT_EQ(schema.overload, "out");
  ASSERT_EQ(schema.arguments.size(), 6u);
  EXPECT_TRUE(schema.arguments[0].is_mutated);
  EXPECT_EQ(schema.arguments[0].alias_set, "a");
  EXPECT_TRUE(schema.arguments[1].is_list);
  EXPECT_TRUE(schema.arguments[1].is_element_optional);
  EXPECT_FALSE(schema.arguments[1].is_optional);
  EXPECT_TRUE(schema.arguments[2].is_optional);
  EXPECT_EQ(schema.arguments[2].list_size, 2u);
  EXPECT_TRUE(schema.arguments[2].default_value.is_none());
  EXPECT_FALSE(schema.arguments[2].keyword_only);
  EXPECT_TRUE(schema.arguments[3].keyword_only);
  EXPECT_TRUE(schema.arguments[3].default_value == Argument(ArgumentList{int64_t{1}, int64_t{1}}));
  EXPECT_TRUE(schema.arguments[4].default_value == Argument(1.0));
  EXPECT_EQ(schema.arguments[5].alias_after, "*");
  EXPECT_EQ(schema.returns.size(), 2u);
  EXPECT_EQ(schema.find("eps"), 4);
  EXPECT_EQ(schema.find("epsilon"), -1);
  EXPECT_TRUE(schema.mutates());
}

TEST(OpSchema, ReadsDefaultsAsTheirType) {
  SchemaRegistry registry;
  const OpSchema* schema = registry.find("aten::contiguous");
  ASSERT_NE(schema, nullptr);
  EXPECT_TRUE(schema->arguments[1].default_value == Argument(MemoryFormatArg{0}));
  schema = registry.find("aten::_test_string_default");
  ASSERT_NE(schema, nullptr);
  EXPECT_TRUE(schema->arguments[1].default_value == Argument(std::string("\"'\\")));
  schema = registry.find("aten::tril_indices");
  ASSERT_NE(schema, nullptr);
  EXPECT_TRUE(schema->arguments[schema->find("dtype")].default_value == Argument(DType::kInt64));
}

TEST(OpSchema, NamesThePositionOfAnError) {
  for (const auto& [text, message] : {
           std::pair{"my::op(Tensor x", "schema 'my::op(Tensor x': expected ')' at position 15"},
           std::pair{"my::op() -> Tensor x y",
                     "schema 'my::op() -> Tensor x y': expected the end of the schema at position "
                     "21"},
           std::pair{"my::op(int n=one) -> ()",
                     "schema 'my::op(int n=one) -> ()': expected a default value at position 13"},
           std::pair{"op() -> ()", "schema 'op() -> ()': expected '::' at position 2"},
       }) {
    try {
      parse_schema(text);
      ADD_FAILURE() << text;
    } catch (const UserError& error) {
      EXPECT_STREQ(error.what(), message);
    }
  }
}

TEST(SchemaRegistry, FindsBuiltinOps) {
  SchemaRegistry registry;
  const OpSchema* add = registry.find("aten::add.Tensor");
  ASSERT_NE(add, nullptr);
  EXPECT_TRUE(add->is_builtin);
  EXPECT_TRUE(add->has_tag(kPointwise));
  EXPECT_EQ(registry.find("aten::add.Tensor"), add);
  EXPECT_EQ(registry.find("aten::add.Tenso"), nullptr);
  EXPECT_EQ(registry.find("aten::add.Tensorr"), nullptr);
  EXPECT_EQ(registry.find(""), nullptr);
  EXPECT_NE(registry.find("prims::convert_element_type"), nullptr);
  EXPECT_TRUE(registry.find("aten::rand_like")->has_tag(kRandom));
}

TEST(SchemaRegistry, DeclaredSchemaTakesThePlaceOfTheBuiltinOne) {
  SchemaRegistry registry;
  const OpSchema* built_in = registry.find("aten::sin");
  EXPECT_EQ(&registry.declare("aten::sin(Tensor self) -> Tensor"), built_in);
  const OpSchema& newer = registry.declare("aten::sin(Tensor self, int n=0) -> Tensor");
  EXPECT_NE(&newer, built_in);
  EXPECT_EQ(registry.find("aten::sin"), &newer);
  EXPECT_TRUE(newer.is_builtin);
  EXPECT_TRUE(newer.has_tag(kPointwise));
  EXPECT_FALSE(SchemaRegistry::is_builtin_text(newer));
  EXPECT_EQ(built_in->arguments.size(), 1u);  // still valid
  const OpSchema& own = registry.declare("my::op(Tensor x) -> Tensor");
  EXPECT_FALSE(own.is_builtin);
  EXPECT_EQ(&registry.declare("my::op(Tensor x) -> Tensor"), &own);
}

}  // namespace
}  // namespace litz
