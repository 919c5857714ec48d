// Planners for several models at once (`total-completion`).

#pragma once

#include "planners/planner.h"

namespace placewright {

PlannerEntry talos();
PlannerEntry toct_exact();
PlannerEntry prices();

}  // namespace placewright
