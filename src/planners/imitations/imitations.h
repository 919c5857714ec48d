// What popular tools do with a model and several devices, for comparison: none of them looks at
// times or links.

#pragma once

#include "planners/planner.h"

namespace placewright {

PlannerEntry memory_first();
PlannerEntry proportional();
PlannerEntry priority();

}  // namespace placewright
