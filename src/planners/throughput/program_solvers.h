// A PlacementProgram handed to a solver, from the incumbent on.

#pragma once

#include <string>

#include "planners/throughput/incumbent.h"
#include "problem/problem.h"

namespace placewright::throughput {

struct ProgramOutcome {
  bool infeasible = false;  // proved: no placement keeps the rules
  std::string reason;       // why there may be no plan
};

// HiGHS on the program as it is. The incumbent gets better plans and the bound.
ProgramOutcome solve_with_highs(const Problem& problem, Incumbent& incumbent, Control& control);

// CP-SAT on the program in whole numbers: times are rounded down, so its bound holds; plans are
// valued in doubles.
ProgramOutcome solve_with_cp_sat(const Problem& problem, Incumbent& incumbent, Control& control);

}  // namespace placewright::throughput
