// The members of `auto` at the same time, on the threads of the budget.
//
// Instant planners come first, one after the other. Then each thread takes a quick planner until
// none is left, and after that a seat: some threads prove, the others improve plans, in proportion
// to the claims of both kinds of members. A member that uses several threads gets those that its
// kind has to spare. All of them share the best plan and bound (planners/exchange.h).
//
// Local search has its threads from the beginning to the end, if the problem has one that uses
// threads. A thread whose member has ended takes the next one of its kind, then one of the other.
// After that it goes on with a proof that has gained something, or runs local search with another
// seed, so that nobody's time is lost. All are stopped as soon as the best plan meets the best
// bound, or it is proved that there is none.
//
// The calling thread waits: it hands progress to the observer and passes an interruption on.
// Each member gets its part of the memory limit. If no thread can be made, the calling one works.

#pragma once

#include <vector>

#include "planners/planner.h"

namespace placewright {

// `entries` in the order of effort.
Answer run_side_by_side(const Problem& problem, const std::vector<const PlannerEntry*>& entries,
                        Control& control);

}  // namespace placewright
