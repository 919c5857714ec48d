// Best single device: the whole model on one device, the best of those that can hold it.

#include "evaluate/memory.h"
#include "evaluate/placement_plan.h"
#include "planners/baselines/baselines.h"

namespace placewright {
namespace {

bool holds(const Problem& problem, const Placement& placement, DeviceId device) {
  for (const OpId op : problem.ops()) {
    if (!problem.allowed(op, device)) return false;
  }
  return memory_fits(problem, placement);
}

Answer plan(const Problem& problem, const Settings&, Control& control) {
  Answer answer;
  for (const DeviceId device : problem.devices()) {
    if (answer.plan && control.should_stop(1)) break;
    const Placement placement(problem.op_count(), device);
    if (!holds(problem, placement, device)) continue;
    std::optional<Plan> candidate = plan_of_placement(problem, placement);
    if (candidate && candidate->value < answer.value()) answer.plan = std::move(candidate);
  }
  if (!answer.plan) answer.reason = "no single device supports every op and has the memory for all";
  return answer;
}

}  // namespace

PlannerEntry single() {
  return PlannerEntry{.name = "single",
                      .summary = "the whole model on the best single device",
                      .objectives = {Objective::throughput, Objective::call_latency,
                                     Objective::latency, Objective::total_completion},
                      .role = Role::yardstick,
                      .knows_sharing = true,
                      .plan = plan};
}

}  // namespace placewright
