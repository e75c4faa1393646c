#include "cuda_on_host.h"

#include <regex>

namespace litz::testing {
namespace {

// Each thread of a block is a context of its own, which gives way to the next one where it waits.
constexpr const char* kDevice = R"(
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>
#include <ucontext.h>
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace device {

constexpr unsigned kWarp = 32;
constexpr size_t kStack = 128 * 1024;

struct Position { unsigned x = 0, y = 0; };
unsigned long steps = 0;  // that threads have gone on
struct Meeting {
  unsigned members = 0, arrived = 0, number = 0;
  bool left = false;  // a member has returned
  void open() { if (arrived == members) { arrived = 0; ++number; ++steps; } }
};
struct Thread {
  ucontext_t context;
  std::unique_ptr<char[]> stack{new char[kStack]};
  bool done = false;
};

Position thread_index, block_index;
ucontext_t scheduler;
std::vector<Thread> threads;
std::vector<Meeting> warps;
std::vector<unsigned long long> exchanged;
Meeting block;
const char* fault = nullptr;
void (*body)(char**);
char** arguments;

void wait(Meeting& meeting) {
  const unsigned number = meeting.number;
  ++meeting.arrived;
  meeting.open();
  while (meeting.number == number && fault == nullptr)
    swapcontext(&threads[thread_index.x].context, &scheduler);
}

void run_thread() {
  const unsigned own = thread_index.x;
  body(arguments);
  Meeting& warp = warps[own / kWarp];
  --warp.members;
  warp.left = true;
  --block.members;
  if (block.members > 0) block.open();
  threads[own].done = true;
  ++steps;
  swapcontext(&threads[own].context, &scheduler);
}

void run_block(unsigned count) {
  threads.resize(count);
  warps.assign((count + kWarp - 1) / kWarp, {});
  exchanged.assign(count, 0);
  block = {};
  block.members = count;
  for (unsigned i = 0; i < count; ++i) {
    ++warps[i / kWarp].members;
    threads[i].done = false;
    getcontext(&threads[i].context);
    threads[i].context.uc_stack.ss_sp = threads[i].stack.get();
    threads[i].context.uc_stack.ss_size = kStack;
    threads[i].context.uc_link = nullptr;
    makecontext(&threads[i].context, run_thread, 0);
  }
  for (bool any = true; any && fault == nullptr;) {
    any = false;
    const unsigned long before = steps;
    for (unsigned i = 0; i < count; ++i) {
      if (threads[i].done) continue;
      any = true;
      thread_index.x = i;
      swapcontext(&scheduler, &threads[i].context);
    }
    if (any && steps == before) fault = "threads wait for others that do not come";
  }
}

template <class T>
T exchange(T value, int distance) {
  const unsigned own = thread_index.x;
  Meeting& warp = warps[own / kWarp];
  if (warp.left || warp.members < kWarp) fault = "a warp exchanges values of threads that returned";
  std::memcpy(&exchanged[own], &value, sizeof(T));
  wait(warp);
  std::memcpy(&value, &exchanged[own ^ (unsigned)distance], sizeof(T));
  wait(warp);
  return value;
}

template <class T, class F>
T bits(F x) { T r; std::memcpy(&r, &x, sizeof(T)); return r; }

}  // namespace device

extern "C" const char* run_on_device(void (*body)(char**), char** arguments, long blocks, long splits,
                                     int threads) {
  device::fault = nullptr;
  device::body = body;
  device::arguments = arguments;
  for (long y = 0; y < splits; ++y) {
    for (long x = 0; x < blocks && device::fault == nullptr; ++x) {
      device::block_index = {(unsigned)x, (unsigned)y};
      device::run_block((unsigned)threads);
    }
  }
  return device::fault;
}

#define threadIdx device::thread_index
#define blockIdx device::block_index
#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(n)
#define __align__(n) alignas(n)
#define __shared__ static
#define __syncthreads() device::wait(device::block)
#define __shfl_xor_sync(mask, value, distance) device::exchange(value, distance)
#define __int_as_float(x) device::bits<float>(x)
#define __uint_as_float(x) device::bits<float>(x)
#define __float_as_uint(x) device::bits<unsigned>(x)
#define __longlong_as_double(x) device::bits<double>(x)
#define __fsqrt_rn(x) sqrtf(x)
#define __fmaf_rn(x, y, z) fmaf(x, y, z)
#define __builtin_assume(x)
extern "C" void __assertfail(const char* message, const char*, unsigned, const char*, unsigned long) {
  device::fault = message;
}
)";

std::string arguments_text(const SimtProgram::Kernel& kernel) {
  std::string list;
  for (size_t i = 0; i <= kernel.printed.buffers.size(); ++i)
    list += (i == 0 ? "p[" : ", p[") + std::to_string(i) + "]";
  return list;
}

}  // namespace

CudaOnHost::CudaOnHost(const SimtProgram& program) : program_(program) {
  std::string text =
      kDevice + std::regex_replace(program.text(), std::regex("_Pragma\\(.*?\\) "), "");
  for (const SimtFunction& function : functions_of(program))
    text += "extern \"C\" void run_" + function.name + "(char** p) { (void)p; " + function.name +
            "(" + arguments_text(program.kernels[function.kernel]) + "); }\n";
  library_ = std::make_unique<Library>(text, baseline_target());
}

std::string CudaOnHost::run(size_t kernel, const std::vector<void*>& pointers) const {
  const SimtProgram::Kernel& k = program_.kernels[kernel];
  using Body = void(char**);
  const auto run_on_device =
      library_->find<const char*(Body*, char**, long, long, int)>("run_on_device");
  std::vector<char*> arguments;
  for (void* pointer : pointers) arguments.push_back(static_cast<char*>(pointer));
  std::string suffix;
  for (const SimtKernel::Launch& launch : k.printed.launches) {
    const char* fault =
        run_on_device(library_->find<Body>("run_" + k.name + suffix), arguments.data(),
                      launch.blocks.constant(), launch.splits, launch.threads);
    if (fault != nullptr) return fault;
    suffix = kSimtFinish;
  }
  return {};
}

}  // namespace litz::testing
