#include <stdexcept>

#include <dlfcn.h>
#include <fmt/format.h>

#include "planners/learned/learner.h"
#include "plugins/plugin_files.h"
#include "plugins/shared_object.h"

namespace placewright::learned {
namespace {

constexpr const char* kHowToGetIt =
    "the learned planners need libtorch: 'scripts/setup learned' installs it, then build again";

std::vector<std::filesystem::path> plugins() {
  return plugin_files("PLACEWRIGHT_LEARNED_PLUGIN", "libplacewright_learned.so");
}

using Make = Learner* (*)(const LearnerOptions&);

Make load() {
  const auto files = plugins();
  if (files.empty()) throw std::runtime_error(kHowToGetIt);
  const std::filesystem::path& path = files.front();
  const auto [library, error] = open_shared_object(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw std::runtime_error(fmt::format("the learned planners cannot be loaded: {}", error));
  }
  using Interface = int (*)();
  const auto built_for =
      reinterpret_cast<Interface>(dlsym(library, "placewright_learner_interface"));
  const auto make = reinterpret_cast<Make>(dlsym(library, "placewright_make_learner"));
  if (make != nullptr && (built_for == nullptr || built_for() != kLearnerInterface)) {
    throw std::runtime_error(fmt::format(
        "{} was built for another version of Placewright: build it again", path.string()));
  }
  if (make == nullptr) {
    throw std::runtime_error(fmt::format("{} is not a Placewright plugin", path.string()));
  }
  return make;
}

}  // namespace

std::string why_no_plugin() {
  // Every choice of planners asks.
  static const bool missing = plugins().empty();
  return missing ? kHowToGetIt : std::string{};
}

std::unique_ptr<Learner> make_learner(const LearnerOptions& options) {
  static const Make make = load();
  return std::unique_ptr<Learner>(make(options));
}

}  // namespace placewright::learned
