// Of equally good plans, the one that uses fewer devices, and of those the one with fewer
// transfers.
//
// Planners minimise a value and leave ties to chance, so that a device may be used for one op
// without any gain. Here all ops of a device go to another one, the device with fewest ops first,
// and then islands (colocation groups whose neighbours are all on one other device) go to their
// neighbours; each move stays if the plan, timed again in its own order, is not worse and keeps all
// rules. Plans with a schedule only. The number of moves that are tried is limited to what costs
// about as much as a quick planner, and to the time that is left, or a fiftieth of the limit; a
// move costs O((ops + tensors) log).

#pragma once

#include "planners/planner.h"
#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

Plan with_fewer_devices_and_transfers(const Problem& problem, Plan plan, const Control& control);

}  // namespace placewright
