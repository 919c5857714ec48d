// The plan that learning begins with: the best single device, else what the quickest planner that
// finds one gives.

#pragma once

#include "planners/planner.h"

namespace placewright::learned {

// Without a plan: the reason, and whether it is a proof.
Answer first_plan(const Problem& problem, Control& control);

// The best that the quick planners give; without a plan as above.
Answer quick_plan(const Problem& problem, Control& control);

// Where HEFT would put each op; not valid devices where it serves not the objective or finds
// nothing.
Placement heft_placement(const Problem& problem, Control& control);

}  // namespace placewright::learned
