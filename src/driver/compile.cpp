#include "driver/compile.h"
#include "driver/cached_graphs.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>

#include "cache/artifact_cache.h"
#include "codegen/cpp/cpp_artifact.h"
#include "codegen/cuda/cuda_artifact.h"
#include "codegen/simt/table_dialect.h"
#include "codegen/triton/triton_artifact.h"
#include "driver/build_library.h"
#include "driver/candidate_plans.h"
#include "driver/check_options.h"
#include "driver/choose_cpp_kernels.h"
#include "driver/choose_kernels.h"
#include "driver/environment.h"
#include "driver/report.h"
#include "driver/reproducer.h"
#include "driver/run_passes.h"
#include "driver/source_id.h"
#include "driver/stage_options.h"
#include "driver/stuck_compilers.h"
#include "driver/timings.h"
#include "driver/trace.h"
#include "driver/triton_kernel_times.h"
#include "driver/tunable_cuda.h"
#include "driver/tunable_triton.h"
#include "graph/print_graph.h"
#include "ir/check_status.h"
#include "ir/print_program.h"
#include "ir/verify_program.h"
#include "lowering/lowering.h"
#include "runtime/backend_image.h"
#include "schedule/print_plan.h"
#include "schedule/schedule_steps.h"
#include "schedule/verify_schedule.h"
#include "support/error.h"
#include "support/file.h"
#include "support/version.h"
#include "toolchain/host_compiler.h"
#include "toolchain/nvrtc.h"
#include "toolchain/triton.h"

namespace litz {
namespace {

// Raised whenever equal inputs may give other code than before.
constexpr int64_t kFormatVersion = 1;
constexpr const char* kReport = "report.json";
constexpr const char* kDeviceSource = "kernels.cu";
constexpr const char* kTritonSource = "kernels.py";
constexpr size_t kMaxLogInMessage = 1000;
// For a compiler to show that it comes back at all.
constexpr double kProbeSeconds = 10;

CompilerVersions& compiler_versions() {
  static CompilerVersions versions;
  return versions;
}

// One for each interpreter that a process compiles with.
TritonCompiler triton_compiler(const TritonOptions& options) {
  static std::mutex mutex;
  static std::map<std::string, TritonCompiler> compilers;
  const std::lock_guard lock(mutex);
  const std::string name = options.python + "\n" + options.worker + "\n" + options.version;
  return compilers.try_emplace(name, options).first->second;
}

StuckCompilers& stuck_compilers() {
  static StuckCompilers stuck;
  return stuck;
}

CpuTarget read_target(const Options& options) {
  const CpuTarget target = cpu_target(options);
  if (!target.runs_on(CpuTarget::detect())) {
    throw UserError("option target: this machine cannot run code for " + target.text() +
                    "; it is " + CpuTarget::detect().text());
  }
  return target;
}

// The graph as the cache sees it: names and source lines are incidental.
std::string canonical_text(const Graph& graph) {
  Graph copy = graph;
  for (uint32_t i = 0; i < copy.num_nodes(); ++i) {
    copy.node(NodeId(i)).name = "n" + std::to_string(i);
    copy.node(NodeId(i)).stack.clear();
  }
  return to_string(copy);
}

std::string first_library_op(const Program& program) {
  for (const Operation& operation : program.operations()) {
    if (const auto* kernel = std::get_if<ExternKernel>(&operation.v)) return kernel->name;
  }
  return "";
}

std::string backend_image(const SimtProgram& printed, std::string bytes) {
  BackendImage image;
  for (const SimtFunction& function : functions_of(printed)) {
    const SimtProgram::Kernel& kernel = printed.kernels[function.kernel];
    image.kernels.push_back({function.name, static_cast<int32_t>(1 + kernel.printed.buffers.size()),
                             static_cast<int32_t>(kernel.printed.symbols.size()),
                             kernel.printed.checks_values,
                             kernel.origin.empty() ? "a kernel" : kernel.origin});
  }
  for (const LitzStatus status : {LITZ_INDEX_OUT_OF_RANGE, LITZ_INDEX_OUT_OF_BOUNDS,
                                  LITZ_DIVISION_BY_ZERO, LITZ_VALUE_OUT_OF_RANGE})
    image.failures[status] = failure_text(status);
  image.bytes = std::move(bytes);
  return pack_backend_image(image);
}

// At least 3.4, from where on tensor descriptors have their name.
bool has_descriptors(const std::string& triton) {
  int major = 0;
  int minor = 0;
  if (std::sscanf(triton.c_str(), "%d.%d", &major, &minor) != 2) return false;
  return std::pair(major, minor) >= std::pair(3, 4);
}

// Hopper or newer: "sm_90".
bool loads_tiles(const std::string& arch) {
  int number = 0;
  return std::sscanf(arch.c_str(), "sm_%d", &number) == 1 && number >= 90;
}

class Compilation {
 public:
  Compilation(const Graph& graph, const Options& options, const HostPaths& paths)
      : graph_(graph), options_(options), paths_(paths), trace_(options.trace), gpu_(paths.device) {
    gpu_.loads_tiles = loads_tiles(gpu_.arch) && has_descriptors(paths.triton.version);
  }

