// The planners that make a small problem of a large one, one function per planner.

#pragma once

#include "planners/planner.h"

namespace placewright {

PlannerEntry multilevel();
PlannerEntry repeats();

}  // namespace placewright
