#include "driver/choose_cpp_kernels.h"

#include <array>
#include <optional>

#include <nlohmann/json.hpp>

#include "driver/candidate_plans.h"
#include "driver/cpp_kernel_times.h"
#include "driver/environment.h"
#include "driver/source_id.h"
#include "driver/stage_options.h"
#include "support/file.h"
#include "support/version.h"

namespace litz {
namespace {

// Raised whenever times are taken in another way.
constexpr int64_t kFormatVersion = 1;
constexpr const char* kSeconds = "seconds.json";

// What was measured on this machine.
class Memory {
 public:
  Memory(const ArtifactCache& cache, std::string machine, std::string compiler,
         const Options& options)
      : cache_(cache),
        machine_(std::move(machine)),
        compiler_(std::move(compiler)),
        options_(options) {}

  std::optional<BothWays> recall(const std::string& key, const std::string& steps) const {
    if (!options_.cache) return std::nullopt;
    const LookupResult found = cache_.lookup(key_of(key, steps));
    if (!found.entry || !found.entry->contains(kSeconds)) return std::nullopt;
    const std::optional<std::string> text = read_file(found.entry->path_of(kSeconds));
    if (!text) return std::nullopt;
    const auto json = nlohmann::json::parse(*text, nullptr, false);
    if (!json.is_object() || !json.contains("kernel") || !json.contains("library"))
      return std::nullopt;
    return BothWays{json["kernel"].get<double>(), json["library"].get<double>()};
  }

  // What cannot be kept is measured again.
  void remember(const std::string& key, const std::string& steps, const BothWays& seconds) const {
    if (!options_.cache || cache_.mode() != CacheMode::kReadWrite) return;
    const nlohmann::json json = {{"kernel", seconds.kernel_seconds},
                                 {"library", seconds.library_seconds}};
    const std::array files = {CacheInput::from_bytes(kSeconds, json.dump())};
    (void)cache_.publish(key_of(key, steps), files);
  }

 private:
  CacheKey key_of(const std::string& key, const std::string& steps) const {
    KeyBuilder builder;
    builder.field("format", kFormatVersion);
    builder.field("litz", version());
    builder.field("sources", source_id());
    builder.field("dialect", kMeasured);
    builder.field("graph", key);
    builder.field("steps", steps);
    builder.field("machine", machine_);
    builder.field("compiler", compiler_);
    builder.field("optimization_level", options_.optimization_level);
    return builder.finish();
  }

  const ArtifactCache& cache_;
  const std::string machine_;
  const std::string compiler_;
  const Options& options_;
};

}  // namespace

std::string machine_text(const HostPaths& paths, const CpuTarget& target) {
  std::string text = target.text() + ", " + cpu_model();
  if (paths.torch != nullptr) {
    text += ", torch " + paths.torch_version + " with " +
            std::to_string(paths.torch->num_threads()) + " threads";
  }
  return text;
}

Result<ChosenKernels> choose_cpp_kernels(const Graph& graph, const Options& options,
                                         const HostPaths& paths, const HostCompiler& compiler,
                                         const CpuTarget& target, const ArtifactCache& cache) {
  CppTimingTools timing;
  timing.compiler = &compiler;
  timing.job.target = target;
  timing.job.optimization_level = static_cast<int>(options.optimization_level);
  timing.job.jobs = translation_units(options);
  timing.job.time_limit_seconds = options.compile_time_limit;
  timing.folders = {cache.work_folder(), temporary_folder()};
  timing.printing = artifact_options(options, target);
  timing.torch = paths.torch;
  CppKernelTimes times(std::move(timing));
  const Memory memory(cache, machine_text(paths, target), compiler.identity().text(), options);
  return choose_kernels(
      {.plan = candidate_planner(graph, options, KernelDialect::kCpp, paths.device),
       .time_library = [&](const std::string& call) { return paths.time_library_call(call); },
       .kernels = &times,
       .seconds = options.autotune_seconds,
       .recall = [&](const std::string& key,
                     const std::string& steps) { return memory.recall(key, steps); },
       .remember = [&](const std::string& key, const std::string& steps,
                       const BothWays& seconds) { memory.remember(key, steps, seconds); }});
}

}  // namespace litz