  Compiled run() {
    check_options(options_, graph_);
    if (!trace_.fault().empty()) {
      result_.warnings.push_back("the stages of a compilation cannot be written; " +
                                 trace_.fault());
    }
    if (!paths_.device.is_cpu()) return run_on_device();
    if (paths_.backend != nullptr && run_on_backend()) return std::move(result_);
    if (options_.interpret)
      return interpret(lower(KernelDialect::kInterpreter), "the option interpret asks for it");
    const CpuTarget target = read_target(options_);
    Result<HostCompiler> compiler =
        timings_.measure("find compiler", [&] { return find_compiler(); });
    if (!compiler) {
      result_.warnings.push_back(
          "no C++ compiler can be used, so graphs run in the interpreter, which is slow; " +
          compiler.reason() + "; install g++, or pip install litz[compiler]");
      return interpret(lower(KernelDialect::kInterpreter), compiler.reason());
    }
    ArtifactCache cache = open_cache();
    const CacheKey key = timings_.measure("key", [&] {
      return make_key(target, compiler->identity(), "cpp",
                      options_.autotune ? machine_text(paths_, target) : "");
    });
    if (find_in_cache(cache, key)) return std::move(result_);
    if (stuck_compilers().contains(compiler->path(), options_.compile_time_limit)) {
      return interpret(lower(KernelDialect::kInterpreter),
                       compiler->path() + " did not come back before in this process");
    }

    if (options_.autotune)
      timings_.measure("choose kernels", [&] { choose_on_cpu(*compiler, target, cache); });
    const Program program = lower();
    const Plan plan = schedule(program, KernelDialect::kCpp);
    const CppSources sources = print_sources(plan, target);
    const std::string report =
        with_candidates(report_plan(plan, sources, fallbacks_), chosen_kernels_.measured);
    const BuildResult built = build(*compiler, target, cache, key, sources, report);
    if (!built.ok()) {
      // The library multiplies matrices for the interpreter.
      return interpret_instead(*compiler, lower(KernelDialect::kInterpreter), built);
    }
    return std::move(result_);
  }

