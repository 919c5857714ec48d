// Memory where it is stated: by memory spaces, of which most have one device.

#pragma once

#include <vector>

#include "problem/problem.h"

namespace placewright {

// What a draft says of the memory that the device has: with its space, or of its own.
inline double& stated_memory(Cluster& cluster, DeviceId device) {
  Device& record = cluster.devices[device.index()];
  return record.space.valid() ? cluster.spaces[record.space.index()].memory : record.memory;
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
