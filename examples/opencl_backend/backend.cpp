// A device backend for Litz: prints kernels as OpenCL C and runs them on any OpenCL 2 device that
// has shared virtual memory, PoCL's CPU among them. The only header of Litz that it uses is
// <litz/backend.h>, and it links nothing but the loader of OpenCL libraries.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <litz/backend.h>

#include <cstdlib>
#include <string>
#include <vector>

struct LitzBackendDevice {
  cl_device_id id = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  bool is_cpu = false;
  std::string description;
  std::string without;
};

struct LitzBackendModule {
  cl_program program = nullptr;
  std::vector<cl_kernel> kernels;
};

namespace {

// ---- the dialect ----

const LitzTypeRow kTypes[] = {
    {"f64", "double"}, {"f32", "float"}, {"i64", "long"}, {"i32", "int"},    {"i16", "short"},
    {"i8", "char"},    {"u64", "ulong"}, {"u32", "uint"}, {"u16", "ushort"}, {"u8", "uchar"}};

const LitzFunctionRow kFunctions[] = {
    {"sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh "
     "acosh "
     "atanh erf erfc lgamma floor ceil trunc",
     "f32 f64", "$(x)"},
    {"round", "f32 f64", "rint(x)"},
    {"abs", "f32 f64", "fabs(x)"},
    {"pow atan2 hypot fmod nextafter copysign", "f32 f64", "$(x, y)"},
    {"fma", "f32 f64", "fma(x, y, z)"},
};

const LitzDialect kDialect = {
    .source_name = "kernels.cl",
    // Results are eager's, so nothing is contracted behind our back.
    .prelude = "#pragma OPENCL FP_CONTRACT OFF\n",
    .types = kTypes,
    .num_types = sizeof kTypes / sizeof *kTypes,
    .functions = kFunctions,
    .num_functions = sizeof kFunctions / sizeof *kFunctions,
    .kernel = "__kernel __attribute__((reqd_work_group_size($threads, 1, 1))) void $name",
    .global_space = "__global",
    .local_space = "__local",
    .block_x = "get_group_id(0)",
    .block_y = "get_group_id(1)",
    .thread = "get_local_id(0)",
    .barrier = "barrier(CLK_LOCAL_MEM_FENCE);",
    .unroll = "",
    .shuffle = nullptr,
    .bit_cast = "as_$type(x)",
    .infinity = "INFINITY",
    .nan = "NAN",
    .int64_suffix = "L",
    .compare_exchange = "atomic_cmpxchg(p, expected, desired)",
};

// ---- strategy: on a CPU a work-group is one core's, and threads that wait for each other cost
// ----

void choose_threads(const LitzBackendDevice* device, const LitzKernelShape* shape,
                    LitzThreadChoice* choice) {
  const bool enough_rows = shape->rows < 0 || shape->rows >= 256;
  if (device == nullptr || !device->is_cpu || !enough_rows || choice->group == 1) return;
  choice->group = 1;
  choice->groups = 32;
}

// ---- the launcher ----

thread_local std::string last_message;

int fail(const std::string& message) {
  last_message = message;
  return 1;
}

int check(cl_int status, const char* function) {
  return status == CL_SUCCESS
             ? 0
             : fail(std::string(function) + " gave error " + std::to_string(status));
}

std::string device_text(cl_device_id id, cl_device_info what) {
  char text[1024] = "";
  clGetDeviceInfo(id, what, sizeof text, text, nullptr);
  return text;
}

template <class T>
T device_number(cl_device_id id, cl_device_info what) {
  T value{};
  clGetDeviceInfo(id, what, sizeof value, &value, nullptr);
  return value;
}

std::vector<cl_device_id> all_devices() {
  cl_platform_id platforms[16];
  cl_uint num_platforms = 0;
  if (clGetPlatformIDs(16, platforms, &num_platforms) != CL_SUCCESS) num_platforms = 0;
  std::vector<cl_device_id> devices;
  for (cl_uint p = 0; p < num_platforms && p < 16; ++p) {
    cl_device_id found[16];
    cl_uint count = 0;
    if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 16, found, &count) == CL_SUCCESS)
      devices.insert(devices.end(), found, found + (count < 16 ? count : 16));
  }
  return devices;
}

void close_device(LitzBackendDevice* device) {
  if (device->queue != nullptr) clReleaseCommandQueue(device->queue);
  if (device->context != nullptr) clReleaseContext(device->context);
  delete device;
}

int open_device(int32_t number, LitzBackendDevice** opened, LitzDeviceInfo* info) {
  const std::vector<cl_device_id> devices = all_devices();
  if (devices.empty())
    return fail("there is no OpenCL platform; Debian has one in the package pocl-opencl-icd");
  if (static_cast<size_t>(number) >= devices.size())
    return fail("there are " + std::to_string(devices.size()) + " OpenCL devices");
  auto* device = new LitzBackendDevice;
  device->id = devices[static_cast<size_t>(number)];
  const auto memory =
      device_number<cl_device_svm_capabilities>(device->id, CL_DEVICE_SVM_CAPABILITIES);
  cl_int status = CL_SUCCESS;
  if (memory == 0) {
    delete device;
    return fail("the device has no shared virtual memory, which OpenCL 2 brought");
  }
  device->context = clCreateContext(nullptr, 1, &device->id, nullptr, nullptr, &status);
  if (status == CL_SUCCESS)
    device->queue =
        clCreateCommandQueueWithProperties(device->context, device->id, nullptr, &status);
  if (status != CL_SUCCESS) {
    close_device(device);
    return check(status, "making a command queue");
  }
  device->is_cpu = device_number<cl_device_type>(device->id, CL_DEVICE_TYPE) == CL_DEVICE_TYPE_CPU;
  device->description =
      device_text(device->id, CL_DEVICE_NAME) + ", " + device_text(device->id, CL_DRIVER_VERSION);
  if (device_number<cl_device_fp_config>(device->id, CL_DEVICE_DOUBLE_FP_CONFIG) == 0)
    device->without = "f64";
  info->description = device->description.c_str();
  info->without_dtypes = device->without.c_str();
  info->shares_memory = (memory & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM) != 0;
  *opened = device;
  return 0;
}

