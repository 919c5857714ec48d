#include "serving/model_service.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "formats/input_error.h"

namespace placewright {
namespace {

SchedulerOptions scheduler_of(const ServerSettings& settings) {
  return {.policy = settings.policy,
          .late = settings.late,
          .ageing = settings.ageing,
          .share = settings.share};
}

}  // namespace

std::vector<FoundModel> ModelService::found() const {
  return found_models(settings_.models, settings_.folder);
}

ModelService::ModelService(const ServerSettings& settings, Log log)
    : settings_(settings),
      log_(std::move(log)),
      loader_(settings_),
      engine_(scheduler_of(settings)),
      bringer_([this](const std::stop_token& stop) { bring_in_on_demand(stop); }) {}

void ModelService::load_all() {
  for (const FoundModel& each : found()) {
    if (std::ranges::count(settings_.models, each.path) > 0) serve(each);
  }
  rescan();
  loaded_ = true;
}

void ModelService::rescan() {
  const std::vector<FoundModel> all = found();
  std::set<std::string> there;
  for (const FoundModel& each : all) {
    there.insert(each.path);
    {
      const std::lock_guard lock(mutex_);
      if (unloaded_.contains(each.name)) continue;
      const auto known = stamps_.find(each.path);
      if (known != stamps_.end() && known->second == each.stamp) continue;
    }
    try {
      serve(each);
    } catch (const std::exception& error) {
      say(fmt::format("model '{}' version {} cannot be served: {}", each.name, each.version,
                      error.what()));
    }
  }
  std::vector<std::pair<std::string, std::string>> gone;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(stamps_, [&](const auto& each) { return !there.contains(each.first); });
    std::erase_if(failed_, [&](const auto& each) {
      return std::ranges::none_of(all, [&](const FoundModel& other) {
        return std::pair(other.name, other.version) == each.first;
      });
    });
    for (const auto& [name, versions] : served_) {
      for (const auto& [number, version] : versions) {
        if (!there.contains(version->path)) gone.emplace_back(name, version->version);
      }
    }
  }
  for (const auto& [name, version] : gone) retire(name, version);
}

void ModelService::load(const std::string& name) {
  bool any = false;
  {
    const std::lock_guard lock(mutex_);
    unloaded_.erase(name);
  }
  for (const FoundModel& each : found()) {
    if (each.name != name) continue;
    any = true;
    serve(each);
  }
  if (!any) throw UnknownModel(fmt::format("there is no model '{}'", name));
}

void ModelService::unload(const std::string& name) {
  std::vector<std::string> all;
  {
    const std::lock_guard lock(mutex_);
    const auto found = served_.find(name);
    if (found == served_.end()) throw UnknownModel(fmt::format("there is no model '{}'", name));
    unloaded_[name] = true;
    for (const auto& [number, version] : found->second) all.push_back(version->version);
  }
  for (const std::string& version : all) retire(name, version);
}

std::vector<double> ModelService::own_times_beside(const std::string& name) const {
  std::vector<double> times;
  const std::lock_guard lock(mutex_);
  for (const auto& [other, versions] : served_) {
    for (const auto& [number, version] : versions) {
      if (other != name) times.push_back(version->cuts.whole);
    }
  }
  return times;
}

void ModelService::serve(const FoundModel& found) {
  const std::lock_guard loading(loading_);
  {
    const std::lock_guard lock(mutex_);
    stamps_[found.path] = found.stamp;
    failed_[{found.name, found.version}] = "it is being loaded";
  }
  try {
    auto version = std::make_shared<ServedVersion>();
    version->name = found.name;
    version->version = found.version;
    version->path = found.path;
    version->forecast = std::make_shared<LatencyRecord>();
    bring_in(*version);
    publish(std::move(version));
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    failed_[{found.name, found.version}] = error.what();
    throw;
  }
}

// In place of the one before, if any: there is no moment without one.
void ModelService::publish(std::shared_ptr<ServedVersion> version) {
  std::string line = fmt::format("model '{}' version {} is ready: {}", version->name,
                                 version->version, forms_text(version->cuts));
  std::shared_ptr<ServedVersion> old = version;
  {
    const std::lock_guard lock(mutex_);
    failed_.erase({version->name, version->version});
    if (unloaded_.contains(version->name)) {
      line = fmt::format("model '{}' was unloaded while it was loaded", version->name);
    } else {
      old = std::exchange(served_[version->name][version_number(version->version).value_or(1)],
                          version);
      if (old != nullptr && old->path != version->path) stamps_.erase(old->path);
    }
  }
  say(line);
  if (old != nullptr) end(*old);
}

void ModelService::end(ServedVersion& version) {
  if (const Residence old = version.take_residence(); old.model != nullptr) {
    engine_.remove(old.number);
  }
  say(fmt::format("model '{}' version {} is unloaded", version.name, version.version));
}

void ModelService::retire(const std::string& name, const std::string& version) {
  std::shared_ptr<ServedVersion> old;
  {
    const std::lock_guard lock(mutex_);
    const auto versions = served_.find(name);
    if (versions == served_.end()) return;
    const auto found = versions->second.find(version_number(version).value_or(1));
    if (found == versions->second.end()) return;
    old = found->second;
    versions->second.erase(found);
    if (versions->second.empty()) served_.erase(versions);
    stamps_.erase(old->path);
  }
  end(*old);
}

std::shared_ptr<ServedVersion> ModelService::find(const std::string& name,
                                                  const std::string& version) const {
  const std::lock_guard lock(mutex_);
  const auto found = served_.find(name);
  if (found != served_.end()) {
    if (version.empty()) return found->second.rbegin()->second;
    const auto number = version_number(version);
    const auto one = found->second.find(number.value_or(0));
    if (one != found->second.end()) return one->second;
    throw UnknownModel(fmt::format("the model '{}' has no version '{}'", name, version));
  }
  for (const auto& [key, reason] : failed_) {
    if (key.first == name) {
      throw UnknownModel(fmt::format("the model '{}' is not served: {}", name, reason));
    }
  }
  throw UnknownModel(fmt::format("there is no model '{}'", name));
}

std::vector<std::string> ModelService::versions(const std::string& name) const {
  std::vector<std::string> versions;
  const std::lock_guard lock(mutex_);
  const auto found = served_.find(name);
  if (found == served_.end()) return versions;
  for (const auto& [number, version] : found->second) versions.push_back(version->version);
  return versions;
}

std::vector<ModelState> ModelService::states() const {
  std::vector<ModelState> states;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, versions] : served_) {
    for (const auto& [number, version] : versions) {
      states.push_back({name, version->version, true, ""});
    }
  }
  for (const auto& [key, reason] : failed_) {
    states.push_back({key.first, key.second, false, reason});
  }
  return states;
}

bool ModelService::ready() const {
  return loaded_ && !draining_;
}

void ModelService::drain() {
  draining_ = true;
  answer_waiting();
  engine_.drain();
}

}  // namespace placewright
