// Random placements and priorities for property tests.

#pragma once

#include "problem/problem.h"
#include "support/random_problem.h"

namespace placewright::testing {

// Any device that each group may use; memory and links are not looked at.
Placement random_placement(const Problem& problem, RandomSource& random);

Table<OpId, double> random_priority(const Problem& problem, RandomSource& random);

}  // namespace placewright::testing
