// How many ops a device can ever run at once.

#pragma once

#include <algorithm>
#include <cstddef>

#include "problem/problem.h"

namespace placewright {

// Its lanes, but no more than there are ops: a file may say two thousand million.
inline int useful_lanes(const Problem& problem, DeviceId device) {
  const auto lanes = static_cast<std::size_t>(problem.device(device).lanes);
  return static_cast<int>(std::min(lanes, problem.op_count()));
}

}  // namespace placewright
