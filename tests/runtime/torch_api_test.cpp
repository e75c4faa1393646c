#include "runtime/torch_api.h"

#include <gtest/gtest.h>

namespace litz {
namespace {

TEST(TorchApi, ReadsDevicesAsTorchPrintsThem) {
  TorchApi api;
  api.cpu = 0;
  api.cuda = 1;
  EXPECT_EQ(api.device("cpu"), (TorchDevice{0, kNoDeviceIndex}));
  EXPECT_EQ(api.device("cuda"), (TorchDevice{1, kNoDeviceIndex}));
  EXPECT_EQ(api.device("cuda:0"), (TorchDevice{1, 0}));
  EXPECT_EQ(api.device("cuda:12"), (TorchDevice{1, 12}));
  for (const char* other : {"", "meta", "mps:0", "cuda:", "cuda:-1", "cuda:1x", "cuda1", "cudax"}) {
    EXPECT_FALSE(api.device(other)) << other;
  }
  for (const char* text : {"cpu", "cuda", "cuda:3"}) {
    EXPECT_EQ(api.device_text(*api.device(text)), text);
  }
  EXPECT_EQ(api.device_text({9, 0}), "another device");
}

}  // namespace
}  // namespace litz
