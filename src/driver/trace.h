// Writes the stages of a compilation as numbered files, where the `trace` option names a folder.
#pragma once

#include <string>
#include <string_view>

namespace litz {

class Trace {
 public:
  // `folder` empty: nothing is written. Each compilation makes a folder of its own in it, "graph0",
  // "graph1", ...
  explicit Trace(const std::string& folder);

  // Why a folder that was asked for cannot be made; empty where it could.
  const std::string& fault() const { return fault_; }
  bool enabled() const { return !folder_.empty(); }
  const std::string& folder() const { return folder_; }

  // Writes "NN_name" and says nothing where that fails: a trace never stops a compilation.
  void write(std::string_view name, std::string_view text);

 private:
  std::string folder_;
  std::string fault_;
  int next_ = 0;
};

}  // namespace litz
