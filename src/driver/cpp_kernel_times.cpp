#include "driver/cpp_kernel_times.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

#include "codegen/cpp/cpp_abi.h"
#include "codegen/cpp/cpp_kernel.h"
#include "codegen/cpp/cpp_text.h"
#include "driver/build_library.h"
#include "driver/timed_kernels.h"
#include "support/half.h"

namespace litz {
namespace {

constexpr std::align_val_t kAlignment{64};
// For all runs of a kernel: some milliseconds, more where a run takes so long, as it may where
// something else is on the processor.
constexpr double kFewSeconds = 0.005;
constexpr int kEnoughSamples = 9;
constexpr double kManySeconds = 0.05;
constexpr int kLeastSamples = 3;
constexpr int kMostSamples = 31;
// For threads to do nothing. Where some of them have to wait for a processor, it is milliseconds.
constexpr double kFewSecondsOfNothing = 3e-4;
constexpr size_t kPattern = 4096;  // elements of random numbers that repeat

Prelude make_prelude(const PreludeTarget& target) {
  Prelude prelude(target);
  prelude.type(DType::kInt32, 1);
  prelude.type(DType::kInt64, 1);
  return prelude;
}

class CppKernels final : public PrintedKernels {
 public:
  CppKernels(const Plan& given, const PreludeTarget& target) : plan(given) {
    Prelude prelude = make_prelude(target);
    for (const Kernel& kernel : plan.kernels)
      printed.push_back(print_cpp_kernel(*plan.program, kernel, prelude, target));
  }

  std::optional<Launch> launch_of(KernelId kernel) const override {
    return Launch{identity_of(kernel), is_known(kernel)};
  }

  std::string identity_of(KernelId kernel) const {
    const CppKernel& p = printed[kernel.value];
    return p.text + describe_buffers(plan, p.buffers);
  }

  const Plan& plan;
  std::vector<CppKernel> printed;  // by kernel

 private:
  bool is_known(KernelId kernel) const {
    const CppKernel& p = printed[kernel.value];
    return p.symbols.empty() && !depends_on_values(plan.kernels[kernel], p.checks_values) &&
           std::all_of(p.buffers.begin(), p.buffers.end(),
                       [&](BufferId buffer) { return known_bytes(plan, buffer).has_value(); });
  }
};

// ---- the host ----

void run_in_parallel(void* self, int64_t begin, int64_t end, int64_t grain, LitzRangeBody body,
                     void* state) {
  auto* torch = static_cast<TorchEnvironment*>(self);
  torch->parallel_for(begin, end, grain, torch->num_threads(), body, state);
}

int32_t count_threads(void* self) { return static_cast<TorchEnvironment*>(self)->num_threads(); }

// With all that kernels call.
LitzHost make_host(TorchEnvironment* torch) {
  LitzHost host{};
  host.abi_version = LITZ_ABI_VERSION;
  host.size_bytes = sizeof(LitzHost);
  host.self = torch;
  host.parallel_for = run_in_parallel;
  host.num_threads = count_threads;
  return host;
}

// ---- memory ----

// From -1 to 1, always the same.
class RandomNumbers {
 public:
  float next() {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<float>(state_ >> 8) * 0x1p-23f - 1.0f;
  }

 private:
  uint32_t state_ = 1;
};

template <class Element, class Convert>
std::string random_pattern(const Convert& convert) {
  RandomNumbers numbers;
  std::string bytes(kPattern * sizeof(Element), '\0');
  for (size_t i = 0; i < kPattern; ++i) {
    const Element element = convert(numbers.next());
    std::memcpy(bytes.data() + i * sizeof(Element), &element, sizeof(Element));
  }
  return bytes;
}

// What a buffer is filled with, over and over: numbers that no kernel is slow with, indices that
// every dimension has, and masks that leave everything in.
std::string pattern_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return random_pattern<uint16_t>([](float x) { return float_to_float16(x); });
    case DType::kBFloat16:
      return random_pattern<uint16_t>([](float x) { return float_to_bfloat16(x); });
    case DType::kFloat32:
      return random_pattern<float>([](float x) { return x; });
    case DType::kFloat64:
      return random_pattern<double>([](float x) { return static_cast<double>(x); });
    case DType::kBool:
      return std::string(kPattern, '\1');
    default:
      return std::string(kPattern, '\0');
  }
}

class FilledBuffer {
 public:
  FilledBuffer(const Buffer& buffer, int64_t bytes) : size_(static_cast<size_t>(bytes)) {
    // No pointer of a kernel is null.
    data_ =
        static_cast<char*>(::operator new(std::max<size_t>(size_, 1), kAlignment, std::nothrow));
    if (data_ == nullptr) return;
    if (buffer.kind == BufferKind::kConstant) {
      fill({reinterpret_cast<const char*>(buffer.bytes.data()), buffer.bytes.size()});
    } else {
      fill(pattern_of(buffer.dtype));
    }
  }
  FilledBuffer(FilledBuffer&& other) noexcept
      : size_(other.size_), data_(std::exchange(other.data_, nullptr)) {}
  FilledBuffer& operator=(FilledBuffer&&) = delete;
  ~FilledBuffer() { ::operator delete(data_, kAlignment); }

  char* data() const { return data_; }

 private:
  void fill(std::string_view bytes) {
    for (size_t at = 0; at < size_ && !bytes.empty(); at += bytes.size())
      std::memcpy(data_ + at, bytes.data(), std::min(bytes.size(), size_ - at));
  }

  size_t size_;
  char* data_ = nullptr;
};

