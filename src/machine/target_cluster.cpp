#include "machine/target_cluster.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include <fmt/format.h>

namespace placewright {
namespace {

constexpr double kUsualLatency = 0.005;   // ms
constexpr double kUsualBandwidth = 10e6;  // bytes per ms

double memory_of(const Target& target, const std::vector<RuntimeDevice>& devices) {
  if (!target.cores.empty()) {
    const double all_cores = static_cast<double>(std::max<std::size_t>(allowed_cores().size(), 1));
    return total_memory() * static_cast<double>(target.cores.size()) / all_cores;
  }
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const RuntimeDevice& device) {
    return device.name == target.device;
  });
  return found == devices.end() || found->memory == 0 ? kInfinity : found->memory;
}

}  // namespace

std::vector<Target> one_target_per_core() {
  std::vector<Target> targets;
  for (const int core : allowed_cores()) targets.push_back({"CPU", {core}});
  return targets;
}

std::vector<Target> targets_named(const std::vector<std::string>& names,
                                  const std::vector<RuntimeDevice>& devices) {
  std::vector<std::string> known;
  for (const RuntimeDevice& device : devices) known.push_back(device.name);
  std::vector<Target> targets;
  std::map<int, std::string> owners;  // by core
  for (const std::string& name : names) {
    const Target target = target_named(name);
    if (const auto reason = obstacle(target, known)) throw std::invalid_argument(*reason);
    if (std::find(targets.begin(), targets.end(), target) != targets.end()) {
      throw std::invalid_argument(fmt::format("the device '{}' is given twice", name));
    }
    for (const int core : target.cores) {
      const auto [owner, added] = owners.emplace(core, name);
      if (!added) {
        throw std::invalid_argument(
            fmt::format("'{}' and '{}' share core {}: a core belongs to one device", owner->second,
                        name, core));
      }
    }
    targets.push_back(target);
  }
  return targets;
}

Cluster cluster_of_targets(const std::vector<Target>& targets,
                           const std::vector<RuntimeDevice>& devices) {
  Cluster cluster;
  for (const Target& target : targets) {
    const std::string kind = kind_of(target);
    const auto found = std::find_if(cluster.kinds.begin(), cluster.kinds.end(),
                                    [&](const DeviceKind& other) { return other.name == kind; });
    const auto number = static_cast<std::size_t>(found - cluster.kinds.begin());
    if (found == cluster.kinds.end()) cluster.kinds.push_back({kind});
    Device device;
    device.name = name_of(target);
    device.kind = KindId{number};
    device.memory = memory_of(target, devices);
    cluster.devices.push_back(std::move(device));
  }
  for (std::size_t from = 0; from < targets.size(); ++from) {
    for (std::size_t to = 0; to < targets.size(); ++to) {
      if (from == to) continue;
      cluster.links.push_back({DeviceId{from}, DeviceId{to}, kUsualLatency, kUsualBandwidth});
    }
  }
  return cluster;
}

std::vector<std::size_t> first_of_each_kind(const Cluster& cluster) {
  std::vector<std::size_t> first(cluster.kinds.size(), cluster.devices.size());
  for (std::size_t i = cluster.devices.size(); i-- > 0;) {
    first[cluster.devices[i].kind.index()] = i;
  }
  return first;
}

}  // namespace placewright
