// What each device does in a plan: how many ops, how much memory, how long busy.

#pragma once

#include <string>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright::cli {

struct DeviceUse {
  std::string device;
  std::size_t ops = 0;
  double memory = 0;  // resident bytes
  double memory_limit = 0;
  double busy = 0;         // time with work: ops, calls, or the load of its stage
  double utilisation = 0;  // of all lanes, from 0 to the plan's end (throughput: of the value)
};

Table<DeviceId, DeviceUse> device_uses(const Problem& problem, const Plan& plan);

// The end of the last op, call; 0 for a pipeline.
double end_of(const Plan& plan);

}  // namespace placewright::cli
