#include "runtime/backend_plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

namespace litz {
namespace {

std::string missing_field(const LitzBackend& b) {
  const auto absent = [](std::initializer_list<std::pair<const char*, const void*>> fields) {
    for (const auto& [name, value] : fields) {
      if (value == nullptr) return std::string(name);
    }
    return std::string();
  };
  // A function is no object, so its address is asked for by comparison.
  const auto given = [](auto* function) {
    return function == nullptr ? nullptr : static_cast<const void*>("");
  };
  std::string name = absent({{"name", b.name},
                             {"dialect", b.dialect},
                             {"last_error", given(b.last_error)},
                             {"open_device", given(b.open_device)},
                             {"close_device", given(b.close_device)},
                             {"compile", given(b.compile)},
                             {"free_bytes", given(b.free_bytes)},
                             {"load", given(b.load)},
                             {"unload", given(b.unload)},
                             {"launch", given(b.launch)},
                             {"synchronize", given(b.synchronize)}});
  if (!name.empty()) return name;
  const LitzDialect& d = *b.dialect;
  name = absent({{"source_name", d.source_name},
                 {"prelude", d.prelude},
                 {"types", d.types},
                 {"functions", d.functions},
                 {"kernel", d.kernel},
                 {"global_space", d.global_space},
                 {"block_x", d.block_x},
                 {"block_y", d.block_y},
                 {"thread", d.thread},
                 {"unroll", d.unroll},
                 {"bit_cast", d.bit_cast},
                 {"infinity", d.infinity},
                 {"nan", d.nan},
                 {"int64_suffix", d.int64_suffix}});
  if (name.empty() && d.local_space != nullptr) name = absent({{"barrier", d.barrier}});
  return name.empty() ? name : "dialect->" + name;
}

std::string missing_type(const LitzDialect& dialect) {
  for (const char* wanted : {"f32", "i64", "i32", "u64", "u32", "u16", "u8"}) {
    const bool found =
        std::any_of(dialect.types, dialect.types + dialect.num_types,
                    [&](const LitzTypeRow& row) { return std::string_view(row.dtype) == wanted; });
    if (!found) return wanted;
  }
  return {};
}

// FNV-1a of 64 bits, which tells builds apart.
std::string hash_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  uint64_t hash = 14695981039346656037u;
  for (auto byte = std::istreambuf_iterator<char>(file); byte != std::istreambuf_iterator<char>();
       ++byte)
    hash = (hash ^ static_cast<unsigned char>(*byte)) * 1099511628211u;
  return std::to_string(hash);
}

bool is_power_of_two(int32_t value) { return value >= 0 && (value & (value - 1)) == 0; }

std::string fault_of(const LitzBackend& backend) {
  if (backend.abi_version != LITZ_BACKEND_ABI_VERSION) {
    return "it has ABI version " + std::to_string(backend.abi_version) + ", this Litz has " +
           std::to_string(LITZ_BACKEND_ABI_VERSION) +
           "; build it again with the headers of litz.include_dir()";
  }
  if (backend.size_bytes < sizeof(LitzBackend)) {
    return "its LitzBackend has " + std::to_string(backend.size_bytes) + " bytes, not " +
           std::to_string(sizeof(LitzBackend));
  }
  if (const std::string field = missing_field(backend); !field.empty()) return field + " is NULL";
  if (const std::string type = missing_type(*backend.dialect); !type.empty())
    return "its dialect has no type for " + type;
  const LitzHeuristics& h = backend.heuristics;
  for (int32_t threads : {h.warp, h.block, h.most_group, h.column_width, h.most_column_group}) {
    if (!is_power_of_two(threads))
      return "its heuristics have " + std::to_string(threads) + " threads, no power of two";
  }
  return {};
}

}  // namespace

std::shared_ptr<const BackendPlugin> BackendPlugin::load(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  const auto refuse = [&](const std::string& fault) {
    return UserError("cannot load the backend " + path + ": " + fault);
  };
  if (error || !std::filesystem::is_regular_file(absolute, error))
    throw refuse("there is no such file");
  void* library = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw refuse(dlerror());
  const auto entry = reinterpret_cast<LitzBackendEntry>(dlsym(library, LITZ_BACKEND_ENTRY));
  std::string fault;
  const LitzBackend* table = entry == nullptr ? nullptr : entry();
  if (entry == nullptr) {
    fault = "it exports no function litz_backend";
  } else if (table == nullptr) {
    fault = "litz_backend returns NULL";
  } else {
    fault = fault_of(*table);
  }
  if (!fault.empty()) {
    dlclose(library);
    throw refuse(fault);
  }
  return std::shared_ptr<const BackendPlugin>(
      new BackendPlugin(absolute, hash_of_file(absolute), table));
}

// ---- devices ----

std::string BackendDevice::outcome(int status, const char* doing) const {
  if (status == 0) return {};
  const char* reason = table().last_error();
  return name() + ": " + doing + " failed" +
         (reason == nullptr || *reason == '\0' ? "" : ": " + std::string(reason));
}

std::string BackendDevice::name() const { return plugin_->name() + ":" + std::to_string(number_); }