double seconds_of(const auto& act) {
  const auto begin = std::chrono::steady_clock::now();
  act();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The fastest of some runs, after one that has fetched the memory: what disturbs a run makes it
// slower, never faster.
double fastest_seconds(const auto& act) {
  act();
  double fastest = seconds_of(act);
  double sum = fastest;
  const auto is_enough = [&](int samples) {
    return samples >= kMostSamples || (samples >= kEnoughSamples && sum >= kFewSeconds) ||
           (samples >= kLeastSamples && sum >= kManySeconds);
  };
  for (int samples = 1; !is_enough(samples); ++samples) {
    const double seconds = seconds_of(act);
    fastest = std::min(fastest, seconds);
    sum += seconds;
  }
  return fastest;
}

}  // namespace

CppKernelTimes::CppKernelTimes(CppTimingTools tools)
    : tools_(std::move(tools)), host_(make_host(tools_.torch.get())) {}

CppKernelTimes::~CppKernelTimes() {
  if (library_ != nullptr) dlclose(library_);
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

std::unique_ptr<PrintedKernels> CppKernelTimes::print(const Plan& plan) {
  return std::make_unique<CppKernels>(plan, tools_.printing.target);
}

std::vector<SourceUnit> CppKernelTimes::print_units(const std::vector<Wanted>& wanted,
                                                    std::map<std::string, size_t>& numbers) const {
  Prelude prelude = make_prelude(tools_.printing.target);
  std::vector<std::string> functions;
  for (const auto& [printed, kernel] : wanted) {
    const auto& kernels = static_cast<const CppKernels&>(*printed);
    if (!numbers.emplace(kernels.identity_of(kernel), functions.size()).second) continue;
    const std::string number = std::to_string(functions.size());
    const CppKernel p = print_cpp_kernel(*kernels.plan.program, kernels.plan.kernels[kernel],
                                         prelude, tools_.printing.target);
    std::string text = replace_all(p.text, kKernelName, "kernel" + number);
    text += "extern \"C\" __attribute__((visibility(\"default\"))) void run" + number +
            "(const LitzHost* host, i32* status, char* const* p) {\n  (void)p;\n  kernel" + number +
            "(host, status";
    for (size_t i = 0; i < p.buffers.size(); ++i) text += ", p[" + std::to_string(i) + "]";
    functions.push_back(text + ");\n}\n");
  }
  const std::string head = prelude.text() + cpp_abi_text();
  std::vector<SourceUnit> units;
  const size_t count = std::min(functions.size(), static_cast<size_t>(tools_.printing.units));
  for (size_t unit = 0; unit < count; ++unit) {
    std::string text = head;
    for (size_t i = unit; i < functions.size(); i += count) text += functions[i];
    units.push_back({"kernels" + std::to_string(unit) + ".cpp", std::move(text)});
  }
  return units;
}

std::string CppKernelTimes::load(std::vector<SourceUnit> units) {
  tools_.job.units = std::move(units);
  const BuildResult built = build_library(tools_.folders, *tools_.compiler, tools_.job);
  if (!built.ok()) return std::string(build_status_name(built.status)) + "; " + built.log;
  folder_ = std::filesystem::path(tools_.job.output_path).parent_path();
  library_ = dlopen(tools_.job.output_path.c_str(), RTLD_NOW | RTLD_LOCAL);
  return library_ == nullptr ? dlerror() : "";
}

bool CppKernelTimes::is_disturbed() const {
  const int32_t threads = tools_.torch->num_threads();
  if (threads == 1) return false;
  const auto nothing = [](int64_t, int64_t, void*) {};
  double fastest = kManySeconds;
  for (int i = 0; i < kLeastSamples; ++i) {
    fastest = std::min(fastest, seconds_of([&] {
                         tools_.torch->parallel_for(0, threads, 1, threads, nothing, nullptr);
                       }));
  }
  return fastest > kFewSecondsOfNothing;
}

bool CppKernelTimes::prepare(const std::vector<Wanted>& wanted, MeasuringTime& time) {
  std::map<std::string, size_t> numbers;
  std::vector<SourceUnit> units = print_units(wanted, numbers);
  if (units.empty()) return true;
  if (const std::string fault = load(std::move(units)); !fault.empty()) {
    time.log += fault + "\n";
    return false;
  }
  for (const auto& [identity, number] : numbers) {
    void* function = dlsym(library_, ("run" + std::to_string(number)).c_str());
    if (function != nullptr) functions_[identity] = reinterpret_cast<RunKernel>(function);
  }
  return true;
}

std::optional<double> CppKernelTimes::seconds(const PrintedKernels& printed,
                                              const std::vector<CountedKernel>& kernels,
                                              MeasuringTime& time) {
  const auto& own = static_cast<const CppKernels&>(printed);
  double sum = 0;
  for (const CountedKernel& counted : kernels) {
    const auto found = functions_.find(own.identity_of(counted.kernel));
    if (found == functions_.end()) return std::nullopt;
    const std::optional<double> each = time.timed([&]() -> Result<double> {
      std::vector<FilledBuffer> buffers;
      std::vector<char*> pointers;
      for (BufferId id : own.printed[counted.kernel.value].buffers) {
        buffers.emplace_back(own.plan.program->buffer(id), *known_bytes(own.plan, id));
        if (buffers.back().data() == nullptr) return Unsupported{"there is not enough memory"};
        pointers.push_back(buffers.back().data());
      }
      int32_t status = LITZ_OK;
      const double seconds =
          fastest_seconds([&] { found->second(&host_, &status, pointers.data()); });
      if (status != LITZ_OK) return Unsupported{"a kernel refuses the values it is timed with"};
      return seconds;
    });
    if (!each) return std::nullopt;
    sum += *each * static_cast<double>(counted.count);
  }
  return sum;
}

}  // namespace litz
