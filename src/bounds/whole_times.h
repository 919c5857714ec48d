// Bounds between two values that a latency can have.
//
// Where all times are whole multiples of a step, so is the least latency: a best schedule starts
// everything as early as it can, at a sum of times. Then a bound rises to the next multiple.

#pragma once

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

// A power of ten of which all times are multiples; 0: there is none that is worth anything, or
// values need not be sums of times.
double step_of_latency(const Problem& problem);

// The bound, or the next multiple of the step.
Certificate on_step(Certificate bound, double step);

}  // namespace placewright
