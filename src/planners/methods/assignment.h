// Assignments of ops to calls, as slots of a CallEvaluator: what the planners of this family build,
// check and turn into plans.

#pragma once

#include <optional>
#include <vector>

#include "evaluate/calls.h"
#include "planners/methods/walk_search.h"
#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright::calls {

using Slot = CallEvaluator::Slot;
using Slots = std::vector<Slot>;

// The slots of a plan's calls. The plan must be valid for the evaluator's number of calls.
Slots slots_of_plan(const Problem& problem, const CallEvaluator& evaluator, const Plan& plan);

// Whether every op may be where it is, colocated ops share a device and memory holds.
bool keeps_rules(const Problem& problem, const CallEvaluator& evaluator, const Slots& slots);

// The plan of an assignment that keeps the rules and does not deadlock; else nothing.
std::optional<Plan> plan_of_slots(const Problem& problem, CallEvaluator& evaluator,
                                  const Slots& slots);

// A walk over the ideals of a graph as calls of devices. With several calls per device they are
// packed, those with colocated ops together, largest first, onto the device with the fewest calls
// that has the memory. Ops that the graph leaves out join the call of a neighbour where memory and
// rules allow, else the host. Nullopt if no place is found; the result may still break rules.
std::optional<Slots> slots_of_walk(const Problem& problem, const CallEvaluator& evaluator,
                                   const CallGraph& graph, const CallWalk& walk);

// Every op on the host.
Slots all_on_host(const Problem& problem);

}  // namespace placewright::calls
