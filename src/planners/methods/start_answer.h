// What the model-based planners start from: the best of the plan given and of what is made at once,
// by HEFT, ETF and on a single device.

#pragma once

#include "planners/planner.h"

namespace placewright {

// Each gets at most a quarter of the time that is left, HEFT half of it.
Answer start_answer(const Problem& problem, Control& control);

}  // namespace placewright
