// Filling the accelerators one after the other along a topological order, up to memory
// (`call-latency`).
//
// Blocks (colocated ops, and groups on a common cycle) are taken in depth-first topological order,
// so that what one call holds is contiguous. A block that the accelerator cannot run goes to the
// host and ends the call, as everything does when the accelerators are full. A later call of the
// same accelerator is opened where the rules allow several. O(ops + edges).

#pragma once

#include <optional>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright::calls {

// None where ops are left without a place.
std::optional<Plan> filled_calls(const Problem& problem);

}  // namespace placewright::calls
