#include "runtime/backend_image.h"

#include <gtest/gtest.h>

#include "litz/artifact.h"
#include "support/error.h"

namespace litz {
namespace {

BackendImage sample() {
  BackendImage image;
  image.kernels = {{"k0", 3, 1, true, "node a (model.py:1 in f)"}, {"k1", 1, 0, false, ""}};
  image.failures = {{LITZ_INDEX_OUT_OF_RANGE, "index out of range in "}};
  image.bytes = std::string("\0end\nbytes\n", 11);
  return image;
}

TEST(BackendImage, ComesBackAsItWas) {
  const BackendImage back = unpack_backend_image(pack_backend_image(sample()));
  ASSERT_EQ(back.kernels.size(), 2u);
  EXPECT_EQ(back.kernels[0].name, "k0");
  EXPECT_EQ(back.kernels[0].pointers, 3);
  EXPECT_EQ(back.kernels[0].integers, 1);
  EXPECT_TRUE(back.kernels[0].checks_values);
  EXPECT_EQ(back.kernels[0].place, "node a (model.py:1 in f)");
  EXPECT_FALSE(back.kernels[1].checks_values);
  EXPECT_EQ(back.kernels[1].place, "");
  EXPECT_EQ(back.failures, sample().failures);
  EXPECT_EQ(back.bytes, sample().bytes);
}

TEST(BackendImage, ALineBreakInANameIsNoLine) {
  BackendImage image = sample();
  image.kernels[0].place = "a\nend\nb";
  EXPECT_EQ(unpack_backend_image(pack_backend_image(image)).kernels[0].place, "a end b");
}

TEST(BackendImage, OtherBytesAreRefused) {
  EXPECT_THROW(unpack_backend_image(""), UserError);
  EXPECT_THROW(unpack_backend_image("litz backend image 2\nend\n"), UserError);
  const std::string whole = pack_backend_image(sample());
  EXPECT_THROW(unpack_backend_image(whole.substr(0, 40)), UserError);
}

}  // namespace
}  // namespace litz
