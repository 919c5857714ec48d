// The throughput family, one function per planner.

#pragma once

#include "planners/planner.h"

namespace placewright {

PlannerEntry ideals();
PlannerEntry ideals_linear();
PlannerEntry ip_contiguous();
PlannerEntry ip();
PlannerEntry cpsat_throughput();
PlannerEntry refine();
PlannerEntry local_search();
PlannerEntry scotch();
PlannerEntry pipedream();

}  // namespace placewright
