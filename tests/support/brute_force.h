// The least value of small problems, by looking at everything.
//
// Schedules: every placement that the rules allow, and for each every active schedule (Giffler and
// Thompson: of the activities that are ready, take the one that could end first; in some best
// schedule it, or one that competes with it and could start before that end, comes next).
// Pipelines: every placement. Exponential: up to about 7 ops and 3 devices.

#pragma once

#include <functional>
#include <optional>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright::testing {

// Calls `visit` with every placement that keeps pins, support, colocation and resident memory.
void for_each_placement(const Problem& problem, const std::function<void(const Placement&)>& visit);

// The least value over all plans; nothing when no plan exists. latency, total-completion,
// throughput without replicas.
std::optional<double> brute_force_value(const Problem& problem);

// The least value of one placement's schedules.
double brute_force_schedule_value(const Problem& problem, const Placement& placement,
                                  double stop_at = kInfinity);

}  // namespace placewright::testing
