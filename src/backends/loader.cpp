#include <cstdlib>
#include <filesystem>
#include <numeric>

#include <dlfcn.h>
#include <fmt/format.h>

#include "backends/runtime.h"

namespace placewright {
namespace {

constexpr const char* kPluginName = "libplacewright_openvino.so";

// The environment decides, then a plugin beside the program (or where installed), then the one that
// was built with it.
std::vector<std::string> candidates() {
  if (const char* chosen = std::getenv("PLACEWRIGHT_OPENVINO_PLUGIN")) return {chosen};
  std::vector<std::string> paths;
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  if (!ignored) {
    paths.push_back((program.parent_path() / kPluginName).string());
    paths.push_back((program.parent_path() / PLACEWRIGHT_INSTALLED_PLUGINS / kPluginName).string());
  }
  paths.emplace_back(PLACEWRIGHT_OPENVINO_PLUGIN);
  return paths;
}

const Runtime* load() {
#ifdef __SANITIZE_ADDRESS__
  // OpenVINO's TBB loads a library in a way (RTLD_DEEPBIND) that the address sanitizer forbids.
  setenv("TBB_ENABLE_SANITIZERS", "1", 0);
#endif
  std::string reason = "this build has no OpenVINO plugin";
  for (const std::string& path : candidates()) {
    if (path.empty() || !std::filesystem::exists(path)) continue;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      reason = dlerror();
      continue;
    }
    using Entry = const Runtime* (*)();
    const auto entry = reinterpret_cast<Entry>(dlsym(library, "placewright_openvino_runtime"));
    if (entry == nullptr) {
      reason = fmt::format("{} is no plugin of ours", path);
      continue;
    }
    return entry();
  }
  throw RuntimeError(fmt::format("OpenVINO cannot be used: {}", reason));
}

}  // namespace

const Runtime& openvino_runtime() {
  static const Runtime* const runtime = load();
  return *runtime;
}

std::unique_ptr<CompiledPart> NeuralModel::compile_whole(const CompileOptions& options) const {
  std::vector<std::size_t> all(graph().ops.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return compile(all, options);
}

}  // namespace placewright
