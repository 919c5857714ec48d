// One thing at a time: the schedule of a placement that holds the fewest tensors at once.
//
// Ops run one after the other over all devices, and a tensor travels only just before the op that
// needs it. Of the ready ops the next is the one that frees most and makes least. Slow, but where
// peak memory is tight it may be the only schedule that fits. O((ops + tensors) log ops).

#pragma once

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

// Every tensor must be able to reach its readers.
Plan serial_plan(const Problem& problem, const Placement& placement);

}  // namespace placewright
