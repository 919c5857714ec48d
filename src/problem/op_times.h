// When each op of a plan runs.

#pragma once

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

struct OpTimes {
  Table<OpId, double> start;
  Table<OpId, double> end;
};

// A schedule's own times. In calls those of the op's call; ops on the host have none in a plan, and
// start as soon as what they read is there. All zero for pipelines.
OpTimes op_times(const Problem& problem, const Plan& plan);

}  // namespace placewright
