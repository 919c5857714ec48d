// What the model-based planners start from: the better of HEFT's plan and the plan given.

#pragma once

#include "planners/planner.h"

namespace placewright {

// HEFT gets at most half of the time that is left.
Answer start_answer(const Problem& problem, Control& control);

}  // namespace placewright
