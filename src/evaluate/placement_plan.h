// The plan that a bare placement stands for, under the problem's objective.

#pragma once

#include <optional>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

// Schedules: the better of two list schedules by upward rank. Throughput: one stage per device.
// Calls: the split of algorithms.md, section 2. Nothing when the placement breaks a rule that
// depends on where ops are: a missing link, contiguity, too many or deadlocked calls. Memory is not
// looked at.
std::optional<Plan> plan_of_placement(const Problem& problem, const Placement& placement);

}  // namespace placewright
