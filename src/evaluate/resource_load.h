// How much of the shared resources a plan takes (docs/semantics.md, "Resource").
//
// Whatever runs as a whole (an op, a call, a stage on all of its devices) holds, of each resource
// of its devices, the amount times the largest share of its ops, for as long as it runs. The load
// of a resource is the sum of time x amount held / capacity: of a core that one may have at a time,
// how long it is held. O(ops + devices x resources).

#pragma once

#include <span>
#include <vector>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

// What these ops hold while they run on these devices; each resource once.
std::vector<ResourceUse> held_by(const Problem& problem, std::span<const DeviceId> devices,
                                 std::span<const OpId> ops);

// From the plan's start to its end; of a pipeline, in each period.
Table<ResourceId, double> resource_loads(const Problem& problem, const Plan& plan);

}  // namespace placewright
