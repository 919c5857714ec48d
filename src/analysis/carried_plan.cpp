#include "analysis/carried_plan.h"

#include <algorithm>

#include "evaluate/cost_model.h"
#include "evaluate/placement_plan.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

bool replicated(const Plan& plan) {
  return std::any_of(plan.stages.begin(), plan.stages.end(),
                     [](const Stage& stage) { return stage.devices.size() > 1; });
}

}  // namespace

std::optional<Plan> carried_plan(const Problem& problem, const Placement& placement,
                                 const Plan& shape) {
  std::optional<Plan> fresh = plan_of_placement(problem, placement);
  // A schedule without the links it needs has no times in any order.
  if (!fresh && is_schedule(problem.objective())) return std::nullopt;
  std::optional<Plan> kept;
  // A pipeline without replicas is what its placement stands for.
  if (record_of(problem.objective()).form != PlanForm::stages || replicated(shape)) {
    kept = cost_model(problem).in_the_shape_of(shape, problem, placement);
  }
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