 private:
  // The same for a graph whose tensors are a GPU's: its kernels are Triton or CUDA C++, what
  // launches them is a library as on a CPU. There is no interpreter for these.
  Compiled run_on_device() {
    if (options_.interpret) return leave("the interpreter works on CPU tensors only");
    const CpuTarget target = read_target(options_);
    const Result<HostCompiler> compiler =
        timings_.measure("find compiler", [&] { return find_compiler(); });
    if (!compiler) return leave("no C++ compiler can be used; " + compiler.reason());
    ArtifactCache cache = open_cache();
    std::string reason;  // why it is not Triton
    if (wants_triton()) {
      const CacheKey key = timings_.measure("key", [&] {
        return make_key(target, compiler->identity(), "triton",
                        device_text() + " " + paths_.triton.version);
      });
      if (find_in_cache(cache, key)) return std::move(result_);
      triton_compiler(paths_.triton).start();
      if (options_.autotune) timings_.measure("choose kernels", [&] { choose(); });
      const Plan plan = schedule(lower(KernelDialect::kTriton), KernelDialect::kTriton);
      const Result<CppSources> sources = compile_triton(plan, target, &reason);
      if (sources)
        return build_for_device(*compiler, target, cache, key, plan, *sources, "triton", "");
    }

    const Result<Nvrtc> nvrtc =
        timings_.measure("find NVRTC", [&] { return Nvrtc::find({paths_.nvrtc_folders}); });
    if (!nvrtc) return leave("CUDA's run-time compiler cannot be used; " + nvrtc.reason());
    const CacheKey key = timings_.measure("key", [&] {
      return make_key(target, compiler->identity(), "cuda", device_text() + " " + nvrtc->version());
    });
    if (find_in_cache(cache, key)) return std::move(result_);
    // What Triton cannot say is lowered and scheduled anew: both are for one dialect.
    const Plan plan = schedule(lower(KernelDialect::kThreads), KernelDialect::kThreads);
    const std::optional<CppSources> sources = compile_cuda(*nvrtc, plan, target);
    if (!sources) return leave("NVRTC rejects its kernels");
    return build_for_device(*compiler, target, cache, key, plan, *sources, "cuda", reason);
  }

  bool wants_triton() {
    if (options_.gpu_dialect == "cuda") return false;
    if (!paths_.triton.version.empty()) return true;
    if (options_.gpu_dialect == "triton") {
      result_.warnings.push_back(
          "Triton cannot be imported, so kernels for a GPU are CUDA C++; pip install litz[triton]");
    }
    return false;
  }

  // Nothing where NVRTC rejects the kernels, of which it warns.
  std::optional<CppSources> compile_cuda(const Nvrtc& nvrtc, const Plan& plan,
                                         const CpuTarget& target) {
    SimtProgram program = timings_.measure("print", [&] { return print_cuda_program(plan); });
    if (trace_.enabled()) trace_.write(kDeviceSource, program.text());
    CudaImages compiled =
        timings_.measure("compile kernels", [&] { return compile_cuda(nvrtc, program); });
    if (trace_.enabled()) trace_.write("nvrtc.log", compiled.log);
    if (!compiled.ok) {
      result_.warnings.push_back(
          "NVRTC rejects the kernels of a graph, which runs in eager instead; " +
          compiled.log.substr(0, kMaxLogInMessage) + reproduce_hint(graph_, options_));
      return std::nullopt;
    }
    if (options_.autotune && !program.kernels.empty()) {
      timings_.measure("tune", [&] { tune_cuda(nvrtc, plan, program, compiled); });
      if (trace_.enabled()) trace_.write(kDeviceSource, program.text());
    }
    CppSources sources =
        print_cuda_artifact(plan, program, {paths_.device.arch, std::move(compiled.images)},
                            artifact_options(options_, target).description);
    sources.beside.push_back({kDeviceSource, program.text()});
    return sources;
  }

  struct CudaImages {
    std::vector<std::string> images;  // one that is rejected is empty
    std::string log;
    bool ok = true;
  };
  CudaImages compile_cuda(const Nvrtc& nvrtc, SimtProgram& program) {
    CudaImages result;
    // Eager rounds after every operation.
    for (Nvrtc::Image& image :
         nvrtc.compile_all(split_cuda_program(program, translation_units(options_)), kDeviceSource,
                           paths_.device.arch, {"--std=c++17", "--fmad=false"})) {
      result.log += image.log;
      result.ok = result.ok && image.ok;
      result.images.push_back(image.ok ? std::move(image.cubin) : "");
    }
    return result;
  }

  void tune_cuda(const Nvrtc& nvrtc, const Plan& plan, SimtProgram& program, CudaImages& compiled) {
    SimtProgram tuned = program;
    TunableCuda kernels(plan, tuned, compiled.images, [&](SimtProgram& variants) {
      return compile_cuda(nvrtc, variants).images;
    });
    if (tune(plan, kernels) == 0) return;
    CudaImages images = compile_cuda(nvrtc, tuned);
    if (!images.ok) return;
    program = std::move(tuned);
    compiled = std::move(images);
  }

