// Which devices cannot work at the same time, because they share resources.

#pragma once

#include <algorithm>
#include <vector>

#include "problem/problem.h"

namespace placewright {

// Whether an op that takes all of its device's amounts keeps every such op of the other device
// waiting. A device excludes itself.
inline bool exclude_each_other(const Problem& problem, DeviceId a, DeviceId b) {
  if (a == b) return true;
  return std::ranges::any_of(problem.uses(a), [&](const ResourceUse& mine) {
    return std::ranges::any_of(problem.uses(b), [&](const ResourceUse& other) {
      return mine.resource == other.resource &&
             mine.amount + other.amount > problem.resource(mine.resource).capacity;
    });
  });
}

// By device, those that it excludes, itself among them.
inline Table<DeviceId, std::vector<DeviceId>> excluded_devices(const Problem& problem) {
  Table<DeviceId, std::vector<DeviceId>> excluded(problem.device_count());
  for (const DeviceId a : problem.devices()) {
    for (const DeviceId b : problem.devices()) {
      if (exclude_each_other(problem, a, b)) excluded[a].push_back(b);
    }
  }
  return excluded;
}

}  // namespace placewright
