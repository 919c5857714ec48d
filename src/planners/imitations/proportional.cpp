// Proportional: as many ops in a row on each device as its share of all memory.
//
// What llama.cpp's layer split does. Devices with unlimited memory count as the largest limited
// one. It knows neither times nor links. O(ops x devices).

#include <algorithm>
#include <cmath>

#include "planners/fill.h"
#include "planners/imitations/imitations.h"

namespace placewright {
namespace {

// The number of ops at which each device has its share.
Table<DeviceId, double> shares(const Problem& problem) {
  double largest = 0;
  for (const DeviceId device : problem.devices()) {
    const double memory = problem.device(device).memory;
    if (memory < kInfinity) largest = std::max(largest, memory);
  }
  if (largest == 0) largest = 1;
  double total = 0;
  Table<DeviceId, double> share(problem.device_count());
  for (const DeviceId device : problem.devices()) {
    share[device] = std::min(problem.device(device).memory, largest);
    total += share[device];
  }
  if (total == 0) total = 1;
  for (double& part : share) {
    part = std::ceil(part / total * static_cast<double>(problem.op_count()));
  }
  return share;
}

Answer plan(const Problem& problem, const Settings&, Control& control) {
  const Table<DeviceId, double> share = shares(problem);
  return fill_plan(
      problem, [&](const Fill& fill) { return static_cast<double>(fill.ops) > share[fill.device]; },
      control);
}

}  // namespace

PlannerEntry proportional() {
  return PlannerEntry{.name = "proportional",
                      .summary = "ops in proportion to each device's memory (llama.cpp's split)",
                      .objectives = {Objective::throughput, Objective::call_latency,
                                     Objective::latency, Objective::total_completion},
                      .role = Role::imitation,
                      .effort = Effort::instant,
                      .knows_sharing = true,
                      .plan = plan};
}

}  // namespace placewright
