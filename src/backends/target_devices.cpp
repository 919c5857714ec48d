#include "backends/target_devices.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace placewright {
namespace {

std::string names_served() {
  std::vector<std::string> names{
      fmt::format("sets of cores ({}0, {}0-3)", kCoresPrefix, kCoresPrefix)};
  for (const BackendEntry& entry : backend_entries()) {
    names.push_back(fmt::format("{} of {}", fmt::join(entry.devices, ", "), entry.title));
  }
  return fmt::format("{}", fmt::join(names, "; "));
}

const RuntimeDevice* find(const std::vector<RuntimeDevice>& devices, const std::string& name) {
  const auto found = std::find_if(devices.begin(), devices.end(),
                                  [&](const RuntimeDevice& device) { return device.name == name; });
  return found == devices.end() ? nullptr : &*found;
}

std::optional<std::string> obstacle(const Target& target) {
  if (!target.cores.empty()) {
    if (auto reason = placewright::obstacle(target.cores)) return reason;
    if (!target.pinned || target.cores == allowed_cores()) return std::nullopt;
    return fmt::format(
        "'{}' lets the backend choose among all cores of this process, and has only {} of {}",
        name_of(target), target.cores.size(), allowed_cores().size());
  }
  try {
    const std::vector<RuntimeDevice> devices = runtime_named(target.backend).devices();
    if (find(devices, target.device) != nullptr) return std::nullopt;
    std::vector<std::string> names;
    for (const RuntimeDevice& device : devices) names.push_back(device.name);
    return fmt::format("{} has no device '{}' here, only: {}", backend_named(target.backend).title,
                       target.device, fmt::join(names, ", "));
  } catch (const RuntimeError& error) {
    return error.what();
  }
}

}  // namespace

Target target_named(std::string_view name) {
  if (name.empty()) throw std::invalid_argument("a device has no name");
  if (name.starts_with(kCoresPrefix)) {
    const bool pinned = name.ends_with(kPinnedEnding);
    if (pinned) name.remove_suffix(kPinnedEnding.size());
    Target target = target_of_cores(cores_named(name));
    target.pinned = pinned;
    return target;
  }
  for (const BackendEntry& entry : backend_entries()) {
    for (const std::string& beginning : entry.devices) {
      if (name.starts_with(beginning)) return {entry.name, std::string(name), {}};
    }
  }
  throw std::invalid_argument(
      fmt::format("there is no device '{}', only: {}", name, names_served()));
}

Target target_of_cores(std::vector<int> cores) {
  const BackendEntry& backend = backend_named(kDefaultBackend);
  return {.backend = backend.name, .device = backend.core_device, .cores = std::move(cores)};
}

std::vector<Target> all_targets(const BackendEntry& backend) {
  std::vector<Target> targets;
  if (!backend.core_device.empty()) {
    for (std::vector<int>& cores : nested_core_sets(allowed_cores())) {
      targets.push_back({backend.name, backend.core_device, std::move(cores)});
    }
    return targets;
  }
  for (const RuntimeDevice& device : runtime_named(backend.name).devices()) {
    targets.push_back({backend.name, device.name, {}});
  }
  return targets;
}

std::vector<Target> targets_named(const std::vector<std::string>& names) {
  std::vector<Target> targets;
  for (const std::string& name : names) targets.push_back(target_named(name));
  if (const auto reason = obstacle(targets)) throw std::invalid_argument(*reason);
  return targets;
}

std::optional<std::string> obstacle(const std::vector<Target>& targets) {
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Target& target = targets[i];
    if (auto reason = obstacle(target)) return reason;
    if (std::find(targets.begin(), targets.begin() + static_cast<std::ptrdiff_t>(i), target) !=
        targets.begin() + static_cast<std::ptrdiff_t>(i)) {
      return fmt::format("the device '{}' is given twice", name_of(target));
    }
  }
  return std::nullopt;
}

CompileOptions compile_options(const Target& target) {
  return {.device = target.device, .threads = target.threads(), .pinned = target.pinned};
}

RuntimeDevice device_of(const Target& target) {
  if (!target.cores.empty()) return {.name = target.device, .full_name = {}, .space = {}};
  const std::vector<RuntimeDevice> devices = runtime_named(target.backend).devices();
  const RuntimeDevice* found = find(devices, target.device);
  if (found == nullptr) throw RuntimeError(*obstacle(target));
  return *found;
}

std::vector<RuntimeDevice> devices_of(const std::vector<Target>& targets) {
  std::vector<RuntimeDevice> devices;
  for (const Target& target : targets) devices.push_back(device_of(target));
  return devices;
}

Target reference_target(std::string_view backend) {
  return {backend_named(backend).name, runtime_named(backend).devices().front().name, {}};
}

std::unique_ptr<DisturbanceProbe> probe_of(const Target& target) {
  if (!target.cores.empty()) return probe_of_cores(target.cores);
  return runtime_named(target.backend).probe(target.device);
}

}  // namespace placewright
