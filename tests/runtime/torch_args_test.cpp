#include "runtime/torch_args.h"

#include <gtest/gtest.h>

namespace litz {
namespace {

TEST(ParseTorchType, ReadsTheTypesOfSchemas) {
  const TorchType tensor = parse_torch_type("Tensor(a!)");
  EXPECT_EQ(tensor.base, TorchBaseType::kTensor);
  EXPECT_FALSE(tensor.list || tensor.optional || tensor.optional_element);

  const TorchType sizes = parse_torch_type("SymInt[2]?");
  EXPECT_EQ(sizes.base, TorchBaseType::kInt);
  EXPECT_TRUE(sizes.list && sizes.optional && !sizes.optional_element);

  const TorchType indices = parse_torch_type("Tensor?[]");
  EXPECT_EQ(indices.base, TorchBaseType::kTensor);
  EXPECT_TRUE(indices.list && indices.optional_element && !indices.optional);

  const TorchType views = parse_torch_type("Tensor(a)[]");
  EXPECT_TRUE(views.list && !views.optional && !views.optional_element);

  EXPECT_TRUE(parse_torch_type("ScalarType?").optional);
  EXPECT_EQ(parse_torch_type("ScalarType?").base, TorchBaseType::kDType);
  EXPECT_EQ(parse_torch_type("Scalar").base, TorchBaseType::kOther);
  EXPECT_EQ(parse_torch_type("Generator?").base, TorchBaseType::kOther);
}

}  // namespace
}  // namespace litz
