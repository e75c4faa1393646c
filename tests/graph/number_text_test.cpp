#include "graph/number_text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace litz {
namespace {

std::vector<std::byte> bytes_of(uint64_t bits, int64_t count) {
  std::vector<std::byte> bytes;
  for (int64_t i = 0; i < count; ++i)
    bytes.push_back(static_cast<std::byte>((bits >> (8 * i)) & 0xff));
  return bytes;
}

bool is_other_nan(DType dtype, uint64_t bits) {
  switch (dtype) {
    case DType::kFloat16:
      return (bits & 0x7fff) > 0x7c00 && bits != 0x7e00;
    case DType::kBFloat16:
      return (bits & 0x7fff) > 0x7f80 && bits != 0x7fc0;
    case DType::kFloat32:
      return std::isnan(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case DType::kFloat64:
      return std::isnan(std::bit_cast<double>(bits));
    default:
      return false;
  }
}

void expect_exact(DType dtype, uint64_t bits) {
  const std::vector<std::byte> bytes = bytes_of(bits, size_of(dtype));
  const std::optional<std::string> text = print_elements(dtype, bytes);
  if (!text) {  // written as hexadecimal: a NaN that is not the plain one
    EXPECT_TRUE(is_other_nan(dtype, bits)) << to_string(dtype) << " " << bits;
    return;
  }
  std::vector<std::byte> again;
  ASSERT_TRUE(parse_element(dtype, *text, again)) << *text;
  EXPECT_EQ(again, bytes) << to_string(dtype) << " " << *text << " " << bits;
}

TEST(NumberText, EveryHalfIsExact) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    expect_exact(DType::kFloat16, bits);
    expect_exact(DType::kBFloat16, bits);
  }
  EXPECT_EQ(print_elements(DType::kFloat16, bytes_of(0x3c00, 2)), "1.0");
  EXPECT_EQ(print_elements(DType::kBFloat16, bytes_of(0x3f80, 2)), "1.0");
  EXPECT_EQ(print_elements(DType::kFloat16, bytes_of(0x7e00, 2)), "nan");
  EXPECT_EQ(print_elements(DType::kFloat16, bytes_of(0x7e01, 2)), std::nullopt);
}

TEST(NumberText, HalvesRoundToNearestEven) {
  auto half = [](const char* text) {
    std::vector<std::byte> bytes;
    EXPECT_TRUE(parse_element(DType::kFloat16, text, bytes));
    return std::to_integer<int>(bytes[0]) | std::to_integer<int>(bytes[1]) << 8;
  };
  EXPECT_EQ(half("65519.9"), 0x7bff);
  EXPECT_EQ(half("65520"), 0x7c00);
  EXPECT_EQ(half("1.00048828125"), 0x3c00);  // halfway between 0x3c00 and 0x3c01
  EXPECT_EQ(half("1.00146484375"), 0x3c02);  // halfway between 0x3c01 and 0x3c02
  EXPECT_EQ(half("2.98e-8"), 0x0000);        // just under half of the smallest
  EXPECT_EQ(half("2.9802322387695312e-8"), 0x0000);
  EXPECT_EQ(half("3e-8"), 0x0001);
  EXPECT_EQ(half("-0.0"), 0x8000);
}

TEST(NumberText, FloatsAndIntegersAreExact) {
  uint64_t bits = 1;
  for (int i = 0; i < 2000; ++i) {
    bits = bits * 6364136223846793005u + 1442695040888963407u;
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt8, DType::kUInt8,
                              DType::kInt16, DType::kInt32, DType::kInt64, DType::kUInt64})
      expect_exact(dtype, bits);
  }
  for (uint64_t subnormal = 0; subnormal < 64; ++subnormal) {
    expect_exact(DType::kFloat32, subnormal);
    expect_exact(DType::kFloat64, subnormal);
  }
}

TEST(NumberText, RefusesWhatIsNoElement) {
  std::vector<std::byte> bytes;
  EXPECT_FALSE(parse_element(DType::kUInt8, "-1", bytes));
  EXPECT_FALSE(parse_element(DType::kInt8, "128", bytes));
  EXPECT_FALSE(parse_element(DType::kInt32, "1.5", bytes));
  EXPECT_FALSE(parse_element(DType::kBool, "1", bytes));
  EXPECT_FALSE(parse_element(DType::kFloat32, "", bytes));
  EXPECT_FALSE(parse_element(DType::kComplex64, "1", bytes));
  EXPECT_TRUE(bytes.empty());
}

TEST(NumberText, DoublesKeepTheirBits) {
  for (const uint64_t bits : {0x7ff8000000000000u, 0x7ff8000000000001u, 0xfff8000000000000u,
                              0x7ff0000000000000u, 0x8000000000000000u, 0x3ff0000000000000u}) {
    const std::optional<double> again = parse_double(print_double(std::bit_cast<double>(bits)));
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(std::bit_cast<uint64_t>(*again), bits);
  }
  EXPECT_EQ(print_double(2.0), "2.0");
  EXPECT_EQ(print_double(1e300), "1e+300");
  EXPECT_FALSE(parse_double("nan(0x").has_value());
  EXPECT_FALSE(parse_double("1.0x").has_value());
}

}  // namespace
}  // namespace litz
