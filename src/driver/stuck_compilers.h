// Compilers that do not come back. Waiting for one costs its time limit, so a process does that
// once.
#pragma once

#include <map>
#include <mutex>
#include <string>

namespace litz {

// Thread-safe.
class StuckCompilers {
 public:
  // Whether it did not come back within this many seconds or more. No limit is the longest one.
  bool contains(const std::string& path, double limit_seconds) const {
    std::lock_guard lock(mutex_);
    const auto found = limits_.find(path);
    return found != limits_.end() && limit_seconds > 0 && limit_seconds <= found->second;
  }
  void add(const std::string& path, double limit_seconds) {
    std::lock_guard lock(mutex_);
    limits_[path] = limit_seconds;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, double> limits_;
};

}  // namespace litz
