// Reasons that several planners have for not serving a problem (PlannerEntry::refuses). Empty:
// none.

#pragma once

#include <string>

#include "planners/planner.h"
#include "problem/problem.h"

namespace placewright {

// For planners that solve a linear program with a row for each edge.
std::string refuses_many_edges(const Problem& problem);

// The same, once the budget is known: why that program must not be begun.
std::string cannot_afford_program(const Problem& problem, const Control& control);

}  // namespace placewright
