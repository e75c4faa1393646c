// A compiled graph's shared library, opened.
#pragma once

#include <litz/artifact.h>

#include <memory>
#include <string>

namespace litz {

class LoadedArtifact {
 public:
  // Opens the library and checks that it is an artifact of this ABI version. Throws UserError that
  // names the path and what is wrong with it. Whoever wrote the file is trusted: opening a library
  // runs code.
  static std::shared_ptr<const LoadedArtifact> load(const std::string& path);

  ~LoadedArtifact();
  LoadedArtifact(const LoadedArtifact&) = delete;
  LoadedArtifact& operator=(const LoadedArtifact&) = delete;

  const LitzArtifact& table() const { return *table_; }
  const std::string& path() const { return path_; }

 private:
  LoadedArtifact(std::string path, void* library, const LitzArtifact* table)
      : path_(std::move(path)), library_(library), table_(table) {}

  std::string path_;
  void* library_;
  const LitzArtifact* table_;
};

}  // namespace litz
