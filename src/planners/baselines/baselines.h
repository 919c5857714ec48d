// The baselines: what users run today, and the classic list schedulers.

#pragma once

#include "planners/planner.h"

namespace placewright {

PlannerEntry single();
PlannerEntry random_placement();
PlannerEntry topo();
PlannerEntry memory_first();
PlannerEntry proportional();
PlannerEntry priority();
PlannerEntry heft();
PlannerEntry etf();

}  // namespace placewright
