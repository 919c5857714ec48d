#include "evaluate/placement_plan.h"

#include <utility>

#include "evaluate/calls.h"
#include "evaluate/contiguity.h"
#include "evaluate/pipeline.h"
#include "evaluate/schedule.h"

namespace placewright {
namespace {

std::optional<Plan> schedule_of(const Problem& problem, const Placement& placement) {
  const Table<OpId, double> ranks = upward_ranks(problem);
  ScheduleEvaluator evaluator(problem);
  Plan serial = schedule_plan(problem, placement,
                              evaluator.schedule(list_order(problem, ranks), placement));
  if (serial.value == kInfinity) return std::nullopt;
  Plan eager = schedule_plan(problem, placement, dispatch(problem, placement, ranks));
  return serial.value <= eager.value ? std::move(serial) : std::move(eager);
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
    case Objective::call_latency:
      return call_plan(problem, placement, split_into_calls(problem, placement));
  }
  return std::nullopt;
}

}  // namespace placewright
