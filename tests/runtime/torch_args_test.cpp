#include "runtime/torch_args.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace litz {
namespace {

// Tensors of a torch that only remembers what it was asked for.
struct MadeTensor {
  const void* data = nullptr;
  int64_t count = 0;   // of a tensor of the whole block
  int64_t offset = 0;  // of a view
  TorchTensor base = nullptr;
};

std::vector<MadeTensor*>& living() {
  static std::vector<MadeTensor*> tensors;
  return tensors;
}

TorchApi remembering_torch() {
  TorchApi api;
  api.from_blob = [](void* data, int64_t, const int64_t* sizes, const int64_t*, int64_t, int32_t,
                     int32_t, int32_t, TorchTensor* made) -> TorchStatus {
    living().push_back(new MadeTensor{.data = data, .count = sizes[0]});
    *made = living().back();
    return 0;
  };
  api.reinterpret_tensor = [](TorchTensor base, int64_t, const int64_t*, const int64_t*,
                              int64_t offset, TorchTensor* made) -> TorchStatus {
    living().push_back(new MadeTensor{.offset = offset, .base = base});
    *made = living().back();
    return 0;
  };
  api.delete_tensor = [](TorchTensor tensor) -> TorchStatus {
    std::erase(living(), tensor);
    delete static_cast<MadeTensor*>(tensor);
    return 0;
  };
  return api;
}

LitzTensor tensor_at(void* data, DType dtype, const int64_t* size) {
  static const int64_t stride = 1;
  return {.data = data,
          .sizes = size,
          .strides = &stride,
          .ndim = 1,
          .dtype = static_cast<LitzDType>(dtype),
          .handle = nullptr};
}

TEST(TorchArena, MakesViewsOfOneTensorOfEachDtype) {
  const TorchApi api = remembering_torch();
  alignas(64) std::array<char, 1024> memory{};
  const int64_t eight = 8;
  {
    TorchArena arena(api, {.type = 1, .index = 0});
    arena.set_block(memory.data(), 1024);
    const auto made = [&](size_t at, DType dtype) {
      return static_cast<MadeTensor*>(arena.make(tensor_at(memory.data() + at, dtype, &eight)));
    };
    MadeTensor* first = made(64, DType::kFloat32);
    MadeTensor* last = made(1024 - 32, DType::kFloat32);
    MadeTensor* half = made(128, DType::kBFloat16);
    ASSERT_TRUE(first != nullptr && last != nullptr && half != nullptr);
    EXPECT_EQ(first->offset, 16);
    EXPECT_EQ(last->offset, 248);
    EXPECT_EQ(half->offset, 64);
    EXPECT_EQ(first->base, last->base);
    EXPECT_NE(first->base, half->base);
    EXPECT_EQ(static_cast<MadeTensor*>(first->base)->count, 256);
    EXPECT_EQ(static_cast<MadeTensor*>(half->base)->count, 512);
    // Outside, across the end, between two elements.
    int64_t elsewhere = 0;
    EXPECT_EQ(arena.make(tensor_at(&elsewhere, DType::kFloat32, &eight)), nullptr);
    EXPECT_EQ(made(1024 - 28, DType::kFloat32), nullptr);
    EXPECT_EQ(made(2, DType::kFloat32), nullptr);
    for (MadeTensor* tensor : {first, last, half}) api.delete_tensor(tensor);
  }
  EXPECT_TRUE(living().empty());
}

TEST(TorchArena, WithoutABlockMakesNothing) {
  const TorchApi api = remembering_torch();
  TorchArena arena(api, {.type = 1, .index = 0});
  int64_t number = 0;
  const int64_t one = 1;
  EXPECT_FALSE(arena.has_block());
  EXPECT_EQ(arena.make(tensor_at(&number, DType::kInt64, &one)), nullptr);
}

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
