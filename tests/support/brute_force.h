// The least value of small problems, by looking at everything.
//
// Schedules: every placement that the rules allow, and for each every active schedule, one of which
// is best (values never fall when something starts later). Shared resources, memory spaces and cut
// overheads are known. Pipelines: every placement and, where the rules allow them, all replicas.
// Exponential: up to about 7 ops and 3 devices, or 4 ops and 7 devices.

#pragma once

#include <functional>
#include <optional>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright::testing {

// Calls `visit` with every placement that keeps pins, support, colocation and resident memory.
void for_each_placement(const Problem& problem, const std::function<void(const Placement&)>& visit);

// The least value over all plans; nothing when no plan exists. latency, total-completion,
// throughput.
std::optional<double> brute_force_value(const Problem& problem);

// The least value of one placement's schedules.
double brute_force_schedule_value(const Problem& problem, const Placement& placement,
                                  double stop_at = kInfinity);

}  // namespace placewright::testing
