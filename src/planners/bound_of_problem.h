// The lower bound of a problem as a whole (bounds/bounds.h), for planners and those who run them:
// in a share of the time that is left, since on 100,000 ops it would take a second. With a limit of
// steps the clock has no part in it, so that the same work is done on every machine.

#pragma once

#include "planners/planner.h"

namespace placewright {

Certificate bound_of_problem(const Problem& problem, const Control& control);

}  // namespace placewright
