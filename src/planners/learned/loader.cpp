#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>

#include "planners/learned/learner.h"

namespace placewright::learned {
namespace {

constexpr const char* kPluginName = "libplacewright_learned.so";
constexpr const char* kHowToGetIt =
    "the learned planners need libtorch: 'scripts/setup learned' installs it, then build again";

// The environment decides, then a plugin beside the program (or where installed), then the one that
// was built with it.
std::vector<std::string> candidates() {
  if (const char* chosen = std::getenv("PLACEWRIGHT_LEARNED_PLUGIN")) return {chosen};
  std::vector<std::string> paths;
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  if (!ignored) {
    paths.push_back((program.parent_path() / kPluginName).string());
    paths.push_back((program.parent_path() / PLACEWRIGHT_INSTALLED_PLUGINS / kPluginName).string());
  }
  paths.emplace_back(PLACEWRIGHT_LEARNED_PLUGIN);
  return paths;
}

std::string plugin_path() {
  for (std::string& path : candidates()) {
    std::error_code ignored;
    if (!path.empty() && std::filesystem::exists(path, ignored)) return std::move(path);
  }
  return {};
}

using Make = Learner* (*)(const LearnerOptions&);

Make load() {
  const std::string path = plugin_path();
  if (path.empty()) throw std::runtime_error(kHowToGetIt);
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw std::runtime_error(fmt::format("the learned planners cannot be loaded: {}", dlerror()));
  }
  const auto make = reinterpret_cast<Make>(dlsym(library, "placewright_make_learner"));
  if (make == nullptr)
    throw std::runtime_error(fmt::format("{} is not a Placewright plugin", path));
  return make;
}

}  // namespace

std::string why_no_plugin() {
  // Every choice of planners asks.
  static const bool missing = plugin_path().empty();
  return missing ? kHowToGetIt : std::string{};
}

std::unique_ptr<Learner> make_learner(const LearnerOptions& options) {
  static const Make make = load();
  return std::unique_ptr<Learner>(make(options));
}

}  // namespace placewright::learned
