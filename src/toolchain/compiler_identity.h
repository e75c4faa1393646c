// Programs on this machine: where they are, and what kind of compiler they say they are.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "support/error.h"

namespace litz {

// What of a compiler may shape the code it makes; holds no path.
struct CompilerIdentity {
  enum class Family : uint8_t { kGcc, kClang, kZig };

  Family family = Family::kGcc;
  std::string version;  // as the compiler words it

  std::string text() const;  // "gcc (Debian 12.2.0-14) 12.2.0", "Debian clang version 14.0.6"
  friend bool operator==(const CompilerIdentity&, const CompilerIdentity&) = default;
};

// Remembers the identity of programs by path, modification time and size, since clang takes 20 ms
// to say its version. Safe to use from any thread.
class CompilerVersions {
 public:
  // The identity, or why the program is not a usable compiler.
  Result<CompilerIdentity> identify(const std::string& path,
                                    const std::vector<std::string>& environment);

 private:
  using FileStamp = std::tuple<std::string, int64_t, int64_t>;
  std::mutex mutex_;
  std::map<FileStamp, CompilerIdentity> known_;
};

bool is_executable_file(const std::string& path);

// The first executable file `name` in the colon-separated folders, or `name` itself where it has a
// slash. Empty where there is none.
std::string find_program(const std::string& name, const std::string& search_path);

}  // namespace litz
