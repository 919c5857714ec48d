// Whether cuts cost device time.

#pragma once

#include <algorithm>

#include "problem/problem.h"

namespace placewright {

inline bool has_overheads(const Problem& problem) {
  return std::ranges::any_of(problem.draft().cluster.devices, [](const Device& device) {
    return device.send_overhead > 0 || device.receive_overhead > 0;
  });
}

}  // namespace placewright
