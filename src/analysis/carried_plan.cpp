#include "analysis/carried_plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "evaluate/calls.h"
#include "evaluate/pipeline.h"
#include "evaluate/placement_plan.h"
#include "evaluate/schedule.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

bool replicated(const Plan& plan) {
  return std::any_of(plan.stages.begin(), plan.stages.end(),
                     [](const Stage& stage) { return stage.devices.size() > 1; });
}

// Every stage keeps its devices and takes the ops that are placed on its first one; ops on a device
// without a stage make a stage of their own.
std::optional<Plan> in_the_same_stages(const Problem& problem, const Placement& placement,
                                       const Plan& shape) {
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::vector<Stage> stages;
  Table<DeviceId, std::size_t> stage_led_by(problem.device_count(), kNone);
  Table<DeviceId, char> follows(problem.device_count(), 0);
  for (const Stage& stage : shape.stages) {
    stage_led_by[stage.devices.front()] = stages.size();
    for (std::size_t i = 1; i < stage.devices.size(); ++i) follows[stage.devices[i]] = 1;
    stages.push_back({stage.devices, {}, 0});
  }
  for (const OpId op : problem.topological_order()) {
    const DeviceId device = placement[op];
    if (follows[device]) return std::nullopt;
    if (stage_led_by[device] == kNone) {
      stage_led_by[device] = stages.size();
      stages.push_back({{device}, {}, 0});
    }
    stages[stage_led_by[device]].ops.push_back(op);
  }
  std::erase_if(stages, [](const Stage& stage) { return stage.ops.empty(); });
  Plan plan = pipeline_plan(problem, std::move(stages));
  if (plan.value == kInfinity) return std::nullopt;
  return plan;
}

std::optional<Plan> in_the_same_shape(const Problem& problem, const Placement& placement,
                                      const Plan& shape) {
  if (shape.schedule) {
    return schedule_plan(problem, placement, retime(problem, placement, *shape.schedule));
  }
  if (replicated(shape)) return in_the_same_stages(problem, placement, shape);
  if (!shape.calls.empty() && placement == shape.placement) {
    return call_plan(problem, placement, shape.calls);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Plan> carried_plan(const Problem& problem, const Placement& placement,
                                 const Plan& shape) {
  std::optional<Plan> fresh = plan_of_placement(problem, placement);
  // A schedule without the links it needs has no times in any order.
  if (!fresh && is_schedule(problem.objective())) return std::nullopt;
  std::optional<Plan> kept = in_the_same_shape(problem, placement, shape);
  if (!fresh || (kept && kept->value <= fresh->value)) return kept;
  return fresh;
}

std::optional<Plan> valid_carried_plan(const Problem& problem, const Placement& placement,
                                       const Plan& shape) {
  std::optional<Plan> plan = carried_plan(problem, placement, shape);
  if (plan && !verify(problem, *plan).empty()) plan.reset();
  return plan;
}

}  // namespace placewright
