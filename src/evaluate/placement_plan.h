// The plan that a bare placement stands for, under the problem's objective.

#pragma once

#include <optional>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

// Schedules: the better of two list schedules by upward rank. Throughput: one stage per device.
// Calls: those of split_into_calls (evaluate/calls.h). Returns nullopt if the
// placement breaks a rule that depends on where ops are: a missing link, contiguity, too many or
// deadlocked calls. Memory is not checked.
std::optional<Plan> plan_of_placement(const Problem& problem, const Placement& placement);

}  // namespace placewright
