// multilevel, for schedules: a large problem through ever smaller ones (methods/multilevel.h),
// planned by the best of many lists, improved by `search`.

#include "planners/methods/multilevel.h"

#include "planners/latency/latency.h"
#include "planners/methods/quick_plans.h"
#include "planners/methods/sequence_search.h"

namespace placewright {
namespace {

std::optional<Plan> improved(const Problem& problem, const Plan& plan, Control& control) {
  control.start = &plan;
  return search_sequences(problem, control).plan;
}

Answer plan(const Problem& problem, const Settings&, Control& control) {
  return multilevel_plan(problem, {.quick = best_list, .improved = improved}, control);
}

}  // namespace

PlannerEntry multilevel_schedules() {
  return PlannerEntry{
      .name = "multilevel",
      .summary = "coarsened to some hundred ops, planned, and refined level by level",
      .objectives = {Objective::latency},
      .effort = Effort::anytime,
      .share = 8,
      .worth_its_time = worth_coarsening,
      .knows = kCommonAndSharing,
      .plan = plan};
}

}  // namespace placewright
