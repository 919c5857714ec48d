// A PlacementProgram handed to a solver, from the incumbent on.

#pragma once

#include <string>

#include "planners/methods/incumbent.h"
#include "planners/planner.h"
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

using Solve = ProgramOutcome (*)(const Problem&, Incumbent&, Control&);

// The planner that solves the program so. It starts from the best contiguous plan that `ideals`
// finds in a tenth of the time (a plan under every rule), so it is never worse than that; the
// option warm-start=off leaves it out.
PlannerEntry program_entry(std::string name, std::string summary, Solve solve);

}  // namespace placewright::throughput
