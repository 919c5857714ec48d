// Pairs of devices that symmetries (planners/device_symmetries.h), one after the other, turn into
// each other: a schedule stays one, of the same length, when all of its devices change places so.
// Devices in memories of their own are all taken to be different.
//
// What is asked is by pairs of devices, of the entry and the exit of a module: each pair has a
// representative, the first of those that symmetries turn into each other, so that of n^2 pairs of
// sets of cores some log(n)^3 are left to look at.
//
// O(devices^4) time beyond finding the symmetries, O(devices^3) bytes.

#pragma once

#include <cstddef>
#include <vector>

#include "planners/methods/device_symmetries.h"
#include "problem/problem.h"

namespace placewright {

class DeviceSymmetry {
 public:
  struct Pair {
    DeviceId first;
    DeviceId second;
  };

  explicit DeviceSymmetry(const Problem& problem);

  [[nodiscard]] Pair representative(Pair pair) const;
  // The symmetry that turns the representative into the pair.
  [[nodiscard]] const DeviceExchange& way_to(Pair pair) const { return ways_[index(pair)]; }

 private:
  [[nodiscard]] std::size_t index(Pair pair) const {
    return pair.first.index() * devices_ + pair.second.index();
  }
  void reach_from(Pair pair, const std::vector<DeviceExchange>& generators);

  std::size_t devices_;
  std::vector<std::size_t> representatives_;  // by pair
  std::vector<DeviceExchange> ways_;          // by pair
};

}  // namespace placewright
