// Which devices cannot work at the same time, because they share resources, and whether ops leave
// anything of them to others.

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

inline bool takes_whole(const Problem& problem, const ResourceUse& use) {
  return use.amount >= problem.resource(use.resource).capacity;
}

// Whether every op takes all of each resource of its device, as ops on sets of cores do.
inline bool ops_take_whole_resources(const Problem& problem) {
  return std::ranges::all_of(problem.devices(), [&](DeviceId device) {
    const auto uses = problem.uses(device);
    const auto whole = [&](const ResourceUse& use) { return takes_whole(problem, use); };
    const auto undivided = [&](OpId op) { return problem.share(op, device) >= 1; };
    return uses.empty() ||
           (std::ranges::all_of(uses, whole) && std::ranges::all_of(problem.ops(), undivided));
  });
}

// Whether the ops of every two devices exclude each other on all resources of one of them, or on
// none: nested or disjoint sets of cores, taken whole.
inline bool resources_are_nested(const Problem& problem) {
  const auto within = [&](DeviceId a, DeviceId b) {
    return std::ranges::all_of(problem.uses(a), [&](const ResourceUse& mine) {
      return std::ranges::any_of(problem.uses(b), [&](const ResourceUse& other) {
        return other.resource == mine.resource;
      });
    });
  };
  return ops_take_whole_resources(problem) &&
         std::ranges::all_of(problem.devices(), [&](DeviceId a) {
           return std::ranges::all_of(problem.devices(), [&](DeviceId b) {
             return !exclude_each_other(problem, a, b) || within(a, b) || within(b, a);
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