int build(LitzBackendDevice* device, cl_program program) {
  // Rounded as eager PyTorch rounds; without the option division may be off by 2.5 units.
  const cl_int status =
      clBuildProgram(program, 1, &device->id,
                     "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt", nullptr, nullptr);
  if (status == CL_SUCCESS) return 0;
  std::string log(1 << 16, '\0');
  clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, log.size(), log.data(), nullptr);
  return fail("clBuildProgram gave error " + std::to_string(status) + ": " + log.c_str());
}

int compile(LitzBackendDevice* device, const char* source, LitzBytes* image) {
  cl_int status = CL_SUCCESS;
  cl_program program = clCreateProgramWithSource(device->context, 1, &source, nullptr, &status);
  if (status != CL_SUCCESS) return check(status, "clCreateProgramWithSource");
  int result = build(device, program);
  size_t size = 0;
  if (result == 0)
    result = check(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr),
                   "clGetProgramInfo");
  if (result == 0) {
    image->data = static_cast<char*>(std::malloc(size));
    image->size = static_cast<int64_t>(size);
    result =
        check(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(char*), &image->data, nullptr),
              "clGetProgramInfo");
  }
  clReleaseProgram(program);
  return result;
}

void free_bytes(LitzBytes* bytes) { std::free(bytes->data); }

void unload(LitzBackendDevice*, LitzBackendModule* module) {
  for (cl_kernel kernel : module->kernels) clReleaseKernel(kernel);
  if (module->program != nullptr) clReleaseProgram(module->program);
  delete module;
}

int load(LitzBackendDevice* device, const void* image, int64_t image_bytes,
         const char* const* kernels, int32_t num_kernels, LitzBackendModule** loaded) {
  const auto size = static_cast<size_t>(image_bytes);
  const auto* bytes = static_cast<const unsigned char*>(image);
  auto* module = new LitzBackendModule;
  cl_int status = CL_SUCCESS;
  module->program =
      clCreateProgramWithBinary(device->context, 1, &device->id, &size, &bytes, nullptr, &status);
  int result = check(status, "clCreateProgramWithBinary");
  if (result == 0) result = build(device, module->program);
  for (int32_t i = 0; i < num_kernels && result == 0; ++i) {
    cl_kernel kernel = clCreateKernel(module->program, kernels[i], &status);
    result = check(status, "clCreateKernel");
    if (result == 0) module->kernels.push_back(kernel);
  }
  if (result != 0) {
    unload(device, module);
    return result;
  }
  *loaded = module;
  return 0;
}

int allocate(LitzBackendDevice* device, int64_t bytes, void** address) {
  *address = clSVMAlloc(device->context, CL_MEM_READ_WRITE, static_cast<size_t>(bytes), 0);
  return *address != nullptr ? 0 : fail("no memory for " + std::to_string(bytes) + " bytes");
}

void release(LitzBackendDevice* device, void* address) {
  clFinish(device->queue);
  clSVMFree(device->context, address);
}

int copy(LitzBackendDevice* device, void* to, const void* from, int64_t bytes) {
  return check(clEnqueueSVMMemcpy(device->queue, CL_TRUE, to, from, static_cast<size_t>(bytes), 0,
                                  nullptr, nullptr),
               "clEnqueueSVMMemcpy");
}

int launch(LitzBackendDevice* device, LitzBackendModule* module, int32_t kernel,
           const int64_t* grid, int32_t threads, const LitzKernelArgument* arguments,
           int32_t num_arguments) {
  cl_kernel called = module->kernels[static_cast<size_t>(kernel)];
  for (int32_t i = 0; i < num_arguments; ++i) {
    const auto index = static_cast<cl_uint>(i);
    const LitzKernelArgument& a = arguments[i];
    const cl_int status =
        a.is_pointer != 0
            ? clSetKernelArgSVMPointer(called, index, reinterpret_cast<const void*>(a.value))
            : clSetKernelArg(called, index, sizeof a.value, &a.value);
    if (status != CL_SUCCESS) return check(status, "setting an argument");
  }
  const auto width = static_cast<size_t>(threads);
  const size_t global[] = {static_cast<size_t>(grid[0]) * width, static_cast<size_t>(grid[1])};
  const size_t local[] = {width, 1};
  return check(
      clEnqueueNDRangeKernel(device->queue, called, 2, nullptr, global, local, 0, nullptr, nullptr),
      "clEnqueueNDRangeKernel");
}

int synchronize(LitzBackendDevice* device) { return check(clFinish(device->queue), "clFinish"); }

const LitzBackend kBackend = {
    .abi_version = LITZ_BACKEND_ABI_VERSION,
    .size_bytes = sizeof(LitzBackend),
    .name = "opencl",
    .dialect = &kDialect,
    .heuristics =
        {.warp = 16, .block = 64, .most_group = 64, .column_width = 16, .most_column_group = 4},
    .choose_threads = choose_threads,
    .last_error = [] { return last_message.c_str(); },
    .open_device = open_device,
    .close_device = close_device,
    .compile = compile,
    .free_bytes = free_bytes,
    .load = load,
    .unload = unload,
    .allocate = allocate,
    .release = release,
    .copy_in = copy,
    .copy_out = copy,
    .launch = launch,
    .synchronize = synchronize,
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const LitzBackend* litz_backend(void) {
  return &kBackend;
}
