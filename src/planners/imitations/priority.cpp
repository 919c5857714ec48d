// Priority: every op on the first device in the cluster's order that supports it and has room.
//
// What ONNX Runtime does with its list of execution providers and OpenVINO with HETERO: devices are
// named in order of preference, and times are not looked at. Where contiguous sets are asked for,
// devices are taken in that order along the graph and never left and come back to. O(ops x
// devices).

#include "evaluate/placement_plan.h"
#include "planners/device_choice.h"
#include "planners/fill.h"
#include "planners/imitations/imitations.h"

namespace placewright {
namespace {

std::optional<Plan> first_that_fits(const Problem& problem, DeviceChoice& choice) {
  Placement placement(problem.op_count());
  for (const OpId op : problem.topological_order()) {
    const auto candidates = choice.candidates(op);
    if (candidates.empty()) return std::nullopt;
    placement[op] = candidates.front();
    choice.take(op, placement[op]);
  }
  return plan_of_placement(problem, placement);
}

Answer plan(const Problem& problem, const Settings&, Control& control) {
  Answer answer = construct(problem, control,
                            [&](DeviceChoice& choice) { return first_that_fits(problem, choice); });
  if (answer.plan || answer.proved_infeasible || is_schedule(problem.objective())) return answer;
  return fill_plan(
      problem, [](const Fill&) { return false; }, control);
}

}  // namespace

PlannerEntry priority() {
  return PlannerEntry{
      .name = "priority",
      .summary = "the first device in order that supports the op (ONNX Runtime, HETERO)",
      .objectives = {Objective::throughput, Objective::call_latency, Objective::latency,
                     Objective::total_completion},
      .role = Role::imitation,
      .knows_sharing = true,
      .plan = plan};
}

}  // namespace placewright
