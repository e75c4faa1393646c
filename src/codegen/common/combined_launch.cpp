#include "codegen/common/combined_launch.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "codegen/cpp/cpp_artifact.h"
#include "support/error.h"

namespace litz {
namespace {

// A kernel's parameters have 4 KB; some are for what compilers add.
constexpr size_t kMostParameters = 480;
// Compilation takes as long as the bodies are.
constexpr size_t kMostBodies = 8;
// A choice among more costs time in each program.
constexpr size_t kMostMembers = 16;

std::string text(int64_t value) { return std::to_string(value); }

class ChoicePrinter {
 public:
  ChoicePrinter(const CombinedLaunch& launch, const ChoiceWords& words, int level,
                const std::string& function_prefix)
      : launch_(launch), words_(words), level_(level), prefix_(function_prefix) {}

  std::string print() {
    std::vector<int64_t> ends;
    for (const CombinedLaunch::Body& body : launch_.bodies)
      ends.push_back((ends.empty() ? 0 : ends.back()) + body.programs());
    choose(ends, 0, ends.size());
    return text_;
  }

 private:
  void line(const std::string& content) {
    text_.append(static_cast<size_t>(level_) * 2, ' ');
    text_ += content + "\n";
  }

  // The body whose programs end at ends[i], in a tree of comparisons.
  void choose(const std::vector<int64_t>& ends, size_t begin, size_t end) {
    if (end - begin == 1) return print_body(begin, begin == 0 ? 0 : ends[begin - 1]);
    const size_t middle = begin + (end - begin) / 2;
    line(words_.branch[0] + "pid < " + text(ends[middle - 1]) + words_.branch[1]);
    level_ += words_.step;
    choose(ends, begin, middle);
    level_ -= words_.step;
    line(words_.otherwise);
    level_ += words_.step;
    choose(ends, middle, end);
    level_ -= words_.step;
    if (!words_.end.empty()) line(words_.end);
  }

  std::string parameter(BufferId buffer) const {
    return "p" + text(static_cast<int64_t>(launch_.parameter(buffer)));
  }

  void call(size_t body, const std::string& first, const std::string& length,
            const std::vector<std::string>& arguments) {
    std::string list = first == "0" ? "pid" : "pid - " + first;
    list += ", " + length;
    for (const std::string& argument : arguments) list += ", " + argument;
    line(prefix_ + text(static_cast<int64_t>(body)) + "(" + list + ")" + words_.end_of_statement);
  }

  void print_body(size_t number, int64_t begin) {
    const CombinedLaunch::Body& body = launch_.bodies[number];
    const CombinedPart& one = body.members[0];
    std::vector<std::string> arguments;
    if (body.members.size() == 1) {
      for (BufferId buffer : one.buffers) arguments.push_back(parameter(buffer));
      return call(number, text(begin), text(one.length), arguments);
    }
    const std::string own = text(static_cast<int64_t>(number));
    const auto declare = [&](const std::string& type, const std::string& name,
                             const std::string& value) {
      line(type + name + " = " + value + words_.end_of_statement);
    };
    std::vector<int64_t> firsts;
    for (const CombinedPart& member : body.members) {
      if (!firsts.empty()) {
        declare(words_.condition, "c" + own + "_" + text(static_cast<int64_t>(firsts.size()) - 1),
                "pid < " + text(begin));
      }
      firsts.push_back(begin);
      begin += member.programs;
    }
    // The value of the member at hand.
    const auto chosen = [&](const auto& value_of) {
      std::string value = value_of(body.members.size() - 1);
      for (size_t i = body.members.size() - 1; i-- > 0;)
        value = words_.choice[0] + "c" + own + "_" + text(static_cast<int64_t>(i)) +
                words_.choice[1] + value_of(i) + words_.choice[2] + value + words_.choice[3];
      return value;
    };
    declare(words_.integer, "first" + own, chosen([&](size_t i) { return text(firsts[i]); }));
    declare(words_.integer, "n" + own,
            chosen([&](size_t i) { return text(body.members[i].length); }));
    for (size_t k = 0; k < one.buffers.size(); ++k) {
      arguments.push_back("q" + own + "_" + text(static_cast<int64_t>(k)));
      declare(words_.pointer, arguments.back(),
              chosen([&](size_t i) { return parameter(body.members[i].buffers[k]); }));
    }
    call(number, "first" + own, "n" + own, arguments);
  }

  const CombinedLaunch& launch_;
  const ChoiceWords& words_;
  int level_;
  const std::string& prefix_;
  std::string text_;
};

// Shares parts out among launches, of the same order wherever the order is free.
class LaunchPlanner {
 public:
  std::vector<CombinedLaunch> run(const std::vector<CombinedPart>& parts) {
    for (const std::vector<const CombinedPart*>& group : groups_of(parts)) {
      fresh_body_ = true;
      for (const CombinedPart* part : group) add(*part);
    }
    return std::move(launches_);
  }

 private:
  // Parts of the same text, in the order of the first of each.
  static std::vector<std::vector<const CombinedPart*>> groups_of(
      const std::vector<CombinedPart>& parts) {
    std::vector<std::vector<const CombinedPart*>> groups;
    std::unordered_map<std::string, size_t> known;
    for (const CombinedPart& part : parts) {
      const auto [found, added] = known.emplace(
          part.body + "\n" + part.identity + "\n" + text(part.threads), groups.size());
      if (added) groups.emplace_back();
      groups[found->second].push_back(&part);
    }
    return groups;
  }

