// Backends outside Litz (litz/backend.h): libraries, their devices, and kernels loaded on them.
#pragma once

#include <litz/artifact.h>
#include <litz/backend.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/backend_image.h"
#include "support/error.h"

namespace litz {

// A backend's library, which stays open as long as the process.
class BackendPlugin {
 public:
  // Throws UserError that names the path and what is wrong: no library, no entry, another ABI
  // version, a field that may not be NULL. Loading runs code: load only what you trust.
  static std::shared_ptr<const BackendPlugin> load(const std::string& path);

  const LitzBackend& table() const { return *table_; }
  std::string name() const { return table_->name; }
  const std::string& path() const { return path_; }
  // Of what the library's file held when it was loaded.
  const std::string& identity() const { return identity_; }

 private:
  BackendPlugin(std::string path, std::string identity, const LitzBackend* table)
      : path_(std::move(path)), identity_(std::move(identity)), table_(table) {}

  std::string path_;
  std::string identity_;
  const LitzBackend* table_;
};

// An opened device. Its functions take turns, whatever thread they are called from. Those that
// return a string say what went wrong, or nothing.
class BackendDevice {
 public:
  // Throws UserError with the backend's own reason.
  static std::shared_ptr<BackendDevice> open(std::shared_ptr<const BackendPlugin> plugin,
                                             int32_t number);
  ~BackendDevice();
  BackendDevice(const BackendDevice&) = delete;
  BackendDevice& operator=(const BackendDevice&) = delete;

  const BackendPlugin& plugin() const { return *plugin_; }
  const LitzDeviceInfo& info() const { return info_; }
  const LitzBackendDevice* handle() const { return device_; }
  std::string name() const;  // "opencl:0"

  Result<std::string> compile(const std::string& source);
  std::string allocate(int64_t bytes, void** address);
  void release(void* address);
  std::string copy_in(void* to, const void* from, int64_t bytes);
  std::string copy_out(void* to, const void* from, int64_t bytes);
  std::string synchronize();

 private:
  friend class BackendModule;
  BackendDevice(std::shared_ptr<const BackendPlugin> plugin, int32_t number)
      : plugin_(std::move(plugin)), number_(number) {}
  const LitzBackend& table() const { return plugin_->table(); }
  std::string outcome(int status, const char* doing) const;

  std::shared_ptr<const BackendPlugin> plugin_;
  int32_t number_;
  LitzBackendDevice* device_ = nullptr;
  LitzDeviceInfo info_{};
  std::mutex mutex_;
};

// The kernels of one artifact on one device. Thread-safe.
class BackendModule {
 public:
  // The artifact must outlive this. Throws UserError where its kernels are for something else or
  // cannot be loaded.
  BackendModule(std::shared_ptr<BackendDevice> device, const LitzArtifact& artifact);
  ~BackendModule();
  BackendModule(const BackendModule&) = delete;
  BackendModule& operator=(const BackendModule&) = delete;

  BackendDevice& device() const { return *device_; }
  const BackendImage& image() const { return image_; }
  bool shares_memory() const { return device_->info().shares_memory != 0; }

  // `arguments` as LitzHost::launch has them; `status` is for a kernel that checks values.
  std::string launch(int32_t kernel, const int64_t* grid, int32_t threads, void** arguments,
                     void* status);
  // As LitzHost::constant.
  std::string constant(const void* bytes, int64_t num_bytes, void** data);

 private:
  std::shared_ptr<BackendDevice> device_;
  BackendImage image_;
  LitzBackendModule* module_ = nullptr;
  std::mutex mutex_;
  std::unordered_map<const void*, void*> constants_;
};

}  // namespace litz
