#include "runtime/loaded_artifact.h"

#include <dlfcn.h>

#include <filesystem>
#include <optional>
#include <system_error>

#include <nlohmann/json.hpp>

#include "support/error.h"
#include "support/target.h"

namespace litz {
namespace {

// Why this machine cannot run what was compiled, if the description says for which CPU that was.
// Asking what the machine is makes the kernel let it use all that it has.
std::optional<std::string> fault_of_target(const char* description) {
  if (description == nullptr) return std::nullopt;
  const auto json = nlohmann::json::parse(description, nullptr, false);
  if (!json.is_object() || !json.contains("target") || !json["target"].is_string())
    return std::nullopt;
  const std::string text = json["target"];
  const CpuTarget here = CpuTarget::detect();
  const Result<CpuTarget> target = CpuTarget::parse(text);
  if (target && target->runs_on(here)) return std::nullopt;
  return "it is compiled for " + text + ", and this machine is " + here.text() +
         "; compile the graph for it";
}

}  // namespace

std::shared_ptr<const LoadedArtifact> LoadedArtifact::load(const std::string& path) {
  // dlopen searches the library path for a name without a slash; an absolute path means this file.
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error || !std::filesystem::is_regular_file(absolute, error)) {
    throw UserError("cannot load compiled graph " + path + ": there is no such file");
  }
  void* library = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw UserError("cannot load compiled graph " + path + ": " + dlerror());
  }
  const auto* table = static_cast<const LitzArtifact*>(dlsym(library, "litz_artifact"));
  std::string fault;
  if (table == nullptr) {
    fault = "it exports no symbol litz_artifact";
  } else if (table->abi_version != LITZ_ABI_VERSION) {
    fault = "it has ABI version " + std::to_string(table->abi_version) + ", this runtime has " +
            std::to_string(LITZ_ABI_VERSION) + "; compile the graph again";
  } else {
    fault = fault_of_target(table->description).value_or("");
  }
  if (!fault.empty()) {
    dlclose(library);
    throw UserError("cannot load compiled graph " + path + ": " + fault);
  }
  return std::shared_ptr<const LoadedArtifact>(new LoadedArtifact(path, library, table));
}

LoadedArtifact::~LoadedArtifact() { dlclose(library_); }

}  // namespace litz