  // Where Triton does not do it, `reason` says why; a fault of the toolchain is a warning, too.
  Result<CppSources> compile_triton(const Plan& plan, const CpuTarget& target,
                                    std::string* reason) {
    Result<TritonProgram> program =
        timings_.measure("print", [&] { return print_triton_program(plan, triton_device()); });
    if (!program) {
      *reason = program.reason();
      return Unsupported{*reason};
    }
    if (trace_.enabled()) trace_.write(kTritonSource, program->text());
    std::vector<TritonImage> images;
    if (!program->functions.empty()) {
      const Result<std::vector<TritonCompiler::Image>> compiled =
          timings_.measure("compile kernels", [&] {
            return triton_compiler(paths_.triton)
                .compile(program->text(), triton_functions(*program), paths_.device.arch,
                         translation_units(options_), deadline_after(options_.compile_time_limit));
          });
      if (!compiled) {
        *reason = "Triton's compiler failed; " + compiled.reason();
        result_.warnings.push_back(
            "Triton did not compile the kernels of a graph, which are CUDA C++ instead; " +
            compiled.reason().substr(0, kMaxLogInMessage));
        return Unsupported{*reason};
      }
      images = triton_images(*compiled);
      if (options_.autotune) {
        TunableTriton kernels(plan, *program, images, compile_triton());
        timings_.measure("tune", [&] { tune(plan, kernels); });
      }
    }
    CppSources sources = print_triton_artifact(plan, *program, paths_.device.arch, images,
                                               artifact_options(options_, target).description);
    sources.beside.push_back({kTritonSource, program->text()});
    return sources;
  }

  TritonDevice triton_device() const {
    return {std::max<int64_t>(paths_.device.multiprocessors, 1)};
  }

  static std::vector<TritonCompiler::Function> triton_functions(const TritonProgram& program) {
    std::vector<TritonCompiler::Function> functions;
    for (const TritonProgram::Function& f : program.functions)
      functions.push_back({f.name, f.signature, f.aligned, f.warps, f.stages, f.checks});
    return functions;
  }

  static std::vector<TritonImage> triton_images(
      const std::vector<TritonCompiler::Image>& compiled) {
    std::vector<TritonImage> images;
    for (const TritonCompiler::Image& image : compiled)
      images.push_back({image.cubin, image.shared_bytes, image.threads, image.added_arguments,
                        image.scratch_bytes});
    return images;
  }

  CompileTriton compile_triton() {
    return [this](const TritonProgram& variants) -> Result<std::vector<TritonImage>> {
      if (variants.functions.empty()) return std::vector<TritonImage>();
      const Result<std::vector<TritonCompiler::Image>> compiled =
          triton_compiler(paths_.triton)
              .compile_each(variants.text(), triton_functions(variants), paths_.device.arch,
                            translation_units(options_),
                            deadline_after(options_.compile_time_limit));
      if (!compiled) return Unsupported{compiled.reason()};
      return triton_images(*compiled);
    };
  }

  // What kernels are timed with, for so many seconds.
  TuningTools tuning_tools(std::shared_ptr<const CudaDriver> driver, double seconds) const {
    return {std::move(driver), paths_.device.number, paths_.device.arch, seconds};
  }

  // Whether products and attention are kernels or the library's calls, by measuring. Whatever goes
  // wrong leaves them as they are.
  void choose() {
    const Result<std::shared_ptr<const CudaDriver>> driver = CudaDriver::open();
    if (!driver || !paths_.time_library_call || !gpu_.loads_tiles || !may_choose()) return;
    TritonKernelTimes times(tuning_tools(*driver, options_.autotune_seconds), triton_device(),
                            compile_triton());
    take(choose_kernels(
        {.plan = candidate_planner(graph_, options_, KernelDialect::kTriton, gpu_),
         .time_library = [this](const std::string& call) { return paths_.time_library_call(call); },
         .kernels = &times,
         .seconds = options_.autotune_seconds,
         .recall = {},
         .remember = {}}));
  }

