// A compiled graph's shared library, opened.
#pragma once

#include <litz/artifact.h>

#include <memory>
#include <string>

#include "runtime/executable.h"

namespace litz {

class LoadedArtifact final : public Executable {
 public:
  // Opens the library and checks that it is an artifact of this ABI version. Throws UserError that
  // names the path and what is wrong with it. Whoever wrote the file is trusted: opening a library
  // runs code.
  static std::shared_ptr<const LoadedArtifact> load(const std::string& path);

  ~LoadedArtifact() override;
  LoadedArtifact(const LoadedArtifact&) = delete;
  LoadedArtifact& operator=(const LoadedArtifact&) = delete;

  const LitzArtifact& table() const override { return *table_; }
  int run(const LitzHost& host, Frame& frame, BlockPool* blocks) const override {
    return run_artifact(*table_, host, frame, blocks);
  }
  const std::string& path() const { return path_; }

 private:
  LoadedArtifact(std::string path, void* library, const LitzArtifact* table)
      : path_(std::move(path)), library_(library), table_(table) {}

  std::string path_;
  void* library_;
  const LitzArtifact* table_;
};

}  // namespace litz
