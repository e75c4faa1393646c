// A backend for tests: prints kernels as C, compiles them with cc, and calls them here, one thread
// to a block, no sooner than somebody waits for them. Its device shares the process's memory and
// has no local memory.
#include <dlfcn.h>
#include <litz/backend.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

struct LitzBackendModule {
  void* library;
  int* block;
  std::vector<void*> kernels;
};

namespace {

const LitzTypeRow kTypes[] = {{"f64", "double"},         {"f32", "float"},
                              {"i64", "long"},           {"i32", "int"},
                              {"i16", "short"},          {"i8", "signed char"},
                              {"u64", "unsigned long"},  {"u32", "unsigned"},
                              {"u16", "unsigned short"}, {"u8", "unsigned char"}};
const LitzFunctionRow kFunctions[] = {{"sqrt exp tanh erf", "f32", "$f(x)"}};
const LitzDialect kDialect = {
    .source_name = "kernels.c",
    .prelude = "#include <math.h>\n#include <stdbool.h>\nint litz_block[2];",
    .types = kTypes,
    .num_types = sizeof kTypes / sizeof *kTypes,
    .functions = kFunctions,
    .num_functions = 1,
    .kernel = "void $name",
    .global_space = "",
    .local_space = nullptr,
    .block_x = "litz_block[0]",
    .block_y = "litz_block[1]",
    .thread = "0",
    .barrier = nullptr,
    .unroll = "",
    .shuffle = nullptr,
    .bit_cast =
        "({ __typeof__(x) litz_from = (x); $type litz_to; __builtin_memcpy(&litz_to, "
        "&litz_from, sizeof litz_to); litz_to; })",
    .infinity = "INFINITY",
    .nan = "NAN",
    .int64_suffix = "L",
    .compare_exchange = "__sync_val_compare_and_swap(p, expected, desired)",
};

std::string last_message;
thread_local std::vector<std::function<void()>> queue;

int fail(const std::string& message) {
  last_message = message;
  return 1;
}

int open_device(int32_t, LitzBackendDevice** device, LitzDeviceInfo* info) {
  *device = nullptr;
  *info = {.description = "C in this process", .without_dtypes = nullptr, .shares_memory = 1};
  return 0;
}

std::string temporary(const std::string& suffix) {
  std::string path = "/tmp/litz-host-c-XXXXXX" + suffix;
  close(mkstemps(path.data(), static_cast<int>(suffix.size())));
  return path;
}

int compile(LitzBackendDevice*, const char* source, LitzBytes* image) {
  const std::string in = temporary(".c");
  const std::string out = temporary(".so");
  std::ofstream(in) << source;
  const std::string command =
      "cc -O1 -ffp-contract=off -fwrapv -shared -fPIC -o " + out + " " + in + " -lm";
  if (std::system(command.c_str()) != 0) return fail("cc rejects " + in);
  std::ifstream file(out, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  image->size = static_cast<int64_t>(bytes.size());
  image->data = static_cast<char*>(std::malloc(bytes.size()));
  std::memcpy(image->data, bytes.data(), bytes.size());
  unlink(in.c_str());
  unlink(out.c_str());
  return 0;
}

int load(LitzBackendDevice*, const void* image, int64_t bytes, const char* const* kernels,
         int32_t count, LitzBackendModule** module) {
  const std::string path = temporary(".so");
  std::ofstream(path, std::ios::binary).write(static_cast<const char*>(image), bytes);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  unlink(path.c_str());
  if (library == nullptr) return fail(dlerror());
  *module = new LitzBackendModule{library, static_cast<int*>(dlsym(library, "litz_block")), {}};
  for (int32_t i = 0; i < count; ++i) (*module)->kernels.push_back(dlsym(library, kernels[i]));
  return 0;
}

void unload(LitzBackendDevice*, LitzBackendModule* module) {
  dlclose(module->library);
  delete module;
}

int launch(LitzBackendDevice*, LitzBackendModule* module, int32_t kernel, const int64_t* grid,
           int32_t threads, const LitzKernelArgument* arguments, int32_t count) {
  // Integers and pointers travel alike, and a function does not see more than it has.
  using Kernel = void (*)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                          int64_t, int64_t, int64_t, int64_t);
  std::array<int64_t, 12> a = {};
  if (count > 12 || threads != 1)
    return fail("a kernel of " + std::to_string(count) + " arguments");
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) a[i] = arguments[i].value;
  const auto called = reinterpret_cast<Kernel>(module->kernels[static_cast<size_t>(kernel)]);
  queue.push_back([=, columns = grid[0], rows = grid[1]] {
    for (int64_t y = 0; y < rows; ++y) {
      for (int64_t x = 0; x < columns; ++x) {
        module->block[0] = static_cast<int>(x);
        module->block[1] = static_cast<int>(y);
        called(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
      }
    }
  });
  return 0;
}

int synchronize(LitzBackendDevice*) {
  for (const auto& call : queue) call();
  queue.clear();
  return 0;
}

const LitzBackend kBackend = {
    .abi_version = LITZ_BACKEND_ABI_VERSION,
    .size_bytes = sizeof(LitzBackend),
    .name = "host_c",
    .dialect = &kDialect,
    .heuristics =
        {.warp = 1, .block = 1, .most_group = 1, .column_width = 1, .most_column_group = 1},
    .choose_threads = nullptr,
    .last_error = [] { return last_message.c_str(); },
    .open_device = open_device,
    .close_device = [](LitzBackendDevice*) {},
    .compile = compile,
    .free_bytes = [](LitzBytes* bytes) { std::free(bytes->data); },
    .load = load,
    .unload = unload,
    .allocate = nullptr,
    .release = nullptr,
    .copy_in = nullptr,
    .copy_out = nullptr,
    .launch = launch,
    .synchronize = synchronize,
};

}  // namespace

extern "C" const LitzBackend* litz_backend(void) { return &kBackend; }
