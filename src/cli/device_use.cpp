#include "cli/device_use.h"

#include <algorithm>

#include "evaluate/simulate.h"

namespace placewright::cli {
double end_of(const Plan& plan) {
  double end = 0;
  if (plan.schedule) {
    for (const double op_end : plan.schedule->end) end = std::max(end, op_end);
    for (const Transfer& transfer : plan.schedule->transfers) end = std::max(end, transfer.end);
  }
  for (const Call& call : plan.calls) end = std::max(end, call.end);
  return end;
}

Table<DeviceId, DeviceUse> device_uses(const Problem& problem, const Plan& plan) {
  const Simulation simulation = simulate(problem, plan);
  Table<DeviceId, DeviceUse> uses(problem.device_count());
  for (const DeviceId device : problem.devices()) {
    const DeviceSummary& summary = simulation.devices[device];
    uses[device] = {.device = problem.device(device).name,
                    .ops = summary.ops,
                    .memory = summary.resident,
                    .memory_limit = problem.space_memory(problem.space(device)),
                    .busy = summary.busy};
  }
  const double whole =
      problem.objective() == Objective::total_completion ? end_of(plan) : plan.value;
  for (const DeviceId device : problem.devices()) {
    const int lanes = plan.schedule ? problem.device(device).lanes : 1;
    if (whole > 0) uses[device].utilisation = uses[device].busy / (whole * lanes);
  }
  return uses;
}

}  // namespace placewright::cli