  // The same on a CPU, with convolutions.
  void choose_on_cpu(const HostCompiler& compiler, const CpuTarget& target,
                     const ArtifactCache& cache) {
    if (!paths_.time_library_call || paths_.torch == nullptr || !may_choose()) return;
    take(choose_cpp_kernels(graph_, options_, paths_, compiler, target, cache));
  }

  bool may_choose() const {
    return options_.matrix_products == "auto" || options_.attention == "auto";
  }

  void take(Result<ChosenKernels> chosen) {
    if (trace_.enabled()) trace_.write("candidates.txt", chosen ? chosen->log : chosen.reason());
    if (chosen) chosen_kernels_ = std::move(*chosen);
    is_untuned_ = !chosen || !chosen->is_finished;
  }

  // How many kernels are others than before. Whatever goes wrong leaves them as they are.
  size_t tune(const Plan& plan, TunableKernels& kernels) {
    const Result<std::shared_ptr<const CudaDriver>> driver = CudaDriver::open();
    const double seconds = options_.autotune_seconds - chosen_kernels_.seconds;
    const Result<Tuned> tuned = driver ? tune_kernels(plan, kernels, tuning_tools(*driver, seconds))
                                       : Unsupported{driver.reason()};
    is_untuned_ = is_untuned_ || !tuned || !tuned->is_finished;
    if (!tuned) {
      result_.warnings.push_back(
          "the kernels of a graph could not be tuned and are as they are without; " +
          tuned.reason().substr(0, kMaxLogInMessage));
    }
    if (trace_.enabled()) trace_.write("tuning.txt", tuned ? tuned->log : tuned.reason());
    return tuned ? tuned->replaced : 0;
  }

  Compiled build_for_device(const HostCompiler& compiler, const CpuTarget& target,
                            const ArtifactCache& cache, const CacheKey& key, const Plan& plan,
                            const CppSources& sources, const std::string& dialect,
                            const std::string& reason) {
    if (trace_.enabled()) trace_.write(sources.units[0].name, sources.units[0].text);
    const std::string report = with_candidates(
        with_dialect(report_plan(plan, sources, fallbacks_), dialect, reason),
        dialect == "triton" ? chosen_kernels_.measured : std::vector<MeasuredCandidate>());
    const BuildResult built = build(compiler, target, cache, key, sources, report);
    if (!built.ok())
      return leave(std::string(build_status_name(built.status)) + "; " +
                   built.log.substr(0, kMaxLogInMessage));
    return std::move(result_);
  }

  // The same for CPU tensors and a backend outside Litz. Where that cannot be, the report says why,
  // and the graph goes on to the CPU.
  bool run_on_backend() {
    BackendDevice& device = *paths_.backend;
    if (options_.interpret) return leave_backend("the option interpret asks for the interpreter");
    const CpuTarget target = read_target(options_);
    const Result<HostCompiler> compiler =
        timings_.measure("find compiler", [&] { return find_compiler(); });
    if (!compiler) return leave_backend("no C++ compiler can be used; " + compiler.reason());
    const std::string& description = device.info().description;
    ArtifactCache cache = open_cache();
    const CacheKey key = timings_.measure("key", [&] {
      return make_key(target, compiler->identity(), device.plugin().name(),
                      device.plugin().identity() + " " + description);
    });
    result_.on_backend = true;
    device_ = device.name() + ", " + description;
    if (find_in_cache(cache, key)) return true;

    const Program program = lower(KernelDialect::kThreads);
    const std::string library_op = first_library_op(program);
    if (device.info().shares_memory == 0 && !library_op.empty()) {
      return leave_backend(
          library_op + " is a call of PyTorch's library, which cannot reach the device's memory");
    }
    const Plan plan = schedule(program, KernelDialect::kThreads);
    if (plan.kernels.empty()) return leave_backend("it has no kernels");
    const LitzBackend& table = device.plugin().table();
    const char* without = device.info().without_dtypes;
    const TableDialect dialect(*table.dialect, without == nullptr ? "" : without);
    const SimtProgram printed = timings_.measure("print", [&] {
      return print_simt_program(plan, dialect, read_heuristics(table, device.handle()));
    });
    if (trace_.enabled()) trace_.write(table.dialect->source_name, printed.text());
    if (!printed.unsupported.empty()) return leave_backend(printed.unsupported);
    const Result<std::string> image =
        timings_.measure("compile kernels", [&] { return device.compile(printed.text()); });
    if (!image) {
      result_.warnings.push_back(
          "a backend does not compile the kernels of a graph, which runs on "
          "the CPU instead; " +
          image.reason().substr(0, kMaxLogInMessage));
      return leave_backend("its kernels do not compile: " + image.reason());
    }
    CppSources sources = print_cuda_artifact(
        plan, printed, {device.plugin().name(), {backend_image(printed, *image)}},
        artifact_options(options_, target).description);
    sources.beside.push_back({table.dialect->source_name, printed.text()});
    if (trace_.enabled()) trace_.write(sources.units[0].name, sources.units[0].text);
    const std::string report = report_plan(plan, sources, fallbacks_);
    const BuildResult built = build(*compiler, target, cache, key, sources, report);
    return built.ok() || leave_backend(std::string(build_status_name(built.status)) + "; " +
                                       built.log.substr(0, kMaxLogInMessage));
  }

