// Plans from estimated costs: a cut stays only where it gains more than the estimates are off.
//
// Times that are estimated may be off by a factor of two, but so are those of the plan and of the
// models uncut on the same device. What decides between the two is how devices compare with each
// other and with their links, which estimates state to within kErrorOfEstimatedRatios
// (docs/formats/cluster.md has the measurements). A cut whose gain is smaller may as well be a
// loss, and it costs what no estimate has: lost fusions, and the work of running parts.

#pragma once

#include <optional>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

// The best plan without a cut, if the costs are estimated, the plan cuts a model, and the gain is
// within the error of the estimate; else nullopt. O(kinds x (ops log ops + tensors)).
std::optional<Plan> plan_instead_of_doubtful(const Problem& problem, const Plan& plan);

}  // namespace placewright
