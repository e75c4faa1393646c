#include "runtime/loaded_artifact.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "support/error.h"

namespace litz {
namespace {

std::string message_of(const std::string& path) {
  try {
    LoadedArtifact::load(path);
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

TEST(LoadedArtifact, Loads) {
  const auto artifact = LoadedArtifact::load(LITZ_TEST_ADD_RELU);
  EXPECT_EQ(artifact->table().num_inputs, 2);
  EXPECT_STREQ(artifact->table().inputs[1].name, "b");
}

TEST(LoadedArtifact, SaysWhatIsWrong) {
  EXPECT_TRUE(contains(message_of("no/such/file.so"), "there is no such file"));
  EXPECT_TRUE(contains(message_of("/"), "there is no such file"));

  const std::string text = testing::TempDir() + "litz_not_a_library.so";
  std::ofstream(text) << "this is text";
  EXPECT_TRUE(contains(message_of(text), "litz_not_a_library.so"));

  EXPECT_TRUE(contains(message_of(LITZ_TEST_NO_ARTIFACT), "exports no symbol litz_artifact"));
  EXPECT_TRUE(contains(message_of(LITZ_TEST_OLD_ARTIFACT), "ABI version 0"));
  EXPECT_TRUE(contains(message_of(LITZ_TEST_OTHER_TARGET), "it is compiled for avx9000, and"));
}

}  // namespace
}  // namespace litz
