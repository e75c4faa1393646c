// Seconds by stage, in the order in which the stages were first entered.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace litz {

class Timings {
 public:
  // Runs the stage and adds its time to that of the name, also where it throws.
  template <class Stage>
  auto measure(std::string_view name, const Stage& stage) {
    struct Stop {
      Timings& timings;
      std::string_view name;
      std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
      ~Stop() { timings.add(name, std::chrono::steady_clock::now() - begin); }
    } stop{*this, name};
    return stage();
  }

  const std::vector<std::pair<std::string, double>>& seconds() const { return seconds_; }

 private:
  void add(std::string_view name, std::chrono::duration<double> time) {
    for (auto& [known, seconds] : seconds_) {
      if (known != name) continue;
      seconds += time.count();
      return;
    }
    seconds_.emplace_back(name, time.count());
  }

  std::vector<std::pair<std::string, double>> seconds_;
};

}  // namespace litz
