#include "runtime/frame.h"

#include <gtest/gtest.h>

#include "support/dtype.h"

namespace litz {
namespace {

// A host that notes what it is asked for.
struct Host {
  static int allocate(void* self, LitzTensor* tensor) {
    auto& host = *static_cast<Host*>(self);
    if (host.fails) return LITZ_OUT_OF_MEMORY;
    host.bytes = tensor->sizes[0];
    host.dtype = tensor->dtype;
    tensor->data = host.memory;
    tensor->handle = self;
    return LITZ_OK;
  }
  static void release(void* self, LitzTensor* tensor) {
    auto& host = *static_cast<Host*>(self);
    host.released += tensor->handle == self && tensor->data == host.memory;
  }

  char memory[64] = {};
  int64_t bytes = 0;
  LitzDType dtype = 0;
  int released = 0;
  bool fails = false;
  void* workspace = nullptr;  // what the artifact was given
};

int64_t workspace_size = 48;

LitzArtifact artifact() {
  LitzArtifact table{};
  table.abi_version = LITZ_ABI_VERSION;
  table.workspace_bytes = [](const LitzValue*) { return workspace_size; };
  table.run = [](const LitzHost* host, const LitzValue*, LitzValue*, LitzTensor*, int64_t*,
                 void* workspace) -> int {
    static_cast<Host*>(host->self)->workspace = workspace;
    return 17;
  };
  return table;
}

int run(Host& host) {
  const LitzArtifact table = artifact();
  Frame frame(table);
  LitzHost functions{};
  functions.self = &host;
  functions.allocate = Host::allocate;
  functions.release = Host::release;
  return run_artifact(table, functions, frame, nullptr);
}

TEST(RunArtifact, WithoutAPoolTheHostGivesTheWorkspace) {
  workspace_size = 48;
  Host host;
  EXPECT_EQ(run(host), 17) << "the status of the artifact";
  EXPECT_EQ(host.workspace, host.memory);
  EXPECT_EQ(host.bytes, 48);
  EXPECT_EQ(host.dtype, static_cast<LitzDType>(DType::kUInt8));
  EXPECT_EQ(host.released, 1);
}

TEST(RunArtifact, NoWorkspaceIsNotAskedFor) {
  workspace_size = 0;
  Host host;
  host.fails = true;
  EXPECT_EQ(run(host), 17);
  EXPECT_EQ(host.workspace, nullptr);
}

TEST(RunArtifact, AHostWithoutMemoryEndsTheRun) {
  workspace_size = 48;
  Host host;
  host.fails = true;
  EXPECT_EQ(run(host), LITZ_OUT_OF_MEMORY);
  EXPECT_EQ(host.workspace, nullptr);
  EXPECT_EQ(host.released, 0);
}

}  // namespace
}  // namespace litz
