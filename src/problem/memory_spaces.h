// What is stated by memory spaces, of which most have one device: memory, and links between them.

#pragma once

#include <string>
#include <vector>

#include "problem/problem.h"

namespace placewright {

// What a draft says of the memory that the device has: with its space, or of its own.
inline double& stated_memory(Cluster& cluster, DeviceId device) {
  Device& record = cluster.devices[device.index()];
  return record.space.valid() ? cluster.spaces[record.space.index()].memory : record.memory;
}

// The device, and those that share its space: all of them have the same links.
inline std::vector<DeviceId> devices_beside(const Cluster& cluster, DeviceId device) {
  const SpaceId space = cluster.devices[device.index()].space;
  std::vector<DeviceId> devices;
  for (const DeviceId other : ids<DeviceId>(cluster.devices.size())) {
    const bool shared = space.valid() && cluster.devices[other.index()].space == space;
    if (other == device || shared) devices.push_back(other);
  }
  return devices;
}

// As messages call where the memory of the device is: "memory space 'ram'", or "device 'a'" where
// it has it for itself.
inline std::string space_text(const Problem& problem, DeviceId device) {
  const bool shared = problem.device(device).space.valid();
  return (shared ? "memory space '" : "device '") + problem.space_name(problem.space(device)) + "'";
}

// One device for each space that has any: its first.
inline std::vector<DeviceId> first_devices_of_spaces(const Problem& problem) {
  Table<SpaceId, char> seen(problem.space_count(), 0);
  std::vector<DeviceId> devices;
  for (const DeviceId device : problem.devices()) {
    if (seen[problem.space(device)]++ == 0) devices.push_back(device);
  }
  return devices;
}

}  // namespace placewright
