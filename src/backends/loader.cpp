#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <numeric>

#include <dlfcn.h>
#include <fmt/format.h>

#include "backends/registry.h"
#include "plugins/plugin_files.h"
#include "plugins/shared_object.h"

namespace placewright {
namespace {

namespace fs = std::filesystem;

// PLACEWRIGHT_OPENVINO_PLUGIN for the backend `openvino`.
std::string variable_of(const BackendEntry& entry) {
  std::string name = entry.name;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  return fmt::format("PLACEWRIGHT_{}_PLUGIN", name);
}

// Throws RuntimeError with the reason, the part of the sentence behind "cannot be used: ".
const Runtime* loaded_from(const fs::path& path) {
  const auto [library, error] = open_shared_object(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw RuntimeError(error);
  const auto interface =
      reinterpret_cast<int (*)()>(dlsym(library, "placewright_backend_interface"));
  const auto runtime =
      reinterpret_cast<const Runtime* (*)()>(dlsym(library, "placewright_backend"));
  if (interface == nullptr || runtime == nullptr) {
    throw RuntimeError(fmt::format("{} is not a plugin of this version", path.string()));
  }
  if (interface() != kBackendInterface) {
    throw RuntimeError(
        fmt::format("{} was built for interface {}, this program has {}: build it again",
                    path.string(), interface(), kBackendInterface));
  }
  return runtime();
}

const Runtime* load(const BackendEntry& entry) {
#ifdef __SANITIZE_ADDRESS__
  // OpenVINO's TBB loads a library in a way (RTLD_DEEPBIND) that the address sanitizer forbids.
  setenv("TBB_ENABLE_SANITIZERS", "1", 0);
#endif
  std::string reason = fmt::format("this build has no plugin for it ({})", entry.how_to_get);
  for (const fs::path& path : plugin_files(variable_of(entry), entry.library)) {
    try {
      return loaded_from(path);
    } catch (const RuntimeError& error) {
      reason = error.what();
    }
  }
  throw RuntimeError(fmt::format("{} cannot be used: {}", entry.title, reason));
}

}  // namespace

const Runtime& runtime_named(std::string_view backend) {
  static std::mutex mutex;
  static std::map<std::string, const Runtime*> loaded;
  const BackendEntry& entry = backend_named(backend);
  const std::lock_guard lock(mutex);
  const auto found = loaded.find(entry.name);
  if (found != loaded.end()) return *found->second;
  return *loaded.emplace(entry.name, load(entry)).first->second;
}

std::unique_ptr<CompiledPart> NeuralModel::compile_whole(const CompileOptions& options) const {
  std::vector<std::size_t> all(graph().ops.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return compile(all, options);
}

}  // namespace placewright
