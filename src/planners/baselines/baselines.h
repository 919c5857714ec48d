// Plans at once: the yardsticks that every planner must beat, and the classic list schedulers, from
// which the searches start.

#pragma once

#include "planners/planner.h"

namespace placewright {

PlannerEntry single();
PlannerEntry random_placement();
PlannerEntry heft();
PlannerEntry lists();
PlannerEntry etf();

}  // namespace placewright
