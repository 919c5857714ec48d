// A plan carried over to another placement, or to a problem with other numbers.
//
// What stays is the shape: the order of ops and transfers of a schedule, the stages and their
// replicas, the calls. What follows from it (times, loads, the value) is computed again. Of the
// carried shape and the plan that the bare placement stands for (plan_of_placement) the better one
// is handed out. O((ops + tensors) log).

#pragma once

#include <optional>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

// `shape` is a plan for a problem with the same ops and tensors, whose devices are the first ones
// of `problem`. Nullopt if no plan follows: a missing link, contiguity, too many or deadlocked
// calls. Memory, pins and colocation are for the verifier to judge.
std::optional<Plan> carried_plan(const Problem& problem, const Placement& placement,
                                 const Plan& shape);

// The same, where the verifier accepts it.
std::optional<Plan> valid_carried_plan(const Problem& problem, const Placement& placement,
                                       const Plan& shape);

}  // namespace placewright