  bool leave_backend(const std::string& reason) {
    result_.on_backend = false;
    device_.clear();
    device_note_ = "not on " + paths_.backend->name() + ", because " + reason;
    return false;
  }

  Compiled leave(const std::string& reason) {
    result_.left_to_eager = reason;
    return std::move(result_);
  }

  // ---- stages, in order ----

  Program lower(KernelDialect dialect = KernelDialect::kCpp) {
    const Graph graph = run_passes(graph_, options_, trace_, timings_, chosen_kernels_.choices);
    find_laid_out_outputs(graph);
    LoweringOptions lowering = lowering_options(options_, dialect, gpu_);
    lowering.kernel_choices = chosen_kernels_.choices;
    LoweringResult lowered =
        timings_.measure("lower", [&] { return lower_graph(graph, lowering); });
    fallbacks_ = std::move(lowered.fallbacks);
    if (trace_.enabled()) trace_.write("program.litz", to_string(lowered.program));
    if (options_.verify) verify_program(lowered.program);
    return std::move(lowered.program);
  }

  void find_laid_out_outputs(const Graph& graph) {
    laid_out_outputs_.clear();
    for (uint32_t output : graph.free_layouts()) {
      const TensorMeta& own = graph.tensor(graph.outputs()[output].get<Value>());
      const TensorMeta& eager = graph_.tensor(graph_.outputs()[output].get<Value>());
      if (own.strides != eager.strides) laid_out_outputs_.push_back(output);
    }
  }

  Plan schedule(const Program& program, KernelDialect dialect) {
    const ScheduleOptions options = schedule_options(options_, dialect, gpu_);
    ScheduleState state(std::make_shared<Program>(program));
    std::string before = trace_.enabled() ? to_string(state) : "";
    for (const ScheduleStep& step : schedule_steps()) {
      timings_.measure(step.name, [&] { step.run(state, options); });
      if (trace_.enabled()) write_if_changed(step, state, before);
      if (options_.verify) verify_schedule(state);
    }
    if (trace_.enabled()) trace_.write("plan.txt", to_string(*state.plan));
    return std::move(*state.plan);
  }

  // The last step makes the plan, which has a name of its own.
  void write_if_changed(const ScheduleStep& step, const ScheduleState& state, std::string& before) {
    std::string text = to_string(state);
    if (text != before && &step != &schedule_steps().back()) {
      const std::string form(form_of(state));
      trace_.write(
          form + "_after_" + std::string(step.name) + (form == "program" ? ".litz" : ".txt"), text);
    }
    before = std::move(text);
  }

  CppSources print_sources(const Plan& plan, const CpuTarget& target) {
    CppSources sources = timings_.measure(
        "print", [&] { return print_cpp_artifact(plan, artifact_options(options_, target)); });
    for (const CppSource& unit : sources.units) {
      if (trace_.enabled()) trace_.write(unit.name, unit.text);
    }
    return sources;
  }

