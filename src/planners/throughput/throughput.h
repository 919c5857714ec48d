// The throughput family, one function per planner.

#pragma once

#include "planners/planner.h"

namespace placewright {

PlannerEntry ideals();
PlannerEntry ideals_linear();
PlannerEntry kinds();
PlannerEntry cpsat_throughput();
PlannerEntry refine();
PlannerEntry exhaustive_throughput();
PlannerEntry shared_stages();
PlannerEntry shared_ideals();
PlannerEntry shared_search();
PlannerEntry nodes();
PlannerEntry multilevel_pipelines();
PlannerEntry repeats_in_pipelines();

}  // namespace placewright
