#include "evaluate/placement_plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "evaluate/calls.h"
#include "evaluate/contiguity.h"
#include "evaluate/pipeline.h"
#include "evaluate/schedule.h"

namespace placewright {
namespace {

std::optional<Plan> schedule_of(const Problem& problem, const Placement& placement) {
  const Table<OpId, double> ranks = upward_ranks(problem);
  ScheduleEvaluator evaluator(problem);
  Plan serial =
      schedule_plan(problem, placement, evaluator.schedule(list_order(problem, ranks), placement));
  if (serial.value == kInfinity) return std::nullopt;
  Plan eager = schedule_plan(problem, placement, dispatch(problem, placement, ranks));
  return serial.value <= eager.value ? std::move(serial) : std::move(eager);
}

bool within_call_limit(const Problem& problem, const std::vector<Call>& calls) {
  Table<DeviceId, int> count(problem.device_count(), 0);
  return std::all_of(calls.begin(), calls.end(), [&](const Call& call) {
    return ++count[call.device] <= problem.rules().calls_per_device;
  });
}

}  // namespace

std::optional<Plan> plan_of_placement(const Problem& problem, const Placement& placement) {
  switch (problem.objective()) {
    case Objective::latency:
    case Objective::total_completion:
      return schedule_of(problem, placement);
    case Objective::throughput: {
      if (!contiguous(problem, placement)) return std::nullopt;
      Plan plan = pipeline_plan(problem, placement);
      if (plan.value == kInfinity) return std::nullopt;
      return plan;
    }
    case Objective::call_latency: {
      std::vector<Call> calls = split_into_calls(problem, placement);
      if (!within_call_limit(problem, calls)) return std::nullopt;
      return call_plan(problem, placement, std::move(calls));
    }
  }
  return std::nullopt;
}

}  // namespace placewright
