#include "evaluate/memory.h"
#include "evaluate/placement_plan.h"
#include "planners/methods/quick_plans.h"

namespace placewright {
namespace {

bool holds(const Problem& problem, const Placement& placement, DeviceId device) {
  for (const OpId op : problem.ops()) {
    if (!problem.allowed(op, device)) return false;
  }
  return memory_fits(problem, placement);
}

}  // namespace

Answer best_single_device(const Problem& problem, Control& control) {
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

}  // namespace placewright
