// Steepest descent over pipelines: from random ones, the best move of one colour class until none
// helps.
//
// For contiguous rules a random pipeline cuts a random linear order at random places, and a move
// must keep the rule; without contiguity every block starts on a random device. The incremental
// evaluator values O(blocks x devices) moves for each step.

#pragma once

#include <cstdint>

#include "planners/methods/incumbent.h"
#include "planners/planner.h"

namespace placewright::throughput {

// Peak memory is not known.
void descend_from_random_pipelines(const Problem& problem, std::int64_t restarts,
                                   Incumbent& incumbent, Control& control);

}  // namespace placewright::throughput