  BuildResult build(const HostCompiler& compiler, const CpuTarget& target,
                    const ArtifactCache& cache, const CacheKey& key, const CppSources& sources,
                    const std::string& report) {
    SharedLibraryJob job;
    job.target = target;
    job.optimization_level = static_cast<int>(options_.optimization_level);
    job.jobs = translation_units(options_);
    job.time_limit_seconds = options_.compile_time_limit;
    for (const CppSource& unit : sources.units) job.units.push_back({unit.name, unit.text});
    const BuildResult built = timings_.measure("build", [&] {
      return build_library({cache.work_folder(), temporary_folder()}, compiler, job);
    });
    if (trace_.enabled()) trace_.write("build.log", built.log);
    if (built.ok()) publish(cache, key, job, sources, with_layouts(report, laid_out_outputs_));
    return built;
  }

  void publish(const ArtifactCache& cache, const CacheKey& key, const SharedLibraryJob& job,
               const CppSources& sources, const std::string& report) {
    const std::string folder = std::filesystem::path(job.output_path).parent_path();
    if (options_.cache && cache.mode() != CacheMode::kOff && !is_untuned_) {
      std::vector<CacheInput> files;
      files.push_back(CacheInput::from_file(kLibraryName, job.output_path));
      files.push_back(CacheInput::from_bytes(kReport, with_nodes(report, graph_)));
      for (const CppSource& unit : sources.units)
        files.push_back(CacheInput::from_bytes(unit.name, unit.text));
      for (const CppSource& file : sources.beside)
        files.push_back(CacheInput::from_bytes(file.name, file.text));
      const Result<CacheEntry> entry =
          timings_.measure("publish", [&] { return cache.publish(key, files); });
      if (entry) {
        std::error_code ignored;
        std::filesystem::remove_all(folder, ignored);
        finish(entry->path_of(kLibraryName), report, entry->folder, false);
        return;
      }
      result_.warnings.push_back("a compiled graph could not be kept in the cache; " +
                                 entry.reason());
    }
    // The library stays where it was built; it is needed as long as the process may load it.
    for (const CppSource& unit : sources.units)
      std::ofstream(folder + "/" + unit.name, std::ios::binary) << unit.text;
    finish(job.output_path, report, folder, false);
  }

  // ---- cache ----

  ArtifactCache open_cache() {
    ArtifactCache cache = open_graph_cache(options_);
    if (options_.cache && cache.mode() == CacheMode::kOff) {
      result_.warnings.push_back("the cache cannot be used; " + cache.reason());
    }
    return cache;
  }

  // `dialect`: that of the kernels. `device`: what shapes the code for one, or empty.
  CacheKey make_key(const CpuTarget& target, const CompilerIdentity& compiler,
                    const std::string& dialect, const std::string& device) const {
    KeyBuilder key;
    key.field("format", kFormatVersion);
    key.field("litz", version());
    key.field("sources", source_id());
    key.field("graph", canonical_text(graph_));
    key.field("compiler", compiler.text());
    key.field("dialect", dialect);
    key.field("device", device);
    for (const OptionRow& row : option_rows()) {
      if (!row.shapes_code) continue;
      const std::string value = row.name == "target" ? target.text()
                                : row.name == "jobs" ? std::to_string(translation_units(options_))
                                                     : option_text(options_, row.name);
      key.field(row.name, value);
    }
    return key.finish();
  }

  // What was measured on a device is for others of its name.
  std::string device_text() const {
    return paths_.device.arch + " " + std::to_string(paths_.device.multiprocessors) +
           (options_.autotune ? " " + paths_.device.name : "");
  }

  bool find_in_cache(const ArtifactCache& cache, const CacheKey& key) {
    if (!options_.cache || trace_.enabled()) return false;
    const LookupResult found = timings_.measure("lookup", [&] { return cache.lookup(key); });
    if (!found.warning.empty()) result_.warnings.push_back(found.warning);
    if (!found.entry || !found.entry->contains(kLibraryName) || !found.entry->contains(kReport))
      return false;
    std::ifstream file(found.entry->path_of(kReport), std::ios::binary);
    const std::string report{std::istreambuf_iterator<char>(file),
                             std::istreambuf_iterator<char>()};
    if (report.empty()) return false;
    finish(found.entry->path_of(kLibraryName), for_nodes_of(report, graph_), found.entry->folder,
           true);
    return true;
  }

