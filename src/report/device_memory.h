// What the memory of each device holds while a plan runs.

#pragma once

#include <utility>
#include <vector>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

// Of the memory space that the device is in.
struct DeviceMemory {
  double resident = 0;
  double peak = 0;                               // with the tensors alive (evaluate/simulate.h)
  std::vector<std::pair<double, double>> steps;  // schedules: bytes from a time on
};

// `most_steps`: longer profiles keep the largest value of each stretch of time.
Table<DeviceId, DeviceMemory> device_memory(const Problem& problem, const Plan& plan,
                                            std::size_t most_steps = 400);

}  // namespace placewright
