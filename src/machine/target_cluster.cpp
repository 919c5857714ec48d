#include "machine/target_cluster.h"

#include <algorithm>

#include <fmt/format.h>

namespace placewright {
namespace {

constexpr double kUsualLatency = 0.005;   // ms
constexpr double kUsualBandwidth = 10e6;  // bytes per ms

double memory_of(const Target& target, const RuntimeDevice& device) {
  if (target.cores.empty()) return device.memory == 0 ? kInfinity : device.memory;
  const double all_cores = static_cast<double>(std::max<std::size_t>(allowed_cores().size(), 1));
  return total_memory() * static_cast<double>(target.cores.size()) / all_cores;
}

// Ascending.
std::vector<int> all_cores(const std::vector<Target>& targets) {
  std::vector<int> cores;
  for (const Target& target : targets) {
    cores.insert(cores.end(), target.cores.begin(), target.cores.end());
  }
  std::ranges::sort(cores);
  return cores;
}

// Cores as resources, the memory of the host as a space.
void share_cores(const std::vector<Target>& targets, std::vector<int> cores, Cluster& cluster) {
  const auto repeated = std::ranges::unique(cores);
  cores.erase(repeated.begin(), repeated.end());
  for (const int core : cores) cluster.resources.push_back({fmt::format("core {}", core), 1});
  cluster.spaces.push_back({"host memory", total_memory()});
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i].cores.empty()) continue;
    Device& device = cluster.devices[i];
    device.space = SpaceId{0};
    device.memory = kInfinity;
    for (const int core : targets[i].cores) {
      const auto place = std::ranges::lower_bound(cores, core) - cores.begin();
      device.uses.push_back({ResourceId{static_cast<std::size_t>(place)}, 1});
    }
  }
}

}  // namespace

Cluster cluster_of_targets(const std::vector<Target>& targets,
                           const std::vector<RuntimeDevice>& devices) {
  Cluster cluster;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Target& target = targets[i];
    const std::string kind = kind_of(target);
    const auto found = std::find_if(cluster.kinds.begin(), cluster.kinds.end(),
                                    [&](const DeviceKind& other) { return other.name == kind; });
    const auto number = static_cast<std::size_t>(found - cluster.kinds.begin());
    if (found == cluster.kinds.end()) cluster.kinds.push_back({kind});
    Device device;
    device.name = name_of(target);
    device.kind = KindId{number};
    device.memory = memory_of(target, devices[i]);
    cluster.devices.push_back(std::move(device));
  }
  const std::vector<int> cores = all_cores(targets);
  if (std::ranges::adjacent_find(cores) != cores.end()) share_cores(targets, cores, cluster);
  for (std::size_t from = 0; from < targets.size(); ++from) {
    for (std::size_t to = 0; to < targets.size(); ++to) {
      const SpaceId space = cluster.devices[from].space;
      if (from == to || (space.valid() && space == cluster.devices[to].space)) continue;
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
