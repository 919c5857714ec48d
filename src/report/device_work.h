// What each device does in a plan, and what its memory holds while it does.

#pragma once

#include <utility>
#include <vector>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

struct DeviceWork {
  std::size_t ops = 0;
  double compute = 0;  // time of ops, with cut overheads
  double in = 0;       // time of transfers that enter it
  double out = 0;      // ... and that leave it
  double busy = 0;     // schedules: compute; pipelines: the load of its stage; calls: their length
};

// In a pipeline, for one sample; the work of a stage is shared by its replicas.
Table<DeviceId, DeviceWork> device_work(const Problem& problem, const Plan& plan);

// The movements of the plan: a schedule's own, with times; for pipelines and calls those that the
// plan needs, from 0 to their length.
std::vector<Transfer> movements_of(const Problem& problem, const Plan& plan);

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