std::shared_ptr<BackendDevice> BackendDevice::open(std::shared_ptr<const BackendPlugin> plugin,
                                                   int32_t number) {
  std::shared_ptr<BackendDevice> device(new BackendDevice(std::move(plugin), number));
  const LitzBackend& table = device->table();
  const int status = table.open_device(number, &device->device_, &device->info_);
  if (status != 0) device->device_ = nullptr;
  std::string fault = device->outcome(status, "opening the device");
  if (fault.empty() && device->info_.description == nullptr)
    fault = "the device has no description";
  if (fault.empty() && device->info_.shares_memory == 0 &&
      (table.allocate == nullptr || table.release == nullptr || table.copy_in == nullptr ||
       table.copy_out == nullptr)) {
    fault = "the device has memory of its own, and the backend no functions for it";
  }
  if (!fault.empty()) throw UserError(fault);
  return device;
}

BackendDevice::~BackendDevice() {
  if (device_ != nullptr) table().close_device(device_);
}

Result<std::string> BackendDevice::compile(const std::string& source) {
  const std::lock_guard lock(mutex_);
  LitzBytes bytes{};
  const std::string fault =
      outcome(table().compile(device_, source.c_str(), &bytes), "compiling kernels");
  if (!fault.empty()) return Unsupported{fault};
  std::string image(bytes.data, static_cast<size_t>(bytes.size));
  table().free_bytes(&bytes);
  return image;
}

std::string BackendDevice::allocate(int64_t bytes, void** address) {
  const std::lock_guard lock(mutex_);
  return outcome(table().allocate(device_, std::max<int64_t>(bytes, 1), address),
                 "allocating memory");
}

void BackendDevice::release(void* address) {
  const std::lock_guard lock(mutex_);
  table().release(device_, address);
}

std::string BackendDevice::copy_in(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return {};
  const std::lock_guard lock(mutex_);
  return outcome(table().copy_in(device_, to, from, bytes), "copying to the device");
}

std::string BackendDevice::copy_out(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return {};
  const std::lock_guard lock(mutex_);
  return outcome(table().copy_out(device_, to, from, bytes), "copying from the device");
}

std::string BackendDevice::synchronize() {
  const std::lock_guard lock(mutex_);
  return outcome(table().synchronize(device_), "running the kernels");
}

// ---- modules ----

BackendModule::BackendModule(std::shared_ptr<BackendDevice> device, const LitzArtifact& artifact)
    : device_(std::move(device)) {
  const LitzDeviceCode* code = artifact.device_code;
  if (code == nullptr) throw UserError("the graph was compiled for the CPU, not for a backend");
  if (code->target != device_->plugin().name()) {
    throw UserError("the graph was compiled for " + std::string(code->target) + ", not for " +
                    device_->name());
  }
  if (code->num_images < 1) throw UserError("the graph has no kernels for a backend");
  image_ = unpack_backend_image({static_cast<const char*>(code->images[0].bytes),
                                 static_cast<size_t>(code->images[0].num_bytes)});
  std::vector<const char*> names;
  for (const BackendKernel& kernel : image_.kernels) names.push_back(kernel.name.c_str());
  std::string fault;
  {
    const std::lock_guard lock(device_->mutex_);
    fault = device_->outcome(
        device_->table().load(device_->device_, image_.bytes.data(),
                              static_cast<int64_t>(image_.bytes.size()), names.data(),
                              static_cast<int32_t>(names.size()), &module_),
        "loading kernels");
  }
  image_.bytes.clear();
  if (!fault.empty()) throw UserError(fault);
}

BackendModule::~BackendModule() {
  for (const auto& [bytes, address] : constants_) device_->release(address);
  const std::lock_guard lock(device_->mutex_);
  if (module_ != nullptr) device_->table().unload(device_->device_, module_);
}

std::string BackendModule::launch(int32_t kernel, const int64_t* grid, int32_t threads,
                                  void** arguments, void* status) {
  const BackendKernel& called = image_.kernels.at(static_cast<size_t>(kernel));
  std::vector<LitzKernelArgument> values;
  for (int32_t i = 0; i < called.pointers + called.integers; ++i) {
    const bool is_pointer = i < called.pointers;
    values.push_back({is_pointer ? 1 : 0, *static_cast<const int64_t*>(arguments[i])});
  }
  if (called.checks_values) values.push_back({1, reinterpret_cast<int64_t>(status)});
  const std::lock_guard lock(device_->mutex_);
  return device_->outcome(
      device_->table().launch(device_->device_, module_, kernel, grid, threads, values.data(),
                              static_cast<int32_t>(values.size())),
      ("launching the kernel " + called.name).c_str());
}

std::string BackendModule::constant(const void* bytes, int64_t num_bytes, void** data) {
  if (shares_memory()) {
    *data = const_cast<void*>(bytes);
    return {};
  }
  const std::lock_guard lock(mutex_);
  void*& address = constants_[bytes];
  std::string fault;
  if (address == nullptr) {
    fault = device_->allocate(num_bytes, &address);
    if (fault.empty()) fault = device_->copy_in(address, bytes, num_bytes);
    if (!fault.empty()) {
      if (address != nullptr) device_->release(address);
      constants_.erase(bytes);
      return fault;
    }
  }
  *data = address;
  return {};
}

}  // namespace litz
