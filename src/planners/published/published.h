// Planners of other groups as they published them, for comparison: the tables of results set ours
// against them. `auto` runs the quick ones, since they cost nothing, and leaves out the long ones,
// which do what a planner of ours does better.

#pragma once

#include "planners/planner.h"

namespace placewright {

// Baechi (Jeon et al., SoCC 2020). m-ETF, the third of its planners, is `etf` in baselines.h.
PlannerEntry peft();
PlannerEntry topo();
PlannerEntry sct();
// Su et al., 2020.
PlannerEntry getf();
// Moirai (Zhang et al., 2023).
PlannerEntry moirai();
// The integer programs and baselines of Tarnawski et al., NeurIPS 2020.
PlannerEntry ip_contiguous();
PlannerEntry ip();
PlannerEntry local_search();
PlannerEntry scotch();
PlannerEntry calls_greedy();
// PipeDream (Narayanan et al., SOSP 2019).
PlannerEntry pipedream();
// The baselines of the Talos paper.
PlannerEntry aswm();
PlannerEntry tsam();

}  // namespace placewright
