// The least that an op can take.

#pragma once

#include <algorithm>

#include "problem/problem.h"

namespace placewright {

// Over the devices that may run it; every op has one.
inline double least_time(const Problem& problem, OpId op) {
  double least = kInfinity;
  for (const DeviceId device : problem.devices()) {
    if (problem.allowed(op, device)) least = std::min(least, problem.time(op, device));
  }
  return least;
}

}  // namespace placewright
