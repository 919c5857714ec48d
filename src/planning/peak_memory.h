// Any planner within peak memory (`--memory peak`): weights and the tensors alive at any moment.
//
// Planners look at resident memory. Where a plan holds too much at its peak, the planner is asked
// again on a stricter problem: the devices in question have less memory, by the excess; then every
// op also carries the bytes of what it makes. Where no such plan fits either, the placements found
// run one op at a time (schedules). What no attempt brings within memory is not handed out: the
// answer is then `unknown` and says which device holds too much. Bounds and proofs of the original
// problem stay true, since counting tensors only takes plans away; those of stricter ones are
// dropped.

#pragma once

#include <optional>

#include "planners/planner.h"
#include "problem/problem.h"

namespace placewright {

// As `entry.plan`; under resident memory, and for portfolios (whose members come here), just that.
Answer plan_within_memory(const Problem& problem, const PlannerEntry& entry,
                          const Settings& settings, Control& control);

// The problem with resident memory instead, where that is the same: peak memory is asked for, and
// every device could hold all weights and all tensors of all samples in flight at once. Planners
// that do not know peak memory can then serve.
std::optional<Problem> without_peak_limits(const Problem& problem);

}  // namespace placewright