  void add(const CombinedPart& part) {
    // One open launch for each number of threads.
    const auto [open, added] = open_.emplace(part.threads, launches_.size());
    if (added || !has_room(launches_[open->second], part)) {
      open->second = launches_.size();
      launches_.emplace_back();
      fresh_body_ = true;
    }
    CombinedLaunch& launch = launches_[open->second];
    if (fresh_body_ || launch.bodies.back().members.size() >= kMostMembers) {
      launch.bodies.emplace_back();
      fresh_body_ = false;
    }
    launch.bodies.back().members.push_back(part);
    for (BufferId buffer : part.buffers) {
      if (std::find(launch.buffers.begin(), launch.buffers.end(), buffer) == launch.buffers.end())
        launch.buffers.push_back(buffer);
    }
  }

  bool has_room(const CombinedLaunch& launch, const CombinedPart& part) const {
    const bool adds_body = fresh_body_ || launch.bodies.back().members.size() >= kMostMembers;
    return launch.buffers.size() + part.buffers.size() <= kMostParameters &&
           (!adds_body || launch.bodies.size() < kMostBodies);
  }

  std::vector<CombinedLaunch> launches_;
  std::map<int, size_t> open_;  // by threads
  bool fresh_body_ = true;      // the next part is the first one of its text
};

// For each kernel of the plan the set that it is in; nullptr where it is in none.
std::vector<const KernelSet*> sets_of_kernels(const Plan& plan) {
  std::vector<const KernelSet*> sets(plan.kernels.size(), nullptr);
  for (const Step& step : plan.steps) {
    const auto* set = std::get_if<KernelSet>(&step.v);
    if (set == nullptr) continue;
    for (KernelId id : set->members) sets[id.value] = set;
  }
  return sets;
}

void print_set(const KernelSet& set, const LaunchPrinter& printer) {
  std::vector<CombinedPart> parts;
  for (KernelId id : set.members) {
    if (std::optional<CombinedPart> part = printer.print_part(id)) {
      part->kernel = id;
      parts.push_back(std::move(*part));
    } else {
      printer.print_one(id);
    }
  }
  for (const CombinedLaunch& launch : LaunchPlanner().run(parts)) {
    const std::vector<KernelId> kernels = launch.kernels();
    if (kernels.size() == 1) {
      printer.print_one(kernels[0]);
    } else {
      printer.print_together(launch);
    }
  }
}

}  // namespace

int64_t CombinedLaunch::Body::programs() const {
  int64_t total = 0;
  for (const CombinedPart& member : members) total += member.programs;
  return total;
}

int64_t CombinedLaunch::programs() const {
  int64_t total = 0;
  for (const Body& body : bodies) total += body.programs();
  return total;
}

std::vector<KernelId> CombinedLaunch::kernels() const {
  std::vector<KernelId> list;
  for (const Body& body : bodies) {
    for (const CombinedPart& member : body.members) list.push_back(member.kernel);
  }
  return list;
}

size_t CombinedLaunch::parameter(BufferId buffer) const {
  const auto found = std::find(buffers.begin(), buffers.end(), buffer);
  LITZ_CHECK(found != buffers.end(), "a launch does not get a buffer of its kernels");
  return static_cast<size_t>(found - buffers.begin());
}

void print_launches(const Plan& plan, bool combines, const LaunchPrinter& printer) {
  const std::vector<const KernelSet*> sets = sets_of_kernels(plan);
  for (uint32_t i = 0; i < plan.kernels.size(); ++i) {
    const KernelId id(i);
    if (sets[i] == nullptr || !combines) {
      printer.print_one(id);
    } else if (sets[i]->members[0] == id) {
      print_set(*sets[i], printer);
    }
  }
}

std::optional<CombinedLaunch> combine_again(
    std::span<const KernelId> kernels, const std::vector<BufferId>& launched,
    const std::function<std::optional<CombinedPart>(KernelId)>& print_part) {
  std::vector<CombinedPart> parts;
  for (KernelId id : kernels) {
    std::optional<CombinedPart> part = print_part(id);
    if (!part) return std::nullopt;
    part->kernel = id;
    parts.push_back(std::move(*part));
  }
  std::vector<CombinedLaunch> launches = LaunchPlanner().run(parts);
  if (launches.size() != 1 || launches[0].buffers != launched) return std::nullopt;
  return std::move(launches[0]);
}

Kernel origins_of(const Plan& plan, const CombinedLaunch& launch) {
  Kernel together;
  for (KernelId id : launch.kernels()) {
    const Kernel& own = plan.kernels[id];
    together.origins.insert(together.origins.end(), own.origins.begin(), own.origins.end());
    together.ops.insert(together.ops.end(), own.ops.begin(), own.ops.end());
  }
  return together;
}

std::string print_choice(const CombinedLaunch& launch, const ChoiceWords& words, int level,
                         const std::string& function_prefix) {
  return ChoicePrinter(launch, words, level, function_prefix).print();
}

}  // namespace litz