  // ---- results ----

  Result<HostCompiler> find_compiler() {
    HostCompilerOptions finding;
    finding.compiler = options_.compiler;
    finding.search_path = environment_variable("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
    finding.zig_folders = paths_.zig_folders;
    return HostCompiler::find(finding, compiler_versions());
  }

  Compiled interpret(const Program& program, const std::string& reason) {
    result_.program = std::make_shared<Program>(program);
    trace_.write("interpreted.txt", reason);
    finish("", with_layouts(report_interpreted(program, fallbacks_, reason), laid_out_outputs_), "",
           false);
    return std::move(result_);
  }

  // A compiler that rejects code points to a fault in Litz; one that hangs or dies, to the machine.
  Compiled interpret_instead(const HostCompiler& compiler, const Program& program,
                             const BuildResult& built) {
    const bool rejected =
        built.status == BuildStatus::kCompilerFailed || built.status == BuildStatus::kLinkFailed;
    std::string warning =
        std::string("the C++ compiler ") + (rejected ? "rejects" : "did not compile") +
        " the code of a graph, which runs in the interpreter instead and is slow; " +
        build_status_name(built.status) + ": " + built.log.substr(0, kMaxLogInMessage);
    if (rejected) warning += reproduce_hint(graph_, options_);
    if (built.status == BuildStatus::kTimeout && !comes_back(compiler)) {
      stuck_compilers().add(compiler.path(), options_.compile_time_limit);
      warning +=
          "; it does not compile an empty file either, so it is not asked again in this process";
    }
    result_.warnings.push_back(warning);
    return interpret(program, std::string(build_status_name(built.status)) + "; " + built.log);
  }

  // Tells a compiler that hangs from a graph that is too much for it.
  bool comes_back(const HostCompiler& compiler) {
    SharedLibraryJob probe;
    probe.units = {{"empty.cpp", "\n"}};
    probe.optimization_level = 0;
    probe.time_limit_seconds = std::min(options_.compile_time_limit, kProbeSeconds);
    return timings_.measure("probe", [&] {
      const BuildResult built = build_library({temporary_folder()}, compiler, probe);
      std::error_code ignored;
      if (built.ok()) {
        std::filesystem::remove_all(std::filesystem::path(probe.output_path).parent_path(),
                                    ignored);
      }
      return built.status != BuildStatus::kTimeout;
    });
  }

  void finish(const std::string& path, const std::string& report, const std::string& source_path,
              bool cached) {
    result_.path = path;
    result_.info =
        complete_report(report, timings_, trace_.enabled() ? trace_.folder() : source_path, cached);
    if (paths_.backend != nullptr)
      result_.info = report_with_device(result_.info, device_, device_note_);
    if (trace_.enabled()) trace_.write("report.json", result_.info);
  }

  const Graph& graph_;
  const Options& options_;
  const HostPaths& paths_;
  Trace trace_;
  DeviceTarget gpu_;  // the device, where it is one
  Timings timings_;
  bool is_untuned_ = false;  // the option asks for tuning, which was not finished
  ChosenKernels chosen_kernels_;
  Compiled result_;
  std::vector<LoweringNote> fallbacks_;
  std::vector<uint32_t> laid_out_outputs_;  // those that are channels-last, not as in eager
  std::string device_;                      // the backend's, where the graph runs there
  std::string device_note_;                 // why it does not
};

}  // namespace

Compiled compile_graph(const Graph& graph, const Options& options, const HostPaths& paths) {
  try {
    return Compilation(graph, options, paths).run();
  } catch (const UserError&) {
    throw;
  } catch (const std::exception& error) {
    throw InternalError(error.what() + reproduce_hint(graph, options));
  }
}

}  // namespace litz
