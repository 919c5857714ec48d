// Planners for schedules: the latency of one inference on unequal devices, total completion of
// several.

#pragma once

#include "planners/planner.h"

namespace placewright {

PlannerEntry decompose();
PlannerEntry hubs();
PlannerEntry search();
PlannerEntry cpsat_schedule();

}  // namespace placewright
